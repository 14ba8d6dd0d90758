"""Builds and workloads that attack their agent and the machine, each once in the open to show that the attack is one."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from tests.runners.measurement.test_sides import needs_landlock
from tests.runners.sandbox.conftest import USER

from pullback_runners.errors import UsageError
from pullback_runners.sandbox.isolation import isolated


def _why_no_sandbox():
    who = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"] if os.geteuid() == 0 else []
    command = [*who, "bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "true"]
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() or None


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif((_reason := _why_no_sandbox()) is not None, reason=f"NO JOB IS TRIED IN A SANDBOX: {_reason}"),
]
_HAS_IPV6 = Path("/proc/net/if_inet6").exists() and "lo" in Path("/proc/net/if_inet6").read_text().split()
MARK = f"{USER}.5678"
"""Seconds that what a job leaves behind would sleep, by which it is found."""
LEFT = f"left-by-a-job-of-{USER}"
"""The name of files that a job writes where it can: tests of several processes share the folders of the system."""

SPY = """
import ctypes, json, os, socket, subprocess, sys

asked = json.loads({asked!r})

def attempt(what):
    try:
        return bool(what())
    except Exception:
        return False

def read(path):
    return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)

def write(path):
    with open(path, "x"):
        return True

def connect(family, address):
    with socket.socket(family) as trying:
        trying.settimeout(1)
        trying.connect(address)
        return True

