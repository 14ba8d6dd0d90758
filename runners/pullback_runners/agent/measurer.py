"""The measuring process: builds and measures one order and leaves a report, or the reason why there is none.

`python -P -m pullback_runners.agent.measurer FOLDER PROGRESS_FD PARENT_PID`

It reads the order from its standard input. A process of its own so that the agent can end it, with everything it started, at any moment. It never sees the agent's
token or the network address of the service: what is built and measured is other people's code.
"""

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.parent_death import die_with_parent, gain_no_privileges
from pullback_runners.agent.synced_files import write_synced
from pullback_runners.measurement.renewal import refuse_attaching
from pullback_runners.progress import Progress
from pullback_runners.sandbox.limits import limit_this_process
from pullback_runners.sandbox.proxy import forward_loopback

if TYPE_CHECKING:
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_runners.projects.subjects import BuiltCommit


def main(folder: str, progress_fd: str, parent_pid: str) -> int:
    """Measure as the order on standard input says."""
    die_with_parent(int(parent_pid), signal.SIGKILL)
    job = JobFolder(Path(folder))
    order = json.load(sys.stdin)
    if order["limits"] is not None:
        limit_this_process(order["limits"])
        gain_no_privileges()
    refuse_attaching()
    if order["cpus"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order["cpus"])  # the agent itself keeps off the measured CPU
    progress = os.fdopen(int(progress_fd), "w", encoding="utf-8")

    def tell(step: Progress) -> None:
        print(step.message, flush=True)  # noqa: T201 - what is printed here is the log of the job
        progress.write(json.dumps(asdict(step)) + "\n")
        progress.flush()

    try:
        # Imported here, so that an import that fails becomes a failure with a reason instead of a silent death.
        from pullback_runners.errors import BuildError, DeviceMemoryError, LoadError, UsageError  # noqa: PLC0415

        try:
            report = _measure(job, order, tell)
        except BuildError as error:
            return _give_up(job, "build", str(error))
        except LoadError as error:
            with suppress(OSError):
                print(error.log, flush=True)  # noqa: T201 - the log of the job
            return _give_up(job, "workload", str(error))
        except UsageError as error:
            room = error if isinstance(error, DeviceMemoryError) else None
            retryable = room is not None and room.may_pass
            return _give_up(job, "workload" if room is None else "infra", str(error), retryable=retryable)
    except Exception as error:  # noqa: BLE001 - the border of the process: whatever it is, the agent must learn of it
        with suppress(OSError):  # a log that must not grow
            traceback.print_exc()
        return _give_up(job, "workload", f"{type(error).__name__}: {error}")
    if report is None:
        return 0
    content = json.dumps({**report, "id": order["key"]}, separators=(",", ":")).encode()
    write_synced(job.report, content)
    # By the pipe, which no process has that runs code of the commit: those may write the file as well.
    progress.write(json.dumps({"report": sha256(content).hexdigest()}) + "\n")
    progress.flush()
    return 0


def _measure(job: JobFolder, order: Mapping[str, Any], tell: Callable[[Progress], None]) -> dict[str, Any] | None:
    """Build what was ordered, by the file of the commit that is judged, and measure it unless it is only to be built."""
    from pullback_runners.projects.folder_cache import make_no_more  # noqa: PLC0415
    from pullback_runners.projects.subjects import build_subject  # noqa: PLC0415

    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    logging.getLogger("pullback_runners.projects").setLevel(logging.INFO)
    repository, commit, compared = Path(order["repository"]), order["commit"], order["reference"]
    if order["step"] is not None:
        if order["proxy"] is not None:
            forward_loopback(Path(order["proxy"]))
        _prepare(job, order, tell)
        return None
    tell(Progress("build", 0, 1, f"building {commit['sha'][:10]}"))
    if order["sandboxed"]:
        make_no_more()
    project, files = _project(job, repository, commit)
    built = build_subject(project, repository, commit, tell)
    _warn(built)
    workloads = project.workload_files(files or built.files)
    if compared is not None and compared["sha"] != commit["sha"]:
        reference = build_subject(project, repository, compared, tell)
        _warn(reference)
        if order["sandboxed"]:
            # Below the cache of this step, which was empty when it began. Names of one length: they are in the memory of what is timed.
            sides = Path(os.environ["XDG_CACHE_HOME"]) / "sides"
            sides.mkdir()
            reference, built = reference.on_side(sides / "reference"), built.on_side(sides / "candidate")
    else:
        reference = built
    if compared is None:
        return _run(order, project, built, workloads, tell)
    return _compare(order, project, reference, built, workloads, tell)


