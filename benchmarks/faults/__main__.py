"""Faults in uploads and jobs: what was acknowledged is there once, and every job ends once.

    python -m benchmarks.faults [--faults 10000] [--minutes 180] [--seed 1] [--agents 24] [--json FILE]

Starts a Postgres of its own with the durability of service, and `pullback serve`. For each fault an agent is forked that sends a report or
does a job, and one of its system calls is the fault: the process is killed there, the disk is full from there on, the connection is cut, or
the wall clock jumps by hours. Every twentieth time Postgres is killed meanwhile, and started again. Then a successor without faults takes
over, and the database is asked. Several agents do so at a time, each on a machine of its own: most of the time one waits for a lease, to try
again, or for Postgres. A run with the file of an earlier one goes on behind it, in a new database. Exit status 1 says that
something was lost, doubled, left, or answered with 500. Replicas and workers are killed, and lines cut at any byte, in tests/system/test_faults.py.
"""

import argparse
import itertools
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import psycopg
from benchmarks.faults.database import kill_and_start, wrong_in
from benchmarks.service_load.processes import TOKEN, serving

from pullback_service import migrations
from pullback_service.errors import PostgresError
from pullback_service.postgres import EmbeddedPostgres

KINDS = ("kill", "kill", "kill", "full", "cut", "clock")
"""Of faults; most are kills, at one call after the other."""
RESTART_EVERY = 20
HOURS = 6
VARIABLES = {"PULLBACK_RETRY_PAUSE_S": "0.1", "PULLBACK_HEARTBEAT_S": "1", "PULLBACK_LEASE_S": "4"}
"""Of the service: who was killed behind a claim is waited for as long as a lease."""
_RETRY_S = 300.0
_FINAL = ("done", "failed", "cancelled", "lost")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make faults until there are enough of them or the time is over; print and keep what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=10_000, help="number that there are to be in the end")
    parser.add_argument("--minutes", type=float, default=180.0, help="after which it ends in any case")
    parser.add_argument("--seed", type=int, default=1, help="of what is not in the order of its number")
    parser.add_argument("--agents", type=int, default=24, help="number that work at a time")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where the counts are kept, and where a run goes on from"
    )
    asked = parser.parse_args(arguments)
    record: dict[str, Any] = {"seed": asked.seed, "next": 0, "seconds": 0.0, "counts": {}, "wrong": []}
    if asked.json is not None and asked.json.exists():
        record = json.loads(asked.json.read_text())
    counts: Counter[str] = Counter(record["counts"])
    began, deadline = time.monotonic(), time.monotonic() + asked.minutes * 60
    first = record["next"]
    with tempfile.TemporaryDirectory(prefix="pullback-faults-") as name, _ground(Path(name), asked.agents) as lanes:
        for found in _faults(lanes, record["seed"], range(first, asked.faults), deadline):
            counts += found.counts
            record["wrong"] += found.wrong
            record["next"] += 1
            if asked.json is not None:
                kept = {**record, "counts": dict(counts), "seconds": record["seconds"] + time.monotonic() - began}
                asked.json.write_text(json.dumps(kept, indent=1) + "\n")
        whole = lanes[0].verdict()
    counts += whole.counts
    record["wrong"] += whole.wrong
    took_s = time.monotonic() - began
    record |= {"counts": dict(counts), "seconds": record["seconds"] + took_s}
    if asked.json is not None:
        asked.json.write_text(json.dumps(record, indent=1) + "\n")
    _print(record, record["next"] - first, took_s)
    return int(bool(record["wrong"]))


