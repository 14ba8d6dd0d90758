"""BenchmarkTools.jl's JSON, as `BenchmarkTools.save` writes it.

(https://juliaci.github.io/BenchmarkTools.jl/stable/manual/#Caching-Parameters; the types are in its serialization.jl)

`[{"Julia": "1.11", "BenchmarkTools": "1.6"}, [["BenchmarkGroup", {"data": {…}, "tags": []}]]]`: every object is a pair
of a type and its fields. Times are nanoseconds per evaluation; null stands for an infinity. All samples are of one
process: their median is its value. Keys of nested groups become the workload's name, joined by `/`.
"""

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, text_at
from pullback_service.importers.limits import DEEPEST_GROUP
from pullback_service.importers.results import (
    FailedResult,
    ImportedFile,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
    metrics_of,
)
from pullback_service.importers.units import Unit

_NANOSECONDS = Unit(1e-9, "s")
_BYTES = Unit(1.0, "B")
_NUMBER = Unit(1.0, "1")


def recognises(source: Source) -> bool:
    """A list that starts with the versions."""
    if source.files is not None or source.is_lines() or not source.document.is_list() or source.document.count() != 2:
        return False
    versions = source.document.item(0)
    return versions.is_object() and "Julia" in versions.value and source.document.item(1).is_list()


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every trial in every group."""
    del options  # the format fixes units and directions
    gathering = ResultCollector()
    for saved in source.document.item(1).each():
        _visit(saved, (), gathering)
    version = text_at(source.document.item(0).get("BenchmarkTools"))
    return ImportedFile(
        f"BenchmarkTools.jl {version}" if version else "BenchmarkTools.jl", gathering.results, gathering.notes()
    )


def _visit(pair: LocatedValue, keys: tuple[str, ...], gathering: ResultCollector) -> None:
    kind, fields = pair.item(0).text(), pair.item(1)
    if kind == "BenchmarkGroup":
        if len(keys) >= DEEPEST_GROUP:
            pair.refuse(f"is nested too deeply; the limit is {DEEPEST_GROUP} groups (DEEPEST_GROUP)")
        for key, inside in fields.need("data").members():
            _visit(inside, (*keys, _plain(key)), gathering)
    elif kind in {"Trial", "TrialEstimate"}:
        gathering.add(_result(kind, fields, keys, gathering))
    else:
        gathering.left_out(f"{kind[:40]!a} left out: only trials and their estimates are measurements")


def _result(kind: str, fields: LocatedValue, keys: tuple[str, ...], gathering: ResultCollector) -> Result:
    workload = imported_names.name("/".join(keys) or "unnamed", fields.path)
    if kind == "Trial":
        time = gathering.one_process(fields, fields.need("times").numbers(), _NANOSECONDS, "smaller", of="samples")
    else:
        time = gathering.single(_number(fields, "time"), _NANOSECONDS, "smaller", method="an estimate of the file")
    metrics = metrics_of(
        time=time,
        memory=_count(fields, "memory", _BYTES, gathering),
        allocs=_count(fields, "allocs", _NUMBER, gathering),
    )
    if "time" not in metrics:
        return Result(fields.path, workload, failed=FailedResult("no-value", "The trial has no usable sample."))
    return Result(fields.path, workload, metrics=metrics)


def _count(fields: LocatedValue, key: str, unit: Unit, gathering: ResultCollector) -> Metric | None:
    if fields.get(key) is None:
        return None
    return gathering.single(_number(fields, key), unit, "smaller", method="of one evaluation")


def _number(fields: LocatedValue, key: str) -> float:
    result = fields.get(key)
    return float("nan") if result is None else result.number()


def _plain(key: str) -> str:
    """Symbols are written `:name`, tuples `("a", 1)`: the colon of a symbol is Julia's, not the name's."""
    return key[1:] if key.startswith(":") and len(key) > 1 else key


IMPORTER = Importer("benchmarktools", "BenchmarkTools.jl", recognises, read)
