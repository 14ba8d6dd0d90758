"""The agent's side of measuring: start the measuring process, follow it, end it in time."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pullback_runners.agent.client import Claim
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.jobfolder import JobFolder
from pullback_runners.agent.process_mark import ProcessMark, end_trees
from pullback_runners.agent.spool import write_synced
from pullback_runners.machine import HOST_VARIABLE
from pullback_runners.progress import Progress

LARGEST_REPORT_BYTES = 64 * 1024 * 1024
END_GRACE_S = 10.0
_LOOK_S = 0.25

# What the measured code may see of the agent's environment: enough to run Python, nothing that is secret.
_PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "NO_COLOR",
    HOST_VARIABLE,
)


def measure(
    claim: Claim,
    repository: Path,
    folder: JobFolder,
    key: str,
    *,
    cache: Path,
    device: str = "cpu",
    cpus: frozenset[int],
    tell: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> Mapping[str, Any]:
    """Build and measure a job and return its report; JobFailedError says why there is none.

    `repository` has the commits of the job, `cache` keeps environments and what was built of commits for later jobs.
    Whatever happens in here, an exception from a signal handler included, no process of the job is left afterwards.
    """
    job, lease = claim.job, claim.lease
    order = {
        "suite": job.suite,
        "cases": list(job.cases),
        "variants": list(job.variants),
        "effort": job.effort,
        "device": device,
        "repository": str(repository),
        "commit": {**job.commit, "dirty": False},
        "reference": None if job.reference is None else {**job.reference, "dirty": False},
        "project": job.project,
        "job": {"id": lease.job_id, "attempt": lease.attempt},
        "key": key,
        "cpus": sorted(cpus),
    }
    write_synced(folder.order, json.dumps(order).encode())
    read_end, write_end = os.pipe()
    with folder.log.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [
                *(sys.executable, "-P", "-m", "pullback_runners.agent.measuring"),
                *(str(folder.path), str(write_end), str(os.getpid())),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"XDG_CACHE_HOME": str(cache)},
            pass_fds=[write_end],
            start_new_session=True,
        )
    os.close(write_end)
    mark = ProcessMark.of(process.pid)
    try:
        folder.mark_measuring(mark)
        _follow(process, read_end, deadline=time.monotonic() + job.timeout_s, tell=tell, cancelled=cancelled)
    finally:
        os.close(read_end)
        if process.poll() is None:
            end_trees([mark], grace_s=END_GRACE_S)
        process.wait()
    return _result(process.returncode, folder)


def _follow(
    process: "subprocess.Popen[bytes]",
    progress_fd: int,
    *,
    deadline: float,
    tell: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> None:
    """Pass progress on until the process closes its end of the pipe, which is when it ends."""
    started = time.monotonic()
    unread = b""
    with selectors.DefaultSelector() as selector:
        selector.register(progress_fd, selectors.EVENT_READ)
        while process.poll() is None:
            if cancelled():
                raise JobFailedError("cancelled", "cancelled by the service")
            if time.monotonic() > deadline:
                raise JobFailedError(
                    "timeout", f"not finished after {deadline - started:.0f} s; give the job more time"
                )
            if not selector.select(_LOOK_S):
                continue
            chunk = os.read(progress_fd, 1 << 16)
            if not chunk:
                process.wait(timeout=END_GRACE_S)
                return
            *lines, unread = (unread + chunk).split(b"\n")
            if lines:
                tell(Progress(**json.loads(lines[-1])))  # only the newest matters


def _result(status: int, folder: JobFolder) -> Mapping[str, Any]:
    if folder.failure.exists():
        failure = json.loads(folder.failure.read_bytes())
        raise JobFailedError(failure["kind"], str(failure["message"]))
    if folder.report.exists() and folder.report.stat().st_size > LARGEST_REPORT_BYTES:
        raise JobFailedError(
            "workload", f"the report is larger than {LARGEST_REPORT_BYTES >> 20} MiB; measure fewer cases"
        )
    report = folder.finished_report()
    if report is None:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        # Killed from outside says something about the machine (memory, an operator), not about the commit.
        raise JobFailedError("infra", f"the measuring process ended without a report ({how})", retryable=True)
    return report
