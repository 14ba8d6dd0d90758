"""One run: all groups and counts of some cases at one commit on one machine, as a report."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pullback_runners.progress import Progress


def ignore_progress(_: Progress) -> None:
    """Watch nothing."""


def never_stop() -> bool:
    """Run to the end."""
    return False


def run_suite(
    suite: str = "quick",
    cases: Sequence[str] = (),
    *,
    variants: Sequence[str] = (),
    engine_dir: Path | None = None,
    commit: Mapping[str, Any] | None = None,
    project: str = "pullback",
    job: Mapping[str, Any] | None = None,
    workload_files: Sequence[Path] = (),
    on_progress: Callable[[Progress], None] = ignore_progress,
    stop: Callable[[], bool] = never_stop,
) -> dict[str, Any]:
    """Measure a suite and return its report (a plain dictionary of INTERFACES.md section 3).

    `cases` are names or globs (`dense_bias_act*`), none means all of the suite; `engine_dir` is a checkout whose engine
    is measured instead of the installed one; `commit` is the report's commit object, read from that checkout's git if
    not given. `stop` is asked often: once it answers true the run ends within a slice, and the report holds the cases
    finished so far, with `harness.complete` false. A case that fails is in the report with its reason; only wrong
    arguments raise (`pullback_runners.errors.UsageError`).
    """
    raise NotImplementedError
