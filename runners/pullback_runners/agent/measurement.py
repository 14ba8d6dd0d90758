"""The agent's side of measuring: start the measuring process, follow it, end it in time."""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pullback_runners.agent.client import Claim
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.isolation import BuildUser
from pullback_runners.agent.jobfolder import JobFolder
from pullback_runners.agent.process_mark import ProcessMark, end_trees
from pullback_runners.machine import HOST_VARIABLE
from pullback_runners.progress import Progress

END_GRACE_S = 10.0
_LOOK_S = 0.25
_LONGEST_LINE_BYTES = 64 * 1024  # of progress: the job may write what it likes

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
    user: BuildUser | None = None,
) -> Mapping[str, Any]:
    """Build and measure a job and return its report; JobFailedError says why there is none.

    `repository` has the commits of the job, `cache` keeps environments and what was built of commits for later jobs. Both
    are done by `user`, if that is given. Whatever happens in here, an exception from a signal handler included, no process of the job is left afterwards.
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
        "isolation": "none" if user is None else "user",
    }
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"XDG_CACHE_HOME": str(cache)}
    if user is not None:
        environment |= {"HOME": str(folder.work), "TMPDIR": str(folder.work)}
    read_end, write_end = os.pipe()
    with folder.log.open("wb") as log, tempfile.TemporaryFile() as ordered:
        ordered.write(json.dumps(order).encode())
        ordered.seek(0)
        process = subprocess.Popen(  # noqa: S603 - our own module
            [
                *(sys.executable, "-P", "-m", "pullback_runners.agent.measuring"),
                *(str(folder.path), str(write_end), str(os.getpid())),
            ],
            stdin=ordered,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=[write_end],
            start_new_session=True,
            cwd=folder.work,
            **({} if user is None else user.process()),
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
        if user is not None:
            user.end_all()
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
            if len(unread) > _LONGEST_LINE_BYTES:
                raise JobFailedError(
                    "workload", f"the job wrote a line of more than {_LONGEST_LINE_BYTES} bytes as its progress"
                )
            if lines:
                try:
                    tell(Progress.from_json(lines[-1]))  # only the newest matters
                except ValueError as error:
                    raise JobFailedError("workload", f"the job wrote what is no progress ({error})") from error


def _result(status: int, folder: JobFolder) -> Mapping[str, Any]:
    failure = folder.written_failure()
    if failure is not None:
        raise JobFailedError("build" if failure.get("kind") == "build" else "workload", str(failure.get("message")))
    report = folder.finished_report()
    if report is None:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        # Killed from outside says something about the machine (memory, an operator), not about the commit.
        raise JobFailedError("infra", f"the measuring process ended without a report ({how})", retryable=True)
    return report
