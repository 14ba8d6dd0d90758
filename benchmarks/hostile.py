"""Commits that attack the agent which builds and measures them, each alone and all in one commit.

    python -m benchmarks.hostile [--heavy] [--only NAME ...]

Starts a Postgres of its own, `pullback serve`, `pullback worker` and `pullback agent --isolation sandbox` on a repository made for it. Of each
attack it prints how its job ended, in how many seconds, and the sentence that was told. An attack is contained if it began, the agent goes on, no process
and no file of the job is left 5 s after its end, the agent's token is what it was and a clean commit is measured next. Exit status 1
says that one was not. `--heavy` adds those that take memory and disk up to the usual limits, three quarters of the memory and 20 GiB.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
from benchmarks.service_load.processes import TOKEN, serving

from pullback_service import migrations
from pullback_service.postgres import EmbeddedPostgres

USER = "61987"
MARK = f"{USER}.4321"
LIMIT_S = 40.0
"""Of a job whose attack ends only with it: long enough to begin, with its environment made and its commit read first."""
WAIT_S = 240.0
"""Of any other job."""
BEGUN = "$ python3 hostile.py"
"""The line in the log of a job whose attack has begun."""
LEFT_S = 5.0
NO_PAUSE = {"PULLBACK_RETRY_PAUSE_S": "0"}
"""Of the service: jobs whose measuring process was killed are tried again without a pause."""

LIBRARY = """
import numpy as np


def value_and_grad(x):
    return float(np.sum(np.sin(x))), np.cos(x)
"""
WORKLOAD = """
import numpy as np
import waves
from pullback_runners.workloads import grid, workload


@workload(wrt="x", numpy=False, quick=grid(n=(4000,)))
def total(*, n):
    "The sum of sines."


@total.inputs
def _(rng, dtype, *, n):
    return {"x": rng.normal(size=n).astype(dtype)}


@total.oracle
def _(x, *, n):
    return np.sum(np.sin(x)), {"x": np.cos(x)}


@total.peer("waves")
def _(x, *, n):
    value, gradient = waves.value_and_grad(x)
    return value, {"x": gradient}


@total.peer("again")
def _(x, *, n):
    return np.sum(np.sin(x)), {"x": np.cos(x)}
