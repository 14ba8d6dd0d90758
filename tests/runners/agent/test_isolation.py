import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from tests.runners.projects.conftest import Repository

import pullback
import pullback_runners
import pullback_service
from pullback_runners.agent.errors import PermanentError
from pullback_runners.agent.isolation import isolated

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of other users")

USER = "61234"  # a number needs no entry in the list of users

SPY = """
import os, subprocess, sys
data = {data!r}
def reads(path):
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else open(path).read())
    except OSError:
        return False
job = os.environ["HOME"].removesuffix("/work")
secrets = [data + "/token", data + "/spool", data + "/jobs", job, job + "/attempt.json"]
print("runs as", os.getuid(), "and reads", [path for path in secrets if reads(path)])
print("sees", [name for name in os.environ if "TOKEN" in name])
subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=subprocess.DEVNULL)
"""

DRIVER = """
import json, sys
from pathlib import Path
from pullback_runners.agent.client import Claim, Job, Lease
from pullback_runners.agent.isolation import cache_of, isolated
from pullback_runners.agent.jobfolder import JobFolder
from pullback_runners.agent.measurement import measure

data, repository, sha, user = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
commit = {"sha": sha, "parents": [], "branch": "main", "author": "A", "authored_at": None, "title": "t", "dirty": False}
lease = Lease(job_id="7", attempt=1, token="00000000-0000-4000-8000-000000000007", heartbeat_s=15.0)
with isolated(data, user, readable=[repository]) as user:
    folder = JobFolder.create(data / "jobs", lease, "key", user)
    claim = Claim(Job("demo", commit, "trial", (), 120.0, None), lease)
    report = measure(claim, repository, folder, "key", cache=cache_of(data, user), cpus=frozenset(),
                     tell=lambda _: None, cancelled=lambda: False, user=user)
    print(json.dumps({"report": report, "log": folder.log.read_text(), "owner": folder.report.stat().st_uid}))
"""


def _is_open(path):
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in Path(path).resolve().parents)


@pytest.fixture
def command():
    """A Python with our packages that another user can run: this one, or the system's where this one is root's alone."""
    packages = [Path(each.__file__).parents[1] for each in (pullback, pullback_runners, pullback_service)]
    packages += [Path(path) for path in sys.path if path.endswith("site-packages")]
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    pythons = [
        python for python in (sys.executable, shutil.which(minor, path="/usr/bin")) if python and _is_open(python)
    ]
    unreachable = [path for path in packages if not _is_open(path / "any")] or ([] if pythons else [sys.executable])
    if unreachable:
        pytest.skip(f"an ordinary user cannot reach {unreachable[0]}")
    return [pythons[0], "-P", "-c", DRIVER], {
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "PATH": "/usr/bin:/bin",
    }


@pytest.fixture
def open_folder():
    """A folder that others may pass through, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="pullback-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data(open_folder):
    folder = open_folder / "data"
    folder.mkdir()
    (folder / "token").write_text("secret")
    (folder / "token").chmod(0o600)
    return folder


def _of_the_user():
    return [each for each in psutil.process_iter(["uids", "cmdline"]) if int(USER) in each.info["uids"]]


def test_a_build_user_builds_and_measures_reads_no_secret_and_leaves_no_process(open_folder, data, command):
    (open_folder / "waves").mkdir()
    waves = Repository(open_folder / "waves")
    waves.write("spy.py", SPY.format(data=str(data)))
    declared = (waves.folder / "pullback.toml").read_text()
    waves.write("pullback.toml", declared.replace("[build]", '[build]\ncommands = ["python3 spy.py"]'))
    sha = waves.commit("a build that looks around")
    arguments, environment = command
    done = subprocess.run(
        [*arguments, str(data), str(waves.folder), sha, USER],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PULLBACK_TOKEN": "secret"},
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (case,) = answer["report"]["cases"]
    assert [each["error"] for each in case["variants"]] == [None, None]
    assert f"runs as {USER} and reads []" in answer["log"]
    assert "sees []" in answer["log"]
    assert answer["owner"] == int(USER)
    assert _of_the_user() == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no-such-user", "this machine has no such user; `useradd --system no-such-user` makes it"),
        ("root", "it reads everything; name a user that exists for this alone"),
        ("0", "it reads everything"),
    ],
)
def test_a_user_that_cannot_be_had_is_refused(name, said, data):
    with pytest.raises(PermanentError, match=f"--build-user {name}: {said}"), isolated(data, name):
        pass


def test_an_agent_of_no_root_is_told_to_start_as_root(data, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermanentError, match="only root can start processes of another user"), isolated(data, USER):
        pass


def test_a_user_who_cannot_run_pullback_is_refused(data, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with (
        pytest.raises(PermanentError, match=f"{USER}: it cannot run {tmp_path}/python .*where it may"),
        isolated(data, USER),
    ):
        pass


@pytest.mark.parametrize(
    ("mode", "readable", "said"), [(0o644, "/", "it can read .*/token"), (0o600, "/root", "it cannot read /root")]
)
def test_what_must_be_secret_and_what_must_not_is_tried(data, command, mode, readable, said):
    (data / "token").chmod(mode)
    (python, *_), environment = command
    program = f"""
from pathlib import Path
from pullback_runners.agent.isolation import isolated
with isolated(Path({str(data)!r}), {USER!r}, readable=[Path({readable!r})]):
    pass
"""
    done = subprocess.run([python, "-P", "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("pullback_runners.agent.errors.PermanentError: --build-user")
    assert said.replace(".*", str(data)) in last


def test_two_agents_do_not_share_a_build_user(data, command):
    (python, *_), environment = command
    program = f"""
from pathlib import Path
from pullback_runners.agent.isolation import isolated
with isolated(Path({str(data)!r}), {USER!r}), isolated(Path({str(data)!r}), {USER!r}):
    pass
"""
    done = subprocess.run([python, "-P", "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert "another agent builds as that user, and ends all its processes; name another one" in done.stderr


def test_without_a_build_user_nothing_is_changed(data):
    with isolated(data, None) as user:
        assert user is None
    assert sorted(each.name for each in data.iterdir()) == ["token"]
