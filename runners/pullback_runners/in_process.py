"""Functions timed in the process that calls them, as a report: what tests have at hand, without workers and pairs."""

import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pullback_runners.allocations import count_allocations
from pullback_runners.commits import describe_commit
from pullback_runners.errors import UsageError, VariantError
from pullback_runners.git import output_of
from pullback_runners.measurement.examination import Examination
from pullback_runners.measurement.lockstep import Group, Timing
from pullback_runners.measurement.slices import calibrate_calls, time_slice, timer_ns
from pullback_runners.projects.configuration import find_project
from pullback_runners.report import CaseResult, case_document, write_report
from pullback_runners.report.attribution import name_of_repository
from pullback_runners.report.run import Run
from pullback_runners.report.words import duration_in_words
from pullback_runners.variants import awaited
from pullback_runners.workloads import Case

SUITE = "pytest"
SLICES = 50
_BY_HAND = {"ok": True, "max_rel_error": None, "oracle": "assertions of the test", "complaint": None}


class InProcessTimings:
    """Timings taken in this process, case by case."""

    def __init__(self) -> None:
        self._run = Run()
        self._results: dict[Case, CaseResult] = {}

    def measure(
        self, workload: str, sizes: Mapping[str, Any], variant: str, call: Callable[[], Any]
    ) -> Callable[[str], None]:
        """Time a function in slices, then count what a call of it allocates; what is returned takes that back, for a reason."""
        params = tuple((name, each if isinstance(each, int) else str(each)) for name, each in sizes.items())
        case = Case(workload, params, "f8")
        result = self._results.get(case) or CaseResult(case, [], None)
        if variant in result.variants:
            raise UsageError(
                f"{case.name} {variant} was measured already; give gradient_benchmark another size or variant"
            )
        call = awaited(call, call())
        timing = Timing(max(1, round(calibrate_calls(call))), timer_s=timer_ns() / 1e9)
        for _ in range(SLICES):
            took = time_slice(call, timing.calls)
            timing.cpu_s.append(took.cpu_ns / 1e9 / timing.calls)
            timing.wall_s.append(took.wall_ns / 1e9 / timing.calls)
            timing.waited_s.append(None if took.waited_ns is None else took.waited_ns / 1e9)
        result.variants = [*result.variants, variant]
        result.examinations[variant] = Examination(_BY_HAND, count_allocations(call).document(), None)
        result.groups = result.groups or [Group({}, {})]
        result.groups[0].timings[variant] = timing
        self._results[case] = result

        def take_back(reason: str) -> None:
            result.failures[variant] = VariantError("gradient", reason)

        return take_back

    def lines(self) -> Iterator[str]:
        """A line for each that was measured."""
        for case, result in self._results.items():
            for variant, timing in result.groups[0].timings.items():
                failure = result.failures.get(variant)
                took = f"{duration_in_words(statistics.median(timing.cpu_s))} a call"
                yield f"{case.name} {variant}: {failure.message if failure else took}"

    def write(self, top: Path, file: Path) -> None:
        """Write the report, which belongs to the repository that a folder is in."""
        harness = {
            "suite": SUITE,
            "complete": True,
            "refused": [],
            "absent": [],
            "budget": {"groups": 1, "slices": SLICES},
            "job": None,
        }
        report = {
            **self._run.head(None, harness, project=_project_name(top), commit=describe_commit(top)),
            "cases": [case_document(result, may_say_same=False) for result in self._results.values()],
            "comparisons": [],
        }
        write_report(report, file)


def _project_name(folder: Path) -> str:
    project = find_project(folder)
    return (
        project.name
        if project
        else name_of_repository(Path(output_of(folder, "rev-parse", "--show-toplevel") or folder))
    )