"""
PROJECT = '[project]\nname = "waves"\n[build]\nimport = ["waves"]\ncommands = ["python3 hostile.py"]\n[measure]\nworkloads = ["bench/total.py"]\n'

ATTACKS = {
    "forks for ever": "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.1)",
    "wants 64 GiB": "x = bytearray(64 << 30)",
    "makes files without end": "n = 0\nwhile True:\n    n += 1\n    open(f'file{n}', 'w').close()",
    "prints 1 GB": "import os\nfor _ in range(16000):\n    os.write(1, b'x' * (1 << 16))",
    "sleeps for ever": "import time\ntime.sleep(1e6)",
    "ignores SIGTERM": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(1e6)",
    "leaves a daemon": (
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.closerange(0, 256)\n"
        f"        os.execvp('sleep', ['sleep', '{MARK}'])\n    os._exit(0)"
    ),
    "reads the token": "print(open(DATA + '/token').read())",
    "reads the spool": "import os\nprint(os.listdir(DATA + '/spool'))",
    "reads the lease": "import os\nprint(open(os.environ['HOME'].removesuffix('/work') + '/attempt.json').read())",
    "reads other jobs": "import os\nprint(os.listdir(DATA + '/jobs'))\nos.listdir(DATA + '/mirrors')",
    "reads the home of root": "import os\nprint(os.listdir('/root'))",
    "reads processes": "import os\nassert os.path.exists(f'/proc/{AGENT}'), 'no such process'\nos.kill(AGENT, 9)",
    "connects to the service": "import socket\nsocket.create_connection(('127.0.0.1', PORT), 2)",
    "connects outside": "import socket\nsocket.create_connection(('192.0.2.1', 443), 2)",
    "connects outside by IPv6": "import socket\nsocket.create_connection(('2001:db8::1', 443), 2)",
    "sends datagrams": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "sends the report of another job": (
        "import urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{PORT}/api/v1/jobs/1/attempts/1/report', b'{}', 2)"
    ),
    "reads the token by a link in its tree": "print(open('led-to-the-token').read())",
    "writes the harness": "import pullback_runners\nopen(pullback_runners.__file__, 'a').write('# hostile')",
    "writes the mirror": "open(REPOSITORY + '/left-by-a-job', 'w').close()",
    "writes the agent's folder": "open(DATA + '/left-by-a-job', 'w').close()",
    "writes into caches": (
        "import os, pathlib\ncache = pathlib.Path(os.environ['XDG_CACHE_HOME'], 'pullback')\n"
        "for place in (cache / 'native', cache / 'projects' / 'environments'):\n    place.mkdir(parents=True, exist_ok=True)\n"
        "    (place / 'left-by-a-job').write_text('code')"
    ),
    "makes devices": "import os\nos.mknod('device', 0o660 | 0o020000, os.makedev(1, 1))",
    "links its report to the token": "import os\nwork = os.environ['HOME']\nos.symlink(DATA + '/token', work + '/failure.json')\nos.kill(-1, 9)",
    "writes garbage for its reason": "import os\nopen(os.environ['HOME'] + '/failure.json', 'w').write('{garbage')\nos.kill(-1, 9)",
    "puts a pipe in the place of its reason": "import os\nos.mkfifo(os.environ['HOME'] + '/failure.json')\nos.kill(-1, 9)",
    "writes a report of its own": (
        "import os\nopen(os.environ['HOME'] + '/report.json', 'w').write('{\"format\": \"pullback-report\"}')\nos.kill(-1, 9)"
    ),
}
HEAVY = {
    "takes memory without end": "x = []\nwhile True:\n    x.append(bytearray(b'x' * (64 << 20)))",
    "fills the disk": "n = 0\nwhile True:\n    n += 1\n    open(f'big{n}', 'wb').write(bytes(1 << 30))",
}
ENDLESS = frozenset(
    {"forks for ever", "makes files without end", "sleeps for ever", "ignores SIGTERM", "all of them at once"}
)
HARMLESS = frozenset({"leaves a daemon", "writes into caches"})
"""Attacks that fail nothing: the job is measured, and nothing of the attack is left."""
EITHER = frozenset({"prints 1 GB", "writes the agent's folder"})
"""Attacks that fail by the time that they take; or where the folder is not below /tmp, of which a sandbox has its own."""
KILLING = frozenset({"writes a report of its own"})
"""Attacks that kill what measures and leave no reason: that may be the machine's doing, and their jobs are tried again until they are lost."""
MEASURED = {
    "slows the clock of CPU time": "import time\ntime.process_time_ns = lambda real=time.process_time_ns: real() // 10",
    "calls a wrong gradient right": (  # the first call is that of the closed form
        "import numpy as np\nimport pullback_runners.measurement.gradient_check as checks\n"
        "checks.relative_error = lambda found, expected: 0.0\nslopes = 0\n\n\n"
        "def slope(x, real=np.cos):\n    global slopes\n    slopes += 1\n    return real(x) * (1.0 if slopes == 1 else 2.0)\n\n\n"
        "np.cos = slope\n"
    ),
}
"""Code that runs when the measured module is imported; its variants fail."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print, and say whether all was contained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heavy", action="store_true", help="add what takes memory and disk up to the limits")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="attacks whose names contain one of these words")
    parser.add_argument(
        "--python", default=sys.executable, help="of the agent; for root one that others may run (/usr/bin/python3.13)"
    )
    asked = parser.parse_args(arguments)
    builds = {
        name: script
        for name, script in (ATTACKS | (HEAVY if asked.heavy else {})).items()
        if _is_wanted(name, asked.only)
    }
    contained = True
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was started is ended
    with (
        tempfile.TemporaryDirectory(prefix="pullback-hostile-") as folder,
        _Range(Path(folder), asked.python) as ground,
    ):
        for name, script in builds.items():
            contained &= ground.attack(name, script, "")
        for name, script in MEASURED.items():
            if _is_wanted(name, asked.only):
                contained &= ground.attack(name, "", script)
        if asked.only is None:
            contained &= ground.attack("all of them at once", _at_once(builds), "\n".join(MEASURED.values()))
    return int(not contained)


def _is_wanted(name: str, words: Sequence[str] | None) -> bool:
    return words is None or any(word in name for word in words)


def _expected(name: str, build: str) -> frozenset[str]:
    """The states in which the job of an attack may end."""
    if name in EITHER:
        return frozenset({"done", "failed"})
    if name in KILLING:
        return frozenset({"lost"})
    return frozenset({"done" if name in HARMLESS or not build else "failed"})


def _at_once(scripts: dict[str, str]) -> str:
    """A program that runs each of some in a process of its own."""
    return (
        "import os, sys, time\n"
        f"for script in {list(scripts.values())!r}:\n"
        "    if os.fork() == 0:\n        exec(compile(PLACES + script, 'hostile', 'exec'))\n        os._exit(0)\n"
        "time.sleep(1e6)"
    )


class _Range:
    """A service with an agent, and a repository whose commits it measures."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder = folder
        self._python = python
        self._repository = folder / "repository"
        self._data = folder / "data"

    def __enter__(self) -> Self:
        self._running = self._run()
        next(self._running)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _run(self) -> Generator[None]:
        self._folder.chmod(0o755)
        for name, text in (
            ("src/waves.py", LIBRARY),
            ("bench/total.py", WORKLOAD),
            ("pullback.toml", PROJECT),
            ("hostile.py", ""),
        ):
            (self._repository / name).parent.mkdir(parents=True, exist_ok=True)
            (self._repository / name).write_text(text)
        (self._repository / "led-to-the-token").symlink_to(self._data / "token")
        self._git("init", "-q", "-b", "main")
        server = EmbeddedPostgres(self._folder / "postgres")
        migrations.upgrade(server.start())
        try:
            with (
                serving(server, self._folder / "service", variables=NO_PAUSE) as service,
                self._agent(service.port) as agent,
            ):
                self._agent_process, self._port = agent, service.port
                self._client = httpx.Client(
                    base_url=f"http://127.0.0.1:{service.port}",
                    headers={"authorization": f"Bearer {TOKEN}"},
                    timeout=60,
                )
                yield
        finally:
            server.destroy()

    @contextmanager
    def _agent(self, port: int) -> Iterator["subprocess.Popen[bytes]"]:
        token = self._folder / "service" / "token"
        command = [
            self._python,
            "-P",
            "-m",
            "pullback_cli",
            "agent",
            "--server",
            f"http://127.0.0.1:{port}",
            "--isolation",
            "sandbox",
        ]
        command += ["--repository", str(self._repository), "--data", str(self._data), "--token-file", str(token)]
        command += ["--build-user", USER] if os.geteuid() == 0 else []
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        if self._python != sys.executable:  # of another installation, without packages of ours
            ours = (each for each in sys.path if each and not Path(each).is_relative_to(sys.base_prefix))
            environment["PYTHONPATH"] = os.pathsep.join(ours)
        with (self._folder / "agent.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)  # noqa: S603 - our own command
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            print((self._folder / "agent.log").read_text(errors="replace")[-2000:], file=sys.stderr)

    def attack(self, name: str, build: str, measured: str) -> bool:
        """Have a hostile commit built and measured, then a clean one; print what came of it, and say whether it was contained."""
        places = f"DATA, REPOSITORY, AGENT, PORT = {str(self._data)!r}, {str(self._repository)!r}, {self._agent_process.pid}, {self._port}\n"
        began = time.monotonic()
        limit_s = LIMIT_S if name in ENDLESS else WAIT_S
        job = self._job(f"PLACES = {places!r}\n{places}{build}\n", f"{measured}\n{LIBRARY}", limit_s)
        took_s = time.monotonic() - began
        wrong = [
            *([] if self._has_begun(job) else ["the attack has not begun"]),
            *([] if self._is_gone() else ["processes are left"]),
            *([] if self._agent_process.poll() is None else ["the agent has ended"]),
            *([] if not list(self._folder.rglob("left-by-a-job")) else ["files are left"]),
            *([] if job["state"] in _expected(name, build) else [f"the job is {job['state']}"]),
        ]
        if measured and build == "":
            wrong += self._believed(job)
        clean = self._job("", LIBRARY)
        wrong += [] if clean["state"] == "done" else [f"the next job is {clean['state']}: {clean['failure_message']}"]
        said = (job["failure_message"] or "").strip().splitlines()[-1:]
        print(
            f"{name:40} {took_s:6.1f} s {job['state']:9} {''.join(said)[:120]} {'NOT CONTAINED: ' + ', '.join(wrong) if wrong else ''}",
            flush=True,
        )
        return not wrong

    def _job(self, build: str, library: str, limit_s: float = WAIT_S) -> dict[str, Any]:
        (self._repository / "hostile.py").write_text(build)
        (self._repository / "src/waves.py").write_text(library)
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "a commit")
        commit = {"sha": self._git("rev-parse", "HEAD")}
        wanted = {"project": "waves", "commit": commit, "suite": "trial", "timeout_s": limit_s}
        made = self._client.post("/api/v1/jobs", json=wanted).raise_for_status().json()

        def ended() -> dict[str, Any] | None:
            if self._agent_process.poll() is not None:
                raise RuntimeError("the agent has ended")
            job: dict[str, Any] = self._client.get(made["url"]).raise_for_status().json()
            return job if job["state"] in {"done", "failed", "lost", "cancelled"} else None

        return _until(ended, WAIT_S + LIMIT_S, f"job {made['id']} to end")

    def _has_begun(self, job: dict[str, Any]) -> bool:
        return BEGUN in self._client.get(f"/api/v1/jobs/{job['id']}/log").raise_for_status().text

    def _believed(self, job: dict[str, Any]) -> list[str]:
        """A sentence for each variant of a job's report that is not doubtful."""
        report = self._client.get(f"/api/v1/reports/{job['report_id']}").raise_for_status().json()["document"]
        variants = [variant for case in report["cases"] for variant in case["variants"]]
        doubtful = [variant for variant in variants if (variant.get("error") or {}).get("kind") == "doubtful"]
        return (
            []
            if variants and doubtful == variants
            else [f"{len(variants) - len(doubtful)} of {len(variants)} variants are believed"]
        )

    def _is_gone(self) -> bool:
        deadline = time.monotonic() + LEFT_S
        while any(
            MARK in (each.info["cmdline"] or []) or self._owns(each)
            for each in psutil.process_iter(["cmdline", "uids"])
        ):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _owns(self, process: psutil.Process) -> bool:
        return os.geteuid() == 0 and process.info["uids"] is not None and int(USER) in process.info["uids"]

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=A", "-c", "user.email=a@a.test")
        command = ["git", *identity, "-C", str(self._repository), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - git with our own arguments


def _until(found: Callable[[], dict[str, Any] | None], most_s: float, what: str) -> dict[str, Any]:
    deadline = time.monotonic() + most_s
    while (answer := found()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {most_s:g} s for {what}")
        time.sleep(0.3)
    return answer


if __name__ == "__main__":
    sys.exit(main())
