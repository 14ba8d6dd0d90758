"""pyperf's JSON, version 1.0 (https://pyperf.readthedocs.io/en/latest/api.html#json-format; what 2.10 writes).

Every run is a process of its own; its values are one value each time the loop was run, so a process counts with their
median. Runs without values found the number of loops (calibration) and are no measurement. What all runs share is
hoisted to the metadata of the benchmark, and what all benchmarks share to that of the file.
"""

from collections.abc import Mapping
from datetime import datetime
from statistics import median
from typing import Any

from pullback_service.fields import LONGEST_RUN_S
from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, text_at
from pullback_service.importers.results import (
    FailedResult,
    ImportedFile,
    ImportedMachine,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.times import iso_time
from pullback_service.importers.units import Direction, Unit

# pyperf itself calls a smaller value the faster one, whatever the unit.
_METRICS: Mapping[str, tuple[str, Unit, Direction]] = {
    "second": ("time", Unit(1.0, "s"), "smaller"),
    "byte": ("memory", Unit(1.0, "B"), "smaller"),
    "integer": ("count", Unit(1.0, "1"), "smaller"),
}
_FACTS = {
    "cpu_model_name": "cpu",
    "cpu_count": "cores",
    "cpu_config": "cpu_config",
    "aslr": "aslr",
    "platform": "platform",
    "python_version": "python",
}


def recognises(source: Source) -> bool:
    """A suite of benchmarks that consist of runs."""
    if source.files is not None or source.is_lines() or not source.document.is_object():
        return False
    benchmarks = source.document.get("benchmarks")
    return (
        benchmarks is not None
        and benchmarks.is_list()
        and source.document.get("version") is not None
        and any(each.is_object() and "runs" in each.value for each in benchmarks.each())
    )


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every benchmark."""
    del options  # the file says everything
    top = source.document
    shared = _metadata(top)
    gathering = ResultCollector()
    first_run: Mapping[str, Any] = {}
    total_s = 0.0
    for benchmark in top.need("benchmarks").each():
        own = {**shared, **_metadata(benchmark)}
        runs = list(benchmark.need("runs").each())
        for run in runs:
            metadata = _metadata(run)
            first_run = first_run or metadata
            duration = metadata.get("duration", own.get("duration"))
            if isinstance(duration, int | float) and not isinstance(duration, bool) and 0 <= duration <= LONGEST_RUN_S:
                total_s += duration
        gathering.add(_result(benchmark, own, runs, gathering))
    facts = {**shared, **first_run}
    return ImportedFile(
        tool=f"pyperf {facts['perf_version']}" if isinstance(facts.get("perf_version"), str) else "pyperf",
        results=gathering.results,
        notes=gathering.notes(),
        machine=ImportedMachine(
            text_at(LocatedValue(facts.get("hostname"))),
            {ours: imported_names.parameter(facts[theirs]) for theirs, ours in _FACTS.items() if theirs in facts},
        ),
        started_at=_started_at(facts),
        duration_s=total_s or None,
    )


def _result(
    benchmark: LocatedValue, metadata: Mapping[str, Any], runs: list[LocatedValue], gathering: ResultCollector
) -> Result:
    named = metadata.get("name")
    workload = imported_names.name(named, f"{benchmark.path}.metadata.name") if isinstance(named, str) else "unnamed"
    unit = metadata.get("unit", "second")
    if not isinstance(unit, str) or unit not in _METRICS:
        benchmark.refuse(f"has the unit {ascii(unit)[:40]}; pyperf knows {', '.join(_METRICS)}")
    metric_name, stored, direction = _METRICS[unit]
    medians = []
    for run in runs:
        values = run.get("values")
        if values is None or not values.count():
            gathering.left_out("calibration runs left out")
            continue
        usable = gathering.usable(values.numbers(), unit=stored.stored)
        if usable:
            medians.append(median(usable))
    metric: Metric | None = gathering.per_process(benchmark, medians, stored, direction, method="median of a process")
    if metric is None:
        return Result(
            benchmark.path, workload, failed=FailedResult("no-value", "No run of this benchmark has a value.")
        )
    return Result(benchmark.path, workload, metrics={metric_name: metric})


def _metadata(at: LocatedValue) -> Mapping[str, Any]:
    result = at.get("metadata")
    return {} if result is None else dict(result.members_raw())


def _started_at(facts: Mapping[str, Any]) -> datetime | None:
    date = facts.get("date")
    return iso_time(date) if isinstance(date, str) else None


IMPORTER = Importer("pyperf", "pyperf", recognises, read)
