"""The agent's side of measuring: start the measuring process, follow it, end it in time."""

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from pullback_runners.agent.claims import Claim, Job
from pullback_runners.agent.errors import JobFailedError
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.process_mark import ProcessMark, end_trees
from pullback_runners.git import git
from pullback_runners.machine import HOST_VARIABLE
from pullback_runners.progress import Progress
from pullback_runners.sandbox.bubblewrap import SandboxView
from pullback_runners.sandbox.isolation import ConfinedProcess, Isolation
from pullback_runners.sandbox.proxy import INSIDE, BuildProxy
from pullback_runners.sandbox.store import ENVIRONMENTS, Store, build_of, remove_tree

END_GRACE_S = 10.0
_LOOK_S = 0.25
_REPORT_LINE = re.compile(rb'\{"report": "([0-9a-f]{64})"\}')
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

# Where packages come from, for builds that reach it; an address with a password is the agent's alone.
_INDEX = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CERT",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "SSL_CERT_FILE",
)


class Step(NamedTuple):
    """A step before measuring: `environments` or `build`, and the commit of the order that it is for."""

    kind: str
    commit: str


class Deadline(NamedTuple):
    """The end of the time of a job, by the monotonic clock, and how long that is."""

    at: float
    seconds: float


def measure(
    claim: Claim,
    repository: Path,
    folder: JobFolder,
    key: str,
    *,
    cache: Path | Store,
    device: str = "cpu",
    nodes: Sequence[Path] = (),
    cpus: frozenset[int],
    tell: Callable[[Progress], None],
    stops: Callable[[], str | None],
    isolation: Isolation = Isolation(),  # noqa: B008 - it is frozen
) -> Mapping[str, Any]:
    """Build and measure a job and return its report; JobFailedError says why there is none.

    `repository` has the commits of the job, `cache` keeps environments and what was built of commits for later jobs. `nodes` are the
    device nodes that a sandbox has. Both are done in `isolation`, where builds alone have a network, if anything has, and then a proxy to listed hosts. Whatever happens in here, an exception from a signal handler included,
    no process of the job is left afterwards.
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
        "sandboxed": isinstance(cache, Store),
        "limits": None if isolation.level == "none" else isolation.limits.of_a_process(device),
    }
    place = cache if isinstance(cache, Path) else cache.place
    # Object code that another job, or the build of another commit, wrote is code of its commit: in a sandbox the cache ends with the step.
    objects = (folder.work if isinstance(cache, Path) else place) / "objects"
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
        "XDG_CACHE_HOME": str(place),
        "PULLBACK_CACHE_DIR": str(objects),
    }
    if isolation.builds is not None:
        environment |= {name: value for name in _INDEX if "@" not in (value := os.environ.get(name, "@"))}
    if isolation.level != "none":
        # A job writes its HOME: none of its processes takes modules of the user from there, nor git's settings.
        environment |= {"HOME": str(folder.work), "TMPDIR": str(folder.work), "PYTHONNOUSERSITE": "1"}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull}
    view = SandboxView(folder.work, _places_of(repository), devices=() if device == "cpu" else nodes)
    deadline = Deadline(time.monotonic() + job.timeout_s, job.timeout_s)
    with folder.log.open("wb") as log:

        def run(step: Step | None, view: SandboxView) -> int:
            way = str(INSIDE) if isolation.builds else None
            return _run(
                {**order, "step": step, "proxy": way}, view, isolation, environment, log, folder, deadline, tell, stops
            )

        if not isinstance(cache, Store):
            return _result(run(None, view), folder)
        with _proxy_of(isolation, folder) as proxy:
            status = _run_in_steps(run, cache, view, isolation, folder, job, proxy)
    try:
        return _result(status, folder)
    except JobFailedError as failure:
        if proxy is None or not proxy.said:
            raise
        raise JobFailedError(failure.kind, "\n".join([str(failure), *proxy.said])) from failure


def _proxy_of(isolation: Isolation, folder: JobFolder) -> AbstractContextManager[BuildProxy | None]:
    if isolation.builds is None:
        return nullcontext()
    owner = None if isolation.user is None else isolation.user.uid
    return BuildProxy(folder.path / "builds", isolation.builds, owner)


def _run_in_steps(
    run: Callable[[Step | None, SandboxView], int],
    store: Store,
    view: SandboxView,
    isolation: Isolation,
    folder: JobFolder,
    job: Job,
    proxy: BuildProxy | None,
) -> int:
    """Make the environment of each commit, build each, and measure, each with a cache of its own and what is kept of those before."""
    commits = {"reference": job.reference, "commit": job.commit}
    shas = {name: str(commit["sha"]) for name, commit in commits.items() if commit is not None}
    if shas.get("reference") == shas["commit"]:
        del shas["reference"]
    steps = [Step(kind, name) for kind in ("environments", "build") for name in shas]
    for step in (*steps, None):
        paths = store.shown(list(shas.values()))
        isolation.give(folder.cache)
        way = [] if proxy is None or step is None else [(proxy.file, INSIDE)]
        try:
            status = run(step, replace(view, writable={store.place: folder.cache}, kept=[*paths, *way]))
            if status == 0 and step is not None:
                store.take(
                    folder.cache, ENVIRONMENTS if step.kind == "environments" else build_of(shas[step.commit]), paths
                )
        finally:
            remove_tree(folder.cache)
        if status != 0:
            break
    return status


def _run(
    order: Mapping[str, Any],
    view: SandboxView,
    isolation: Isolation,
    environment: Mapping[str, str],
    log: IO[bytes],
    folder: JobFolder,
    deadline: Deadline,
    tell: Callable[[Progress], None],
    stops: Callable[[], str | None],
) -> int:
    """Run one measuring process to its end, and return its exit status."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb", buffering=0) as progress, tempfile.TemporaryFile() as ordered:
        ordered.write(json.dumps(order).encode())
        ordered.seek(0)
        confined = isolation.start(
            [
                *(sys.executable, "-P", "-m", "pullback_runners.agent.measurer"),
                *(str(folder.path), str(write_end), str(isolation.parent_pid())),
            ],
            view,
            environment=environment,
            pass_fds=[write_end],
            stdin=ordered,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        os.close(write_end)
        mark = ProcessMark.of(confined.process.pid)
        try:
            folder.mark_measuring(mark)
            digest = _follow(confined, progress.fileno(), deadline=deadline, tell=tell, stops=stops)
            if digest is not None:
                folder.mark_report(digest)
        finally:
            if confined.process.poll() is None:
                end_trees([mark], grace_s=END_GRACE_S)
            confined.end()
    return confined.process.returncode


def _places_of(repository: Path) -> list[Path]:
    """A repository, and the one that keeps its commits if that is another: that of a second work tree."""
    output = git(repository, "rev-parse", "--path-format=absolute", "--git-common-dir").stdout
    return [repository, *([Path(output.decode(errors="surrogateescape").strip())] if output else [])]


def _follow(
    confined: ConfinedProcess,
    progress_fd: int,
    *,
    deadline: Deadline,
    tell: Callable[[Progress], None],
    stops: Callable[[], str | None],
) -> str | None:
    """Pass progress on until the process closes its end of the pipe, which is when it ends; return the digest of its report."""
    process = confined.process
    unread, digest = b"", None
    with selectors.DefaultSelector() as selector:
        selector.register(progress_fd, selectors.EVENT_READ)
        while True:
            has_ended = process.poll() is not None  # what it wrote before is in the pipe
            _refuse_to_go_on(confined, stops, deadline)
            if not selector.select(0 if has_ended else _LOOK_S):
                if has_ended:
                    return digest
                continue
            chunk = os.read(progress_fd, 1 << 16)
            if not chunk:
                process.wait(timeout=END_GRACE_S)
                _refuse_to_go_on(confined, stops, deadline)  # the kernel may have ended it for what it took
                return digest
            *lines, unread = (unread + chunk).split(b"\n")
            if len(unread) > _LONGEST_LINE_BYTES:
                raise JobFailedError(
                    "workload", f"the job wrote a line of more than {_LONGEST_LINE_BYTES} bytes as its progress"
                )
            for line in lines[-1:]:  # only the newest matters, and the digest is the last thing that is said
                digest = _digest(line)
                if digest is None:
                    tell(_progress(line))


def _refuse_to_go_on(confined: ConfinedProcess, stops: Callable[[], str | None], deadline: Deadline) -> None:
    if (reason := stops()) is not None:
        raise JobFailedError("cancelled", reason)
    if time.monotonic() > deadline.at:
        raise JobFailedError("timeout", f"not finished after {deadline.seconds:.0f} s; give the job more time")
    if (trouble := confined.trouble()) is not None:
        raise JobFailedError("workload", trouble)


def _progress(line: bytes) -> Progress:
    try:
        return Progress.from_json(line)
    except ValueError as error:
        raise JobFailedError("workload", f"the job wrote invalid progress ({error})") from error


def _digest(line: bytes) -> str | None:
    """The digest in the line that tells of the report; None of another line."""
    match = _REPORT_LINE.fullmatch(line)
    return None if match is None else match[1].decode()


def _result(status: int, folder: JobFolder) -> Mapping[str, Any]:
    report = folder.outcome()
    if report is None:
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        # Killed from outside says something about the machine (memory, an operator), not about the commit.
        raise JobFailedError("infra", f"the measuring process ended without a report ({how})", retryable=True)
    return report
