"""The measuring process: runs one order and leaves a report, or the reason why there is none.

`python -P -m pullback_runners.agent.measuring FOLDER PROGRESS_FD PARENT_PID`

A process of its own so that the agent can end it, with everything it started, at any moment. It never sees the agent's
token or the network address of the service: what is measured is other people's code.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pullback_runners.agent.jobfolder import JobFolder
from pullback_runners.agent.lifeline import die_with_parent
from pullback_runners.agent.spool import write_synced
from pullback_runners.progress import Progress


def main(folder: str, progress_fd: str, parent_pid: str) -> int:
    """Measure as `order.json` in the folder says."""
    die_with_parent(int(parent_pid), signal.SIGKILL)
    job = JobFolder(Path(folder))
    order = json.loads(job.order.read_bytes())
    if order["cpus"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order["cpus"])  # the agent itself keeps off the measured CPU
    progress = os.fdopen(int(progress_fd), "w", encoding="utf-8")

    def tell(step: Progress) -> None:
        print(step.message, flush=True)  # noqa: T201 - what is printed here is the log of the job
        progress.write(json.dumps(asdict(step)) + "\n")
        progress.flush()

    try:
        # Imported here, so that an import that fails becomes a failure with a reason instead of a silent death.
        from pullback_runners.errors import UsageError  # noqa: PLC0415

        try:
            report = _run(order, tell) if order["reference"] is None else _compare(job, order, tell)
        except UsageError as error:
            return _give_up(job, str(error))
    except Exception as error:  # noqa: BLE001 - the border of the process: whatever it is, the agent must learn of it
        traceback.print_exc()
        return _give_up(job, f"{type(error).__name__}: {error}")
    write_synced(job.report, json.dumps({**report, "id": order["key"]}, separators=(",", ":")).encode())
    return 0


def _run(order: Mapping[str, Any], tell: Callable[[Progress], None]) -> dict[str, Any]:
    from pullback_runners.runs import run_suite  # noqa: PLC0415

    return run_suite(
        order["suite"],
        order["cases"],
        device=order["device"],
        engine_dir=Path(order["engine"]),
        commit=order["commit"],
        project=order["project"],
        job=order["job"],
        on_progress=tell,
    )


def _compare(job: JobFolder, order: Mapping[str, Any], tell: Callable[[Progress], None]) -> dict[str, Any]:
    """Two engines taking turns, each with object code of its own. A commit against itself has nothing to say of the commit."""
    from pullback_runners.comparing import compare_commits  # noqa: PLC0415
    from pullback_runners.measurement.subject import engine_subject  # noqa: PLC0415
    from pullback_runners.projects.environments import OWN  # noqa: PLC0415
    from pullback_runners.projects.subjects import BuiltCommit  # noqa: PLC0415

    def built(side: Mapping[str, Any], objects: str) -> BuiltCommit:
        engine = Path(side["engine"])
        return BuiltCommit(side["commit"], engine_subject(engine, job.path / objects), OWN, engine.parent)

    compared = order["reference"]
    report = compare_commits(
        built(compared, "reference-objects"),
        built(order, "objects"),
        order["suite"],
        order["cases"],
        project=order["project"],
        job=order["job"],
        on_progress=tell,
    )
    if compared["commit"]["sha"] == order["commit"]["sha"]:
        report["cases"] = []
    return report


def _give_up(job: JobFolder, message: str) -> int:
    write_synced(job.failure, json.dumps({"message": message}).encode())
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
