"""An agent that sends a report or does a job, with one fault of its system calls: orders on standard input, answers on standard output.

Each order is done by a fork, so that a kill costs no start of Python.
"""

import ctypes
import errno
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from pullback_runners.agent.claims import Claim
from pullback_runners.agent.client import ServiceClient
from pullback_runners.agent.daemon import AgentOptions, _Agent
from pullback_runners.agent.deliveries import report_delivery
from pullback_runners.agent.heartbeat import Heartbeat
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.retries import retries
from pullback_runners.agent.signals import StopSignals
from pullback_runners.agent.spool import Delivery
from pullback_runners.sandbox.isolation import Isolation

KINDS = ("none", "count", "kill", "full", "cut", "clock")
_SETTLED_S = 300.0
"""Longer than the retries of an upload take while Postgres is killed again and again."""
_FULL_S = 2.0
"""Of a full disk, which takes no word of what was sent: the successor sends it again."""


def report_of(number: int, key: str, sha: str, project: str, machine: str) -> dict[str, Any]:
    """A small report, of a number and a machine."""
    values = [1 + number / 1e5 + process / 100 for process in range(3)]
    metric = {"unit": "s", "clock": "cpu", "processes": values}
    case = {"workload": f"w{number % 7}", "params": {"n": 10}, "dtype": "f4", "device": "cpu"}
    return {
        "format": "pullback-report",
        "version": 1,
        "id": key,
        "started_at": "2026-02-01T12:00:00Z",
        "project": project,
        "commit": {"sha": sha, "parents": [], "branch": "main", "dirty": False},
        "machine": {"fingerprint": machine, "name": machine, "facts": {}},
        "harness": {"version": "1", "suite": "quick", "quality": "clean"},
        "cases": [
            {
                "case": case,
                "gradient": {"ok": True},
                "variants": [{"variant": "unfused", "kind": "tier", "metrics": {"time": metric}}],
            }
        ],
    }


class _Sender(_Agent):
    """The agent, but for what it measures: reports are made up."""

    patience_s = _SETTLED_S
    """Until what was put into the spool counts as not sent."""

    def settle_and_send(self) -> None:
        """Begin to send, what an earlier agent left first, as every agent does when it starts."""
        self._settle_leftovers()
        self._uploads.start()

    def upload(self, number: int) -> None:
        """Send a report that belongs to no job."""
        key = str(uuid5(NAMESPACE_URL, f"upload {number}"))
        body = report_of(number, key, f"{number // 3 + 1:040x}", "uploads", self._options.labels["machine"])
        self._uploads.put(Delivery(key, "/api/v1/reports", body, None))

    def work_on(self, agent_id: int) -> None:
        """Do a job, if there is one, asked for as often as an agent asks, but without waiting."""
        for attempt in retries():
            with attempt:
                claim = self._client.claim(
                    agent_id, labels=self._labels, waiting=self._spool.held(), wait_s=0, kinds=("run",)
                )
        if claim is not None:
            self._do(claim)

    def wait_until_sent(self) -> None:
        """Wait until nothing is left in the spool."""
        for path in self._spool.waiting():
            if not self._uploads.wait_for(path, self.patience_s):
                raise TimeoutError(f"{path.name} was not sent in {self.patience_s:g} s")

    def _deliver(self, delivery: Delivery, folder: JobFolder, *, wait_s: float) -> None:
        super()._deliver(delivery, folder, wait_s=min(wait_s, self.patience_s))

    def _measured(self, claim: Claim, folder: JobFolder, key: str, heartbeat: Heartbeat) -> Delivery:
        del heartbeat
        folder.log.write_text("measured nothing\n")
        number = int(claim.lease.job_id)
        machine = self._options.labels["machine"]
        report = report_of(number, key, claim.job.sha, claim.job.project or "jobs", machine)
        return report_delivery(claim.lease, key, report)


def _obey(order: Mapping[str, Any], library: ctypes.CDLL) -> None:
    with ServiceClient(order["server"], token=order["token"]) as client:
        options = AgentOptions(
            *(order["server"], Path(order["data"])),
            token=order["token"],
            labels={"machine": order["machine"]},
            least_free_bytes=0,
        )
        sender = _Sender(options, client, StopSignals(), frozenset(), Isolation())
        library.faulting_arm(KINDS.index(order["kind"]), ctypes.c_long(order["call"]), ctypes.c_long(order["shift_s"]))
        sender.patience_s = _FULL_S if order["kind"] == "full" else _SETTLED_S
        sender.settle_and_send()
        if order["upload"] is not None:
            sender.upload(order["upload"])
        if order["agent"] is not None:
            sender.work_on(order["agent"])
        sender.wait_until_sent()


def main() -> None:
    """Fork for each order, and answer with how the fork ended, how many calls it made, and the error that it ended with."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the agent logs to standard output
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.faulting_calls.restype = ctypes.c_long
    import prometheus_client  # noqa: F401, PLC0415 - with the client, what each fork would import anew

    with ServiceClient("http://127.0.0.1", token=""):
        pass
    for line in sys.stdin:
        order = json.loads(line)
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            status, reason = 1, ""
            try:
                _obey(order, library)
                status = 0
            except BaseException as error:  # noqa: BLE001 - the end of a fork
                is_full = isinstance(error, TimeoutError) or (
                    isinstance(error, OSError) and error.errno == errno.ENOSPC
                )
                status = 2 if order["kind"] == "full" and is_full else 1
                reason = repr(error)
            finally:
                calls = library.faulting_calls()
                library.faulting_arm(0, ctypes.c_long(0), ctypes.c_long(0))
                os.write(write, json.dumps({"calls": calls, "reason": reason}).encode())
                os._exit(status)
        os.close(write)
        with os.fdopen(read, "rb") as answer:
            told = json.loads(answer.read() or b'{"calls": 0, "reason": ""}')  # who was killed says nothing
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"ended": ended, **told}), file=answers, flush=True)


if __name__ == "__main__":
    main()
