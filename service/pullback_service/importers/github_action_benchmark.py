"""github-action-benchmark: its custom format, and one commit of the history it keeps in `data.js`.

(https://github.com/benchmark-action/github-action-benchmark)

Custom: `[{"name": "CPU load", "unit": "Percent", "value": 50, "range": "3", "extra": "text"}]`. The direction is only
in the name of the action's tool (customBiggerIsBetter, customSmallerIsBetter), so it must be in the address. `range`
is free text and is not read. In the history the tool stands beside each entry and tells the direction.
"""

from pullback_service.errors import FieldError, IncompleteRequestError
from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, text_at
from pullback_service.importers.results import (
    FailedResult,
    ImportedCommit,
    ImportedFile,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.times import iso_time, milliseconds_time
from pullback_service.importers.units import Direction, Unit, unit_of

# Every other tool of the action prints a time, a size or a rate, whose unit tells the direction.
_DIRECTIONS: dict[str, Direction] = {"customBiggerIsBetter": "bigger", "customSmallerIsBetter": "smaller"}
_METRIC_NAMES = {"s": "time", "B": "memory", "1/s": "rate"}
_LONGEST_LIST_OF_COMMITS = 3


def recognises(source: Source) -> bool:
    """A list of named values with units, or the history."""
    if source.files is not None or source.is_lines():
        return False
    if is_history(source):
        return True
    document = source.document
    return (
        document.is_list()
        and document.count() > 0
        and all(each.is_object() and {"name", "unit", "value"} <= each.value.keys() for each in document.each())
    )


def is_history(source: Source) -> bool:
    """True if this is `data.js`, or the JSON in it."""
    return (
        source.files is None
        and not source.is_lines()
        and source.document.is_object()
        and isinstance(source.document.value.get("entries"), dict)
    )


def commits_of(source: Source) -> list[str]:
    """The commits of a history, each once, in the order of the file."""
    results = (
        text_at(entry.need("commit").get("id"))
        for _, entries in source.document.need("entries").members()
        for entry in entries.each()
    )
    return list(dict.fromkeys(sha for sha in results if sha is not None))


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every name; of a history, those of the commit that is asked for."""
    gathering = ResultCollector()
    if not is_history(source):
        for bench in source.document.each():
            unit, direction = options.need(
                _metric_name(bench), "github-action-benchmark", unit=bench.need("unit").text()
            )
            gathering.add(_result(bench, unit, direction, gathering))
        return ImportedFile("github-action-benchmark", gathering.results, gathering.notes())
    sha = _chosen(commits_of(source), options)
    commit, date = ImportedCommit(sha), None
    chosen: dict[tuple[str, str], Result] = {}
    for suite, entries in source.document.need("entries").members():
        for entry in entries.each():
            if text_at(entry.need("commit").get("id")) != sha:
                continue
            commit = _commit(sha, entry.need("commit"))
            stamp = entry.get("date")
            date = milliseconds_time(stamp.number()) if stamp is not None else date
            for bench in entry.need("benches").each():
                result = _of_history(suite, entry, bench, options, gathering)
                repeated = chosen.pop((suite, result.workload), None)
                gathering.left_out("earlier runs of the same benchmark left out", int(repeated is not None))
                chosen[suite, result.workload] = result
    for result in chosen.values():
        gathering.add(result)
    return ImportedFile("github-action-benchmark", gathering.results, gathering.notes(), commit, started_at=date)


def _chosen(commits: list[str], options: UploadOptions) -> str:
    if options.commit is not None and options.commit in commits:
        return options.commit
    if options.commit is None and len(commits) == 1:
        return commits[0]
    names = ", ".join(commits[:_LONGEST_LIST_OF_COMMITS]) + (", …" if len(commits) > _LONGEST_LIST_OF_COMMITS else "")
    message = f"must be one of the {len(commits)} commits of this history ({names}); `pullback import` sends them all"
    raise IncompleteRequestError(f"query.commit {message}.", errors=[FieldError(path="query.commit", message=message)])


def _of_history(
    suite: str, entry: LocatedValue, bench: LocatedValue, options: UploadOptions, gathering: ResultCollector
) -> Result:
    tool = text_at(entry.get("tool")) or ""
    unit = unit_of(bench.need("unit").text())
    direction = _DIRECTIONS.get(tool) or unit.direction
    if direction is None:
        unit, direction = options.need(_metric_name(bench), "github-action-benchmark", unit=bench.need("unit").text())
    result = _result(bench, unit, direction, gathering)
    return Result(
        result.path, result.workload, {"suite": imported_names.parameter(suite)}, result.metrics, result.failed
    )


def _metric_name(bench: LocatedValue) -> str:
    return _METRIC_NAMES.get(unit_of(bench.need("unit").text()).stored, "value")


def _result(bench: LocatedValue, unit: Unit, direction: Direction, gathering: ResultCollector) -> Result:
    workload = imported_names.name(bench.need("name").text(), f"{bench.path}.name")
    if not unit.stored or len(unit.stored) > 32:
        bench.need("unit").refuse("must be a unit of 1 to 32 characters")
    metric: Metric | None = gathering.single(_value(bench), unit, direction, method="as given in the file")
    if metric is None:
        return Result(bench.path, workload, failed=FailedResult("no-value", "The value cannot be stored."))
    return Result(bench.path, workload, metrics={_metric_name(bench): metric})


def _value(bench: LocatedValue) -> float:
    value = bench.need("value")
    if isinstance(value.value, str):  # the action takes numbers as text as well
        try:
            return float(value.value)
        except ValueError as error:
            value.refuse("must be a number", cause=error)
    return value.number()


def _commit(sha: str, commit: LocatedValue) -> ImportedCommit:
    stamp = text_at(commit.get("timestamp"))
    return ImportedCommit(sha, authored_at=iso_time(stamp) if stamp else None)


IMPORTER = Importer("github-action-benchmark", "github-action-benchmark", recognises, read)