def _print(record: dict[str, Any], done: int, took_s: float) -> None:
    counts = record["counts"]
    print(f"{'fault':30} {'made':>6} {'agents ended by it':>20}")
    for kind in dict.fromkeys(KINDS):
        print(f"{kind:30} {counts.get(kind, 0):6} {counts.get(f'{kind}: ended by it', 0):20}")
    for other in (
        "restarts of Postgres",
        "acknowledged",
        "late results",
        *sorted(each for each in counts if each.startswith("answers")),
    ):
        print(f"{other:30} {counts.get(other, 0):6}")
    print(f"{'lost, doubled or left':30} {len(record['wrong']):6}")
    print(f"{done} faults in {took_s:.0f} s; {record['next']} in all")
    for sentence in record["wrong"]:
        print(f"WRONG: {sentence}")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Counts, and sentences on what is wrong."""

    counts: Counter[str]
    wrong: list[str]


def _faults(lanes: "Sequence[_Lane]", seed: int, numbers: Sequence[int], deadline: float) -> Iterator[_Outcome]:
    """Make the faults of some numbers, as many at a time as there are lanes, until the time is over; in the order of the numbers."""
    idle: queue.SimpleQueue[_Lane] = queue.SimpleQueue()
    for each in lanes:
        idle.put(each)

    def make(number: int) -> _Outcome | None:
        if time.monotonic() > deadline:
            return None
        lane = idle.get()
        try:
            return lane.fault(seed, number)
        finally:
            idle.put(lane)

    making = ThreadPoolExecutor(len(lanes))
    try:
        for found in making.map(make, numbers):
            if found is None:
                return
            yield found
    finally:
        making.shutdown(cancel_futures=True)


class _Lane:
    """Agents of one machine, one after the other, and the service and the database that they are to be right with."""

    def __init__(
        self,
        name: str,
        folder: Path,
        server: EmbeddedPostgres,
        port: int,
        sender: "subprocess.Popen[str]",
        restarts: threading.Lock,
    ) -> None:
        self._name = name
        self._folder = folder
        self._server = server
        self._restarts = restarts
        self._sender = sender
        self._url = f"http://127.0.0.1:{port}"
        self._http = httpx.Client(
            base_url=self._url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60, trust_env=False
        )
        machine = {"fingerprint": name, "name": name, "facts": {}}
        self._agent = self._ask("POST", "/api/v1/agents/enroll", json={"name": name, "machine": machine})["agent_id"]
        self.calls: Mapping[str, int] = {}
        """System calls of an upload and of a job."""

    def close(self) -> None:
        """Close the connections to the service."""
        self._http.close()

    def count_calls(self) -> Mapping[str, int]:
        """The system calls of an upload and of a job without a fault."""
        job = self._ask("POST", "/api/v1/jobs", json=self._wanted(10**9))["id"]
        orders = {"upload": (10**9, None), "job": (None, job)}
        return {what: self._order(f"calm {what}", *order, "count", 0, 0)["calls"] for what, order in orders.items()}

    def fault(self, seed: int, number: int) -> _Outcome:
        """Make the fault of a number, let a successor take over, and look at what is there then."""
        counts: Counter[str] = Counter()
        chance = random.Random(f"{seed} {number}")  # noqa: S311 - repeatable
        what = ("upload", "job")[number % 2]
        kind = KINDS[number // 2 % len(KINDS)]
        call = number // 2 % self.calls[what] + 1 if kind == "kill" else chance.randrange(self.calls[what]) + 1
        shift_s = chance.choice((-1, 1)) * chance.randrange(600, HOURS * 3600)
        data = f"{number}"
        restart = None
        if number % RESTART_EVERY == number // RESTART_EVERY % 2:  # beside an upload and beside a job, in turn
            restart = threading.Timer(chance.random() * 0.3, self._restart)
            restart.start()
            counts["restarts of Postgres"] += 1
        job = self._ask("POST", "/api/v1/jobs", json=self._wanted(number))["id"] if what == "job" else None
        answer = self._order(data, number, job, kind, call, shift_s)
        ended = answer["ended"]
        counts[kind] += 1
        counts[f"{kind}: ended by it"] += ended != 0
        if restart is not None:
            restart.join()
        wrong = [] if ended in _expected(kind) else [_ended(number, kind, "the agent", answer)]
        successor = self._order(data, number, job, "none", 0, 0)
        wrong += [] if successor["ended"] == 0 else [_ended(number, kind, "its successor", successor)]
        if job is not None:
            wrong += self._job(number, job, data, counts)
        wrong += self._acknowledged(number, data, counts, upload=what == "upload")
        return _Outcome(counts, wrong)

    def verdict(self) -> _Outcome:
        """Answers of the service in all, and what is wrong with the whole."""
        counts: Counter[str] = Counter()
        wrong = []
        for line in self._http.get("/metrics").raise_for_status().text.splitlines():
            if line.startswith("pullback_http_requests_total{") and 'status="5' in line:
                status = line.partition('status="')[2][:3]
                counts[f"answers {status}"] += int(float(line.rpartition(" ")[2]))
                wrong += [] if status == "503" else [f"the service answered {line}"]
        return _Outcome(counts, wrong + wrong_in(self._rows))

    def _restart(self) -> None:
        with self._restarts:
            kill_and_start(self._server)

    def _job(self, number: int, job: str, data: str, counts: Counter[str]) -> list[str]:
        """Let agents work until the job has ended, and look at how: a result whose lease had run out is stored as late, and ends it too."""
        deadline = time.monotonic() + _RETRY_S
        while (found := self._ask("GET", f"/api/v1/jobs/{job}"))["state"] not in _FINAL:
            if time.monotonic() > deadline:
                return [f"fault {number}: job {job} is {found['state']} after {_RETRY_S:g} s"]
            time.sleep(1)  # a lease is waited for, and each fork costs as much as a fault
            self._order(data, None, job, "none", 0, 0)
        results = Counter(status for (status,) in self._rows("SELECT status FROM report WHERE job_id = %s", job))
        counts["late results"] += results["late"]
        if found["state"] == "done" and results.total() > 0 and results["accepted"] <= 1:
            return []
        return [f"fault {number}: job {job} is {found['state']} with the reports {dict(results)}"]

    def _acknowledged(self, number: int, data: str, counts: Counter[str], *, upload: bool) -> list[str]:
        """Look for all that the agents of a folder were told is stored."""
        spool = self._folder / data / "spool"
        sent = [json.loads(path.read_text()) for path in (spool / "sent").glob("*.json")]
        keys = {each["key"] for each in sent if "report" in each["path"]}
        if upload:
            keys.add(str(uuid5(NAMESPACE_URL, f"upload {number}")))
        stored = Counter(
            str(key)
            for (key,) in self._rows("SELECT idempotency_key FROM report WHERE idempotency_key = ANY(%s)", list(keys))
        )
        counts["acknowledged"] += len(keys)
        wrong = [f"fault {number}: {key} is stored {stored[key]} times" for key in sorted(keys) if stored[key] != 1]
        left = [
            path.name
            for path in (*spool.glob("*.json"), *(spool / "refused").iterdir(), *(spool.parent / "jobs").iterdir())
        ]
        return wrong + [f"fault {number}: {name} is left" for name in left]

    def _order(
        self, data: str, number: int | None, job: str | None, kind: str, call: int, shift_s: int
    ) -> dict[str, Any]:
        assert self._sender.stdin is not None  # noqa: S101 - a pipe
        assert self._sender.stdout is not None  # noqa: S101 - a pipe
        order = {"server": self._url, "token": TOKEN, "data": str(self._folder / data), "kind": kind, "call": call}
        order |= {"machine": self._name}
        order |= {
            "shift_s": shift_s,
            "agent": self._agent if job is not None else None,
            "upload": number if job is None else None,
        }
        self._sender.stdin.write(json.dumps(order) + "\n")
        self._sender.stdin.flush()
        answer: dict[str, Any] = json.loads(self._sender.stdout.readline())
        return answer

    def _ask(self, method: str, path: str, **parts: Any) -> dict[str, Any]:
        deadline = time.monotonic() + _RETRY_S
        while True:
            answer = self._http.request(method, path, **parts)
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                found: dict[str, Any] = answer.raise_for_status().json()
                return found
            time.sleep(0.1)

    def _rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        deadline = time.monotonic() + _RETRY_S
        while True:
            try:
                with psycopg.connect(self._server.url(), autocommit=True) as connection:
                    return connection.execute(query, parameters).fetchall()
            except (PostgresError, psycopg.OperationalError):  # killed beside another agent
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def _wanted(self, number: int) -> dict[str, Any]:
        asked = {"project": "jobs", "commit": {"sha": f"{number + 1:040x}"}, "suite": "quick", "timeout_s": 300}
        return asked | {"requires": {"machine": self._name}}


def _ended(number: int, kind: str, who: str, answer: Mapping[str, Any]) -> str:
    reason = f": {answer['reason']}" if answer["reason"] else ""
    return f"fault {number} ({kind}): {who} ended with {answer['ended']}{reason}"


def _expected(kind: str) -> tuple[int, ...]:
    """The ways in which an agent may end: 2 is that of one whose disk is full."""
    return {"kill": (0, -9), "full": (0, 2)}.get(kind, (0,))


@contextmanager
def _ground(folder: Path, agents: int) -> Iterator[Sequence[_Lane]]:
    """A service with its database, and lanes of agents."""
    folder.chmod(0o755)
    library = folder / "faulting.so"
    source = Path(__file__).with_name("faulting.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)  # noqa: S603, S607 - our own source
    server = EmbeddedPostgres(folder / "postgres")
    migrations.upgrade(server.start())
    try:
        with (
            serving(server, folder / "service", variables=VARIABLES) as service,
            (folder / "senders.log").open("wb") as log,
            ExitStack() as open_lanes,
        ):
            restarts = threading.Lock()
            environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(Path(__file__).parents[2])}
            lanes = []
            try:
                for number in range(agents):
                    sender = open_lanes.enter_context(
                        subprocess.Popen(
                            [sys.executable, "-P", "-m", "benchmarks.faults.sender"],
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            stderr=log,
                            text=True,
                            env=environment,
                        )
                    )
                    open_lanes.callback(sender.kill)
                    lanes.append(_Lane(f"faulted {number}", folder, server, service.port, sender, restarts))
                    open_lanes.callback(lanes[-1].close)
                calls = lanes[0].count_calls()
                for lane in lanes:
                    lane.calls = calls
                yield lanes
            finally:
                print((folder / "senders.log").read_text(errors="replace")[-3000:], file=sys.stderr)
                for each in (folder / "service").glob("*.log"):
                    _print_errors(each)
    finally:
        server.destroy()


def _print_errors(log: Path) -> None:
    """Print the errors that the service did not expect, with their tracebacks: the database and the log are gone when the run has ended."""
    with log.open(errors="replace") as lines:
        for line in lines:
            if "unexpected_error" in line:
                print(line.rstrip(), *itertools.islice(lines, 200), file=sys.stderr, sep="\n")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was started is ended
    sys.exit(main())
