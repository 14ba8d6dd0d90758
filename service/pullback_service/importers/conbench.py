"""Conbench's benchmark results, one or a list of them (https://github.com/conbench/conbench, benchadapt/python).

A result has `stats` or an `error`. `tags` name the case: `name` is the workload, the others are its parameters.
`stats.data` are iterations in `stats.unit`, of one process. The unit tells the direction, as Conbench has it: rates
(`B/s`, `i/s`) are better bigger, times and everything else better smaller.
"""

from collections.abc import Sequence

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, text_at
from pullback_service.importers.results import (
    FailedResult,
    ImportedCommit,
    ImportedFile,
    ImportedMachine,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.times import iso_time
from pullback_service.importers.units import Direction, Unit, known_unit, unit_of

_RATES = {"B/s", "i/s", "b/s"}
_METRIC_NAMES = {"s": "time", "B": "memory", "B/s": "throughput", "b/s": "throughput", "i/s": "throughput"}
_FACTS = {"cpu_model_name": "cpu", "cpu_core_count": "cores", "kernel_name": "kernel"}


def recognises(source: Source) -> bool:
    """Results with tags and with stats or an error."""
    if source.files is not None or source.is_lines():
        return False
    result = _results(source)
    return bool(result) and all(
        each.is_object() and "tags" in each.value and ("stats" in each.value or "error" in each.value)
        for each in result
    )


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for each, all of one commit on one machine."""
    gathering = ResultCollector()
    results = _results(source)
    for result in results:
        gathering.add(_result(result, options, gathering))
    shas = {sha for each in results if (sha := _commit_of(each))}
    if len(shas) > 1:
        source.document.refuse(
            f"holds results of {len(shas)} commits: send those of each commit with an upload of their own"
        )
    stamp = text_at(results[0].get("timestamp")) if results else None
    return ImportedFile(
        tool="Conbench",
        results=gathering.results,
        notes=gathering.notes(),
        commit=ImportedCommit(shas.pop() if shas else None),
        machine=_machine(results[0]) if results else ImportedMachine(),
        started_at=iso_time(stamp) if stamp else None,
    )


def _results(source: Source) -> Sequence[LocatedValue]:
    return list(source.document.each()) if source.document.is_list() else [source.document]


def _result(result: LocatedValue, options: UploadOptions, gathering: ResultCollector) -> Result:
    tags = result.need("tags")
    named = text_at(tags.get("name"))
    if named is None:
        tags.refuse("has no `name`, which names the benchmark")
    workload = imported_names.name(named, f"{tags.path}.name")
    params = imported_names.parameters(
        {
            key: imported_names.literal(value) if isinstance(value, str) else value
            for key, value in tags.members_raw().items()
            if key != "name"
        },
        tags.path,
    )
    error, stats = result.get("error"), result.get("stats")
    if stats is None or (error is not None and error.value):
        text = error.value if error is not None else None
        reason = text if isinstance(text, str) else str(imported_names.parameter(text))
        return Result(result.path, workload, params, failed=FailedResult("error", imported_names.message(reason)))
    unit, direction = _unit_of(stats, options)
    metric = gathering.one_process(stats, stats.need("data").numbers(), unit, direction, of="iterations")
    if metric is None:
        return Result(result.path, workload, params, failed=FailedResult("no-value", "The result has no usable value."))
    return Result(result.path, workload, params, {_METRIC_NAMES.get(unit.stored, "value"): metric})


def _unit_of(stats: LocatedValue, options: UploadOptions) -> tuple[Unit, Direction]:
    value = text_at(stats.get("unit"))
    if value is None:
        return options.need("value", "Conbench")
    if value in _RATES:
        return Unit(1.0, value), "bigger"
    known = known_unit(value)
    if known is not None and known.direction is not None:
        return known, known.direction
    if len(value.strip()) > 32:
        stats.need("unit").refuse("must be a unit of 1 to 32 characters")
    return unit_of(value), options.direction_for("value") or "smaller"


def _commit_of(result: LocatedValue) -> str | None:
    github = result.get("github")
    sha = text_at(github.get("commit")) if github is not None and github.is_object() else None
    return sha if sha and len(sha) in {40, 64} else None


def _machine(result: LocatedValue) -> ImportedMachine:
    info = result.get("machine_info")
    if info is None or not info.is_object():
        return ImportedMachine()
    facts = {ours: text_at(info.get(theirs)) for theirs, ours in _FACTS.items()}
    known = {key: imported_names.parameter(value) for key, value in facts.items() if value}
    memory = text_at(info.get("memory_bytes"))
    if (
        memory is not None and memory.isdecimal()
    ):  # the kernel keeps some for itself, which varies: whole GiB are the machine's
        known["memory_gib"] = round(int(memory[:24]) / 2**30)
    return ImportedMachine(text_at(info.get("name")), known)


IMPORTER = Importer("conbench", "Conbench", recognises, read)
