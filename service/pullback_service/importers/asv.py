"""asv's results, `results/<machine>/<commit>-<environment>.json`, version 2 (https://asv.readthedocs.io, dev.rst).

A file alone has neither units nor the names of parameters; `benchmarks.json` beside it has both, so the folder
`results` is sent as .tar.gz. Parameter values run through their product, the last one fastest. A value is already the
median that asv computed over its processes; null is a failed benchmark and NaN a skipped one. A result whose `version`
is not that of `benchmarks.json` was measured with other code and is left out, as asv itself does. To asv, smaller is
better, whatever is tracked; `direction=` says otherwise.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isnan, prod
from pathlib import PurePosixPath

from pullback_service.errors import FieldError, IncompleteRequestError
from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.imported_names import Scalar
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, refuse, text_at
from pullback_service.importers.limits import MOST_RESULTS
from pullback_service.importers.results import (
    FailedResult,
    ImportedCommit,
    ImportedFile,
    ImportedMachine,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.times import milliseconds_time
from pullback_service.importers.units import Direction, Unit, unit_of

_METRICS = {"time": "time", "timeraw": "time", "memory": "memory", "peakmemory": "peak_memory", "track": "value"}
_UNITS = {"time": "s", "timeraw": "s", "memory": "B", "peakmemory": "B"}
_PREFIXES = {"time": "time", "timeraw": "timeraw", "mem": "memory", "peakmem": "peakmemory", "track": "track"}
# What results had before columns were named, and what every file has at least.
_OLDEST_COLUMNS = ("result", "params", "version")
_NOT_RESULTS = frozenset({"machine.json", "benchmarks.json"})
_LONGEST_LIST = 3


def recognises(source: Source) -> bool:
    """A file of results, or a folder with one."""
    if source.files is not None:
        return bool(_result_files(source))
    return not source.is_lines() and source.document.is_object() and _is_result(source.document)


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every benchmark, parameter combination and environment of one commit."""
    gathering = ResultCollector()
    if source.files is None:
        chosen, about = [source.document], None
        if not recognises(source):
            source.document.refuse("is not a results file of asv: it has neither `commit_hash` nor `results`")
    else:
        chosen, about = _chosen(source, options), _benchmarks(source)
    if about is None:
        gathering.note("benchmarks.json, with units and names of parameters, is missing: send the folder `results`")
    for file in chosen:
        _read_file(file, about, options, gathering)
    first = chosen[0]
    date = first.get("date")
    return ImportedFile(
        "asv",
        gathering.results,
        gathering.notes(),
        ImportedCommit(
            text_at(first.get("commit_hash")),
            authored_at=milliseconds_time(date.number()) if date is not None else None,
        ),
        _machine(first),
    )


def _result_files(source: Source) -> list[str]:
    names = sorted(
        name
        for name in source.files or ()
        if name.endswith(".json") and PurePosixPath(name).name not in _NOT_RESULTS and "-" in PurePosixPath(name).name
    )
    return [name for name in names if b'"commit_hash"' in (source.files or {})[name] and _is_result(source.file(name))]


def _is_result(file: LocatedValue) -> bool:
    return file.is_object() and "commit_hash" in file.value and isinstance(file.value.get("results"), dict)


def _chosen(source: Source, options: UploadOptions) -> list[LocatedValue]:
    files = [source.file(name) for name in _result_files(source)]
    shas = list(dict.fromkeys(file.need("commit_hash").text() for file in files))
    machines = {text_at(params.get("machine")) for file in files if (params := file.get("params")) is not None}
    if len(machines) > 1:
        refuse("archive", "holds results of more than one machine: send one folder below `results`")
    wanted = options.commit if options.commit is not None else shas[0] if len(shas) == 1 else None
    if wanted is None or wanted not in shas:
        names = ", ".join(shas[:_LONGEST_LIST]) + (", …" if len(shas) > _LONGEST_LIST else "")
        message = f"must be one of the {len(shas)} commits of this folder ({names}); `pullback import` sends them all"
        raise IncompleteRequestError(
            f"query.commit {message}.", errors=[FieldError(path="query.commit", message=message)]
        )
    return [file for file in files if file.need("commit_hash").text() == wanted]


def _benchmarks(source: Source) -> LocatedValue | None:
    names = [name for name in source.files or () if PurePosixPath(name).name == "benchmarks.json"]
    return source.file(min(names, key=len)) if names else None