def send(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as sending:
        return sending.sendto(b"from a job", address)

def leave():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for each in range(3):
                os.dup2(null, each)
            os.closerange(3, 256)
            os.execvp("sleep", ["sleep", asked["mark"]])
        os._exit(0)
    return True

def pid_of_the_agent():
    return asked["pid"] if os.path.exists("/proc/%d" % asked["pid"]) and os.kill(asked["pid"], 0) is None else None

def measuring():
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open("/proc/%s/cmdline" % each, "rb").read().split(b"\\0")
        except OSError:  # it has ended meanwhile
            continue
        if b"pullback_runners.agent.measurer" in words and not words[0].endswith(b"bwrap"):
            yield each

attempt(lambda: send(socket.AF_INET, ("127.0.0.1", asked["datagrams"])))
file = open(asked["said"], "a")
for each in asked["places"]:
    attempt(lambda: write(each + "/" + asked["left"]))
libc = ctypes.CDLL(None, use_errno=True)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
said = json.dumps({{
    "reads": [each for each in asked["secrets"] if attempt(lambda: read(each))],
    "connects": attempt(lambda: connect(socket.AF_INET, ("127.0.0.1", asked["port"]))),
    "connects by IPv6": attempt(lambda: connect(socket.AF_INET6, ("::1", asked["port6"]))),
    "sends datagrams outside": attempt(lambda: send(socket.AF_INET, ("192.0.2.1", 53))),
    "connects by a socket without a file": attempt(lambda: connect(socket.AF_UNIX, "\\0" + asked["socket"])),
    "resolves": attempt(lambda: connect(socket.AF_INET, ("192.0.2.1", 53)) or True),
    "sees the test": attempt(pid_of_the_agent),
    "attaches": libc.ptrace(0x4206, asked["pid"], 0, 0) == 0 if asked["pid"] else False,
    "reads the process that measures": [each for each in measuring() if attempt(lambda: os.open("/proc/%s/mem" % each, os.O_RDWR))],
    "makes namespaces": libc.unshare(0x10000000 | 0x00020000) == 0,
    "mounts": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0,
    "makes devices": attempt(lambda: os.mknod("device", 0o660 | 0o020000, os.makedev(1, 1)) is None),
    "capabilities": int(status["CapEff"], 16),
    "may gain rights": status["NoNewPrivs"].strip() == "0",
    "token": "PULLBACK_TOKEN" in os.environ,
    "leaves": attempt(leave),
}})
file.write(said + "\\n")
file.close()
{then}
"""


@pytest.fixture
def listening():
    """A server on this machine, by TCP, UDP and an abstract socket: what a job may not reach."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.create_server(("::1", 0), family=socket.AF_INET6) if _HAS_IPV6 else nullcontext() as tcp6,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        unix.bind(f"\0pullback-{os.getpid()}")
        unix.listen()
        yield SimpleNamespace(
            udp=udp,
            told={
                "port": tcp.getsockname()[1],
                "port6": tcp6.getsockname()[1] if tcp6 else 1,
                "datagrams": udp.getsockname()[1],
                "socket": f"pullback-{os.getpid()}",
            },
        )


@pytest.fixture
def places(data, repository, open_folder):
    """Folders of this machine that a job may not write."""
    system = [Path(each) for each in ("/usr/lib", "/etc", "/opt", "/", sys.prefix)]
    folders = [open_folder / "another-project", repository.folder, data, data / "jobs" / "6-1", *system]
    yield folders
    for folder in folders:
        (folder / LEFT).unlink(missing_ok=True)


def _written(places):
    return [folder for folder in places if (folder / LEFT).exists()]


@pytest.fixture
def spy(data, repository, open_folder, places, listening):
    (repository.folder / "led-to-the-token").symlink_to(data / "token")  # in the tree of every commit
    others = open_folder / "another-project"
    others.mkdir(mode=0o777)
    others.chmod(0o777)
    (others / "file").write_text("theirs")
    (data / "jobs" / "6-1").mkdir(parents=True)
    (data / "jobs" / "6-1" / "attempt.json").write_text("{}")
    (data / "spool").mkdir()
    (data / "spool" / "report.json").write_text("{}")
    job = data / "jobs" / "7-1"
    secrets = [
        "led-to-the-token",
        data / "token",
        data / "spool",
        job / "attempt.json",
        data / "jobs/6-1",
        others / "file",
    ]

    def spy(then):
        asked = {
            "secrets": [str(each) for each in (*secrets, f"/proc/{os.getpid()}/status", "/etc/machine-id")],
            "places": [str(each) for each in places],
            "pid": os.getpid(),
            "mark": MARK,
            "left": LEFT,
            "said": str(job / "work" / "said.txt"),
            **listening.told,
        }
        return SPY.format(asked=json.dumps(asked), then=then)

    return spy


def _left():
    """Processes that a job has left: those of its user, or those with the mark."""
    found = psutil.process_iter(["cmdline", "uids"])
    return [each for each in found if MARK in (each.info["cmdline"] or []) or int(USER) in (each.info["uids"] or [])]


def test_neither_builds_nor_measured_code_reach_anything_but_their_own(job, spy, places, repository, data, listening):
    source = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", f"{spy('')}\n{source}")
    answer = job("sandbox", build=spy(""))
    assert answer["failure"] is None, answer
    (case,) = answer["report"]["cases"]
    assert [each["error"] for each in case["variants"]] == [None, None]
    build, *measured = answer["said"]
    assert measured
    contained = dict.fromkeys(build, False) | {"reads": [], "capabilities": 0, "leaves": True}
    contained |= {"reads the process that measures": []}
    assert [build, *measured] == [contained] * (1 + len(measured))
    assert _written(places) == []
    with pytest.raises(BlockingIOError):
        listening.udp.recv(100)
    assert _left() == []
    assert answer["left"] == ["6-1"]
    assert (data / "token").read_text() == "secret"


def test_the_same_build_reaches_all_of_it_without_a_sandbox(job, spy, places, data, listening):
    try:
        answer = job("none", build=spy("sys.exit(1)"))
        assert answer["failure"][0] == "build"
        assert len(answer["said"]) == 1, answer
        (said,) = answer["said"]
        assert (
            {str(data / "token"), str(data / "spool")} < set(said["reads"]) - {"led-to-the-token"} == set(said["reads"])
        )
        assert listening.udp.recv(100) == b"from a job"
        assert said["connects by IPv6"] == _HAS_IPV6
        assert set(_written(places)) >= {data, data / "jobs" / "6-1"}
        assert said["connects"]
        assert said["connects by a socket without a file"]
        assert said["sees the test"]
        assert said["leaves"]
    finally:
        for each in _left():
            each.kill()


STUBBORN = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
HOG = """
import mmap, os, time
for _ in range(8):
    if os.fork() == 0:
        part = mmap.mmap(-1, {part})
        for at in range(0, {part}, 4096):
            part[at] = 1
        time.sleep(100)
time.sleep(100)
"""


@pytest.mark.sample(every=6)
@pytest.mark.parametrize(
    ("build", "limits", "timeout_s", "kind", "said"),
    [
        pytest.param(
            STUBBORN + "while True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.1)",
            {"processes": 40},
            8.0,
            "timeout",
            "not finished after 8 s",
            id="forks for ever and ignores SIGTERM",
        ),
        pytest.param(
            "x = bytearray(8 << 30)", {"memory_bytes": 1 << 30}, 60.0, "build", "MemoryError", id="wants 8 GiB"
        ),
        pytest.param(
            HOG.format(part=100 << 20),
            {"memory_bytes": 500 << 20},
            60.0,
            "workload",
            "of memory; the limit is 0.5",
            id="shares 0.8 GiB of memory among processes",
        ),
        pytest.param(
            "with open('big', 'wb') as big:\n    while True:\n        big.write(bytes(1 << 20))",
            {"file_bytes": 50 << 20},
            60.0,
            "build",
            "File too large",
            id="writes a file without end",
        ),
        pytest.param(
            "n = 0\nwhile True:\n    n += 1\n    with open(f'big{n}', 'wb') as big:\n        big.write(bytes(10 << 20))",
            {"disk_bytes": 200 << 20},
            60.0,
            "workload",
            "the disk has 0.2 GiB less free",
            id="fills the disk",
        ),
        pytest.param(
            "import os\nwhile True:\n    os.write(1, b'x' * (1 << 16))",
            {"file_bytes": 20 << 20},
            60.0,
            "workload",
            "File too large",
            id="prints without end",
        ),
    ],
)
def test_a_build_that_takes_without_end_is_ended_in_a_sentence_and_leaves_nothing(
    job, build, limits, timeout_s, kind, said
):
    answer = job("sandbox", build=build, limits=limits, timeout_s=timeout_s)
    assert answer["failure"][0] == kind
    assert said in answer["failure"][1] + answer["log"]
    assert answer["log_bytes"] <= 20 << 20
    assert answer["left"] == []
    assert _left() == []


POISON = """
import json, os
from pathlib import Path
from types import SimpleNamespace

cache = Path(os.environ["XDG_CACHE_HOME"]) / "pullback"
projects = cache / "projects"
said = {"altered": [], "found": [str(each) for each in cache.rglob("*planted*")]}
for each in projects.rglob("*"):
    try:
        with open(each, "a") as file:
            file.write("\\nplanted = True\\n")
        said["altered"].append(str(each))
    except OSError:
        pass
for name in ("environments/" + "0" * 15 + "a", "commits/PREVIOUS-" + "0" * 16):
    (projects / name).mkdir(parents=True, exist_ok=True)
    (projects / name / "planted").write_text("")
    (projects / (name + ".bytes")).write_text("1")
(cache / "native").mkdir(exist_ok=True)
(cache / "native" / "planted.object").write_text("code")
with open(os.environ["HOME"] + "/said.txt", "a") as file:
    file.write(json.dumps(said) + "\\n")
"""


def _kept(data):
    """Contents of all that is kept of jobs of the project's own commits."""
    files = [each for each in data.glob("sandboxed-*/*/pullback/**/*") if each.is_file() and "-forks/" not in str(each)]
    return {str(each): each.read_bytes() for each in files}


@pytest.mark.long
@pytest.mark.parametrize("trusted", [pytest.param(True, marks=pytest.mark.long), False])
def test_what_a_job_writes_into_its_cache_reaches_no_other_job(job, repository, data, trusted):
    assert job("sandbox")["failure"] is None
    before = _kept(data)
    assert [each for each in before if each.endswith("src/waves.py")]
    poison = POISON.replace("PREVIOUS", repository.git("rev-parse", "HEAD"))
    source = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", f"{poison}\n{source}")
    first = job("sandbox", build=poison, trusted=trusted)
    assert first["failure"] is None, first
    own = f"commits/{repository.git('rev-parse', 'HEAD')}-"
    assert [each for said in first["said"][1:] for each in said["altered"] if own in each and "/files/" in each] == []
    after = _kept(data)
    assert {name: after[name] for name in before} == before
    assert [name for name in after.keys() - before.keys() if trusted is False or own not in name] == []
    second = job("sandbox", build=f"# another\n{poison}")
    assert second["failure"] is None, second
    assert second["said"][0]["found"] == []


PLANT = """
import json, os
from pathlib import Path
from types import SimpleNamespace

objects = Path(os.environ["PULLBACK_CACHE_DIR"])
with open(os.environ["HOME"] + "/said.txt", "a") as file:
    file.write(json.dumps([str(each) for each in objects.rglob("*.object")]) + "\\n")
(objects / "of-another").mkdir(parents=True, exist_ok=True)
(objects / "of-another" / "planted.object").write_text("code")
"""


@pytest.mark.long
def test_object_code_that_a_build_writes_is_gone_when_commits_are_measured(job, repository):
    source = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", f"{PLANT}\n{source}")
    answer = job("sandbox", build=PLANT)
    assert answer["failure"] is None, answer
    assert answer["said"][:2] == [[], []]  # of the build, and of the first process that measures


BESIDE = """
import json, os
from pathlib import Path
from types import SimpleNamespace

home, objects = Path(os.environ["HOME"]), Path(os.environ["PULLBACK_CACHE_DIR"])
reference = home.with_name("reference")

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

def others():
    return [int(each) for each in os.listdir("/proc") if each.isdecimal() and os.getsid(int(each)) != os.getsid(0)]

if home.name == "candidate":
    (objects / "native").mkdir(exist_ok=True)
    said = {
        "own": attempt(lambda: (objects / "native" / "own.object").write_text("code")),
        "objects": attempt(lambda: (reference / "objects" / "planted.object").write_text("code")),
        "home": attempt(lambda: (reference / "planted").write_text("code")),
        "work": attempt(lambda: (home.parent / "planted").write_text("code")),
        "memory": sorted({attempt(lambda: open(f"/proc/{each}/mem", "r+b").close()) for each in others()}),
        "processes": sorted({attempt(lambda: os.kill(each, 0)) for each in others()}),
    }
    with open(home / "said.txt", "a") as file:
        file.write(json.dumps(said) + "\\n")
"""


@pytest.mark.long
@needs_landlock
def test_of_two_commits_that_are_compared_none_writes_what_the_other_one_loads(job, repository):
    reference = repository.commit("the reference")
    source = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", f"{BESIDE}\n{source}")
    answer = job("sandbox", reference=reference, timeout_s=120)
    assert answer["failure"] is None, answer
    assert {row["candidate"] for row in answer["report"]["comparisons"]} == {repository.git("rev-parse", "HEAD")}
    assert [row for row in answer["report"]["comparisons"] if row["outcome"] == "failed"] == []
    assert answer["said"]
    refused = "PermissionError"
    expected = {
        "own": "done",
        "objects": refused,
        "home": refused,
        "work": refused,
        "memory": [refused],
        "processes": [refused],
    }
    assert [each for each in answer["said"] if each != expected] == []


PLANT_SIDES = """
import os
from pathlib import Path
from types import SimpleNamespace

for top in (Path(os.environ["HOME"]), Path(os.environ["XDG_CACHE_HOME"]) / "sides"):
    for name in ("reference", "candidate"):
        (top / name / "objects").mkdir(parents=True, exist_ok=True)
        (top / name / "objects" / "planted.object").write_text("code")
Path(os.environ["HOME"], ".gitconfig").write_text("what no git reads")
"""
FIND = """
import json, os
from pathlib import Path
from types import SimpleNamespace

home, objects = Path(os.environ["HOME"]), Path(os.environ["PULLBACK_CACHE_DIR"])
with open(home / "said.txt", "a") as file:
    file.write(json.dumps([home.name, [str(each) for each in objects.rglob("*.object")]]) + "\\n")
"""


def test_no_build_writes_to_the_side_of_a_commit_or_the_settings_of_git_before_it_is_measured(job, repository):
    source = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", f"{FIND}\n{source}")
    repository.write("hostile.py", PLANT_SIDES)
    reference = repository.commit("the reference")
    repository.slow_down(2)
    repository.write("src/waves.py", f"{FIND}\n{(repository.folder / 'src/waves.py').read_text()}")
    answer = job("sandbox", build=PLANT_SIDES, reference=reference, timeout_s=120)
    assert answer["failure"] is None, answer
    assert {name for name, _ in answer["said"]} == {"reference", "candidate"}
    assert [planted for _, planted in answer["said"] if planted] == []


SEEN = """
import json, os
from pathlib import Path
from types import SimpleNamespace

commits = Path(os.environ["XDG_CACHE_HOME"]) / "pullback/projects/commits"
with open(os.environ["HOME"] + "/said.txt", "a") as file:
    file.write(json.dumps(sorted(each.name[:40] for each in commits.iterdir() if each.is_dir())) + "\\n")
"""


@pytest.mark.long
def test_both_commits_of_a_comparison_are_built_by_the_candidates_file_before_any_is_measured(job, repository):
    repository.write("hostile.py", SEEN)
    reference = repository.commit("the reference, whose own file has no command")
    answer = job("sandbox", build=SEEN, reference=reference, timeout_s=120)
    assert answer["failure"] is None, answer
    candidate = repository.git("rev-parse", "HEAD")
    assert answer["said"] == [[reference], sorted([reference, candidate])]


@pytest.mark.long
def test_a_report_that_is_a_link_to_a_secret_is_not_sent(job, data):
    build = f"""
import os, sys
work = os.environ["HOME"]
os.symlink({str(data / "token")!r}, work + "/failure.json")
os.kill(-1, 9)
"""
    answer = job("sandbox", build=build)
    assert answer["failure"][0] == "workload"
    assert answer["failure"][1].startswith("failure.json of the job cannot be read")
    assert "secret" not in json.dumps(answer)


FETCH = """
import json, os, socket, subprocess, sys, urllib.request

def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.read().decode()
    except OSError as error:
        return str(error)

def tunnel(host, port):
    proxy = urllib.request.urlsplit(os.environ["HTTPS_PROXY"])
    with socket.create_connection((proxy.hostname, proxy.port), 20) as way:
        way.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        return way.recv(1 << 16).decode().splitlines()[0]

listed, other = json.loads('PORTS')
said = {
    "listed": fetch(f"http://127.0.0.1:{listed}/"),
    "other": fetch(f"http://127.0.0.1:{other}/"),
    "tunnel": tunnel("127.0.0.1", listed),
    "other tunnel": tunnel("127.0.0.1", other),
    "links": [name for _, name in socket.if_nameindex()],
}
with open(os.environ["HOME"] + "/said.txt", "a") as file:
    file.write(json.dumps(said) + "\\n")
"""


@pytest.fixture
def served(tmp_path):
    """Two servers of files, and the ports of both."""
    (tmp_path / "index.html").write_text("a package")
    with ExitStack() as servers:
        handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
        both = [servers.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler)) for _ in range(2)]
        for server in both:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            servers.callback(server.shutdown)
        yield [server.server_address[1] for server in both]