def _prepare(job: JobFolder, order: Mapping[str, Any], tell: Callable[[Progress], None]) -> None:
    """A step before measuring: make the environment of a commit, or build it, as the file of the commit that is judged says."""
    from pullback_runners.projects.subjects import build_subject, make_environments  # noqa: PLC0415

    repository = Path(order["repository"])
    kind, name = order["step"]
    commit = order[name]
    tell(Progress("build", 0, 1, f"building {commit['sha'][:10]}"))
    project, _ = _project(job, repository, order["commit"])
    if kind == "environments":
        make_environments(project, repository, commit, tell)
    else:
        build_subject(project, repository, commit, tell).compile_bytecode()


def _project(job: JobFolder, repository: Path, commit: Mapping[str, Any]) -> "tuple[ProjectFile, Path | None]":
    from pullback_runners.errors import BuildError, UsageError  # noqa: PLC0415
    from pullback_runners.projects.definitions import project_of_commit  # noqa: PLC0415

    try:
        return project_of_commit(repository, commit["sha"], job.current)
    except UsageError as error:
        raise BuildError(str(error)) from error


def _warn(built: "BuiltCommit") -> None:
    if (warning := built.warning()) is not None:
        print(warning, flush=True)  # noqa: T201 - the log of the job


def _run(
    order: Mapping[str, Any],
    project: "ProjectFile",
    built: "BuiltCommit",
    workloads: Sequence[Path],
    tell: Callable[[Progress], None],
) -> dict[str, Any]:
    from pullback_runners.report import Attribution  # noqa: PLC0415
    from pullback_runners.runs import run_suite  # noqa: PLC0415

    return run_suite(
        order["suite"],
        order["cases"],
        device=order["device"],
        holds_device=True,
        variants=order["variants"],
        usual=project.measure.variants,
        subject=built.subject,
        baseline=project.measure.baseline,
        owner=Attribution(order["project"], order["commit"], project.measure.workloads),
        job=order["job"],
        workload_files=workloads,
        partial=bool(order["variants"]),
        on_progress=tell,
    )


def _compare(
    order: Mapping[str, Any],
    project: "ProjectFile",
    reference: "BuiltCommit",
    built: "BuiltCommit",
    workloads: Sequence[Path],
    tell: Callable[[Progress], None],
) -> dict[str, Any]:
    """Two commits taking turns. A commit against itself has nothing to say of the commit."""
    from pullback_runners.comparison_runs import compare_commits  # noqa: PLC0415

    report = compare_commits(
        reference,
        built,
        order["suite"],
        order["cases"],
        device=order["device"],
        holds_device=True,
        variants=order["variants"],
        usual=project.measure.variants,
        project=order["project"],
        job=order["job"],
        workload_files=workloads,
        effort=order["effort"],
        measure_equal=True,  # the job's commit has a point on its page
        on_progress=tell,
    )
    if reference.commit["sha"] == built.commit["sha"]:
        report["cases"] = []
    return report


def _give_up(job: JobFolder, kind: str, message: str, *, retryable: bool = False) -> int:
    failure = {"kind": kind, "message": message, "retryable": retryable}
    write_synced(job.failure, json.dumps(failure).encode())
    with suppress(OSError):
        print(message, flush=True)  # noqa: T201 - the log of the job
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