def _read_file(
    file: LocatedValue, about: LocatedValue | None, options: UploadOptions, gathering: ResultCollector
) -> None:
    environment = text_at(file.get("env_name"))
    columns = file.get("result_columns")
    names = [column.text() for column in columns.each()] if columns is not None else list(_OLDEST_COLUMNS)
    for key, row in file.need("results").members():
        described = about.get(key) if about is not None else None
        cells = _cells(row, names)
        if described is not None and _is_outdated(cells, described):
            gathering.left_out("results of other versions of a benchmark's code left out")
            continue
        for result in _results(key, row, cells, described, options, gathering):
            extra: dict[str, Scalar] = {"env": imported_names.parameter(environment)} if environment else {}
            gathering.add(
                Result(result.path, result.workload, {**result.params, **extra}, result.metrics, result.failed)
            )


def _cells(row: LocatedValue, names: Sequence[str]) -> Mapping[str, LocatedValue]:
    """The columns of a result; trailing ones may be missing, and old files have a bare number instead."""
    if not row.is_list():
        return {"result": LocatedValue([row.value], row.path)}
    return {name: cell for name, cell in zip(names, row.each(), strict=False) if cell.value is not None}


def _is_outdated(cells: Mapping[str, LocatedValue], described: LocatedValue) -> bool:
    measured, current = text_at(cells.get("version")), text_at(described.get("version"))
    return measured is not None and current is not None and measured != current


def _results(
    key: str,
    row: LocatedValue,
    cells: Mapping[str, LocatedValue],
    described: LocatedValue | None,
    options: UploadOptions,
    gathering: ResultCollector,
) -> Sequence[Result]:
    workload = imported_names.name(key, row.path)
    kind = _kind(key, described)
    metric_name = _METRICS[kind]
    names = _parameter_names(described)
    result = cells.get("result")
    axes = [[each.text() for each in axis.each()] for axis in cells["params"].each()] if "params" in cells else []
    size = prod(len(axis) for axis in axes)
    if size > MOST_RESULTS:
        row.refuse(f"has {size} combinations of parameters; the limit is {MOST_RESULTS} (MOST_RESULTS)")
    # One null instead of a list says that the benchmark failed as a whole.
    values: Sequence[LocatedValue | None] = [None] * size if result is None else list(result.each())
    if len(values) != size:
        row.refuse(f"has {len(values)} values for {size} combinations of parameters")
    unit, direction = _unit(kind, metric_name, described, options)
    results = []
    for combination, value in zip(product(*axes), values, strict=True):
        given = {
            (names[index] if index < len(names) else f"param{index + 1}"): imported_names.literal(text)
            for index, text in enumerate(combination)
        }
        params = imported_names.parameters(given, row.path)
        if value is None or value.value is None:
            failed = FailedResult("failed", "The benchmark failed; see asv's log.")
            results.append(Result(row.path, workload, params, failed=failed))
        elif isnan(value.number()):
            gathering.left_out("skipped combinations of parameters left out")
        else:
            results.append(_measured(value, workload, params, metric_name, unit, direction, gathering))
    return results


def _measured(
    value: LocatedValue,
    workload: str,
    params: Mapping[str, Scalar],
    metric_name: str,
    unit: Unit,
    direction: Direction,
    gathering: ResultCollector,
) -> Result:
    metric: Metric | None = gathering.single(value.number(), unit, direction, method="summarised by asv")
    if metric is None:
        return Result(value.path, workload, params, failed=FailedResult("no-value", "The value cannot be stored."))
    return Result(value.path, workload, params, {metric_name: metric})


def _kind(key: str, described: LocatedValue | None) -> str:
    value = text_at(described.get("type")) if described is not None else None
    if value in _METRICS:
        return value
    prefix = key.rpartition(".")[2].partition("_")[0].lower()
    return _PREFIXES.get(prefix, "track")


def _parameter_names(described: LocatedValue | None) -> Sequence[str]:
    names = described.get("param_names") if described is not None else None
    return [each.text() for each in names.each()] if names is not None else []


def _unit(
    kind: str, metric_name: str, described: LocatedValue | None, options: UploadOptions
) -> tuple[Unit, Direction]:
    direction: Direction = options.direction_for(metric_name) or "smaller"
    if kind in _UNITS:
        return unit_of(_UNITS[kind]), direction
    value = text_at(described.get("unit")) if described is not None else None
    if value is not None and len(value.strip()) <= 32:
        return unit_of(value), direction
    return options.need(metric_name, "asv (without benchmarks.json)", direction=direction)


def _machine(file: LocatedValue) -> ImportedMachine:
    params = file.get("params")
    if params is None or not params.is_object():
        return ImportedMachine()
    facts = {key: text_at(params.get(key)) for key in ("cpu", "num_cpu", "ram", "os", "arch", "python")}
    return ImportedMachine(
        text_at(params.get("machine")), {key: imported_names.parameter(value) for key, value in facts.items() if value}
    )


IMPORTER = Importer("asv", "asv", recognises, read)