@pytest.mark.long
def test_builds_reach_listed_hosts_by_the_agents_proxy_and_measured_code_reaches_nothing(job, spy, repository, served):
    source = (repository.folder / "src/waves.py").read_text()
    repository.write("src/waves.py", f"{spy('')}\n{source}")
    answer = job(
        "sandbox", build=FETCH.replace("PORTS", json.dumps(served)), builds=[[f"127.0.0.1:{served[0]}"], 1 << 20]
    )
    assert answer["failure"] is None, answer
    build, *measured = answer["said"]
    refused = f"builds may not reach 127.0.0.1:{served[1]}: to allow it, start the agent with --build-host 127.0.0.1:{served[1]}"
    assert build["listed"] == "a package"
    assert refused in build["other"]
    assert build["tunnel"] == "HTTP/1.1 200 connected"
    assert build["other tunnel"] == f"HTTP/1.1 403 {refused}"
    assert build["links"] == ["lo"]
    assert [each["connects"] for each in measured] == [False] * len(measured)
    assert measured
    failed = job(
        "sandbox",
        build=FETCH.replace("PORTS", json.dumps(served)) + "\nsys.exit(said['other'])",
        builds=[[f"127.0.0.1:{served[0]}"], 1 << 20],
    )
    assert failed["failure"][0] == "build"
    assert failed["failure"][1].splitlines()[-1] == refused


def test_a_job_ends_with_its_agent(open_folder, data, repository, command):
    """Nothing cleans up here: the agent is killed, and the kernel ends the rest."""
    repository.write("hostile.py", f"import subprocess\nsubprocess.run(['setsid', 'sleep', '{MARK}'])")
    declared = (repository.folder / "pullback.toml").read_text()
    repository.write("pullback.toml", declared.replace("[build]", '[build]\ncommands = ["python3 hostile.py"]'))
    asked = {"data": str(data), "repository": str(repository.folder), "sha": repository.commit("sleeps")}
    asked |= {"level": "sandbox", "user": USER if os.geteuid() == 0 else None}
    asked |= {"timeout_s": 100.0, "limits": {}, "builds": None, "trusted": True, "reference": None}
    arguments, environment = command
    with subprocess.Popen([*arguments, json.dumps(asked)], env=environment, stdout=subprocess.DEVNULL) as agent:
        _until(_left)
        agent.kill()
    _until(lambda: not _left())


def _until(happened):
    began = time.monotonic()
    while not happened():
        waited = time.monotonic() - began
        assert waited < 60
        time.sleep(0.05 + waited / 10)


def test_a_missing_bubblewrap_and_forbidden_namespaces_are_one_sentence(data, tmp_path, monkeypatch):
    user = USER if os.geteuid() == 0 else None
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"bubblewrap is not installed; install it \(apt-get install bubblewrap\)"):
        isolated(data, "sandbox", user).__enter__()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    with pytest.raises(UsageError, match=r"bwrap: No permissions to create a new namespace; .* forbid the namespaces"):
        isolated(data, "sandbox", user).__enter__()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for its jobs")
def test_an_agent_of_root_names_a_user_for_its_sandboxes(data):
    with pytest.raises(UsageError, match=r"--isolation sandbox: name the user that runs jobs.*--build-user 61234"):
        isolated(data, "sandbox").__enter__()
