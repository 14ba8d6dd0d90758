"""Google Benchmark's JSON (https://github.com/google/benchmark/blob/main/docs/user_guide.md; what 1.7 and 1.9 write).

Repetitions of one benchmark are of one process: their median is its value. Aggregate rows (mean, median, stddev, cv,
complexity) are made of the same repetitions and left out; only where `--benchmark_report_aggregates_only` left nothing
else is the median row taken. Arguments stand in the name (`BM_fill/size:1024/value:1/threads:2`) and become parameters.
Rates have a direction of their own; other counters have neither unit nor direction and need them in the address.
"""

import re
from collections.abc import Mapping, Sequence

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.imported_names import Scalar
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
from pullback_service.importers.units import Direction, Unit, known_unit

_TIMES = {"real_time": "time", "cpu_time": "cpu_time"}
_RATES: Mapping[str, Unit] = {"items_per_second": Unit(1.0, "1/s"), "bytes_per_second": Unit(1.0, "B/s")}
# How it was run, not what: none of these is a parameter of the case.
_MODIFIERS = re.compile(
    r"(real_time|process_time|manual_time|(iterations|repeats|min_time|min_warmup_time|warmup_time):[^/]*)\Z"
)
_NUMBER = re.compile(r"-?\d+\Z")
_NAMED = re.compile(r"(?P<name>[^:/]+):(?P<value>[^:/]+)\Z")
_OWN_KEYS = frozenset(
    {
        "name",
        "run_name",
        "run_type",
        "family_index",
        "per_family_instance_index",
        "repetitions",
        "repetition_index",
        "threads",
        "iterations",
        "real_time",
        "cpu_time",
        "time_unit",
        "label",
        "error_occurred",
        "error_message",
        "skipped",
        "skip_message",
        "aggregate_name",
        "aggregate_unit",
        "big_o",
        "cpu_coefficient",
        "real_coefficient",
        "rms",
        *_RATES,
    }
)


def recognises(source: Source) -> bool:
    """Benchmarks in a context."""
    if source.files is not None or source.is_lines() or not source.document.is_object():
        return False
    context, benchmarks = source.document.get("context"), source.document.get("benchmarks")
    return context is not None and context.is_object() and benchmarks is not None and benchmarks.is_list()


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every benchmark, whatever its number of repetitions."""
    gathering = ResultCollector()
    groups: dict[str, list[LocatedValue]] = {}
    for row in source.document.need("benchmarks").each():
        named = row.get("run_name") or row.need("name")
        groups.setdefault(named.text(), []).append(row)
    for run_name, rows in groups.items():
        result = _result(run_name, rows, options, gathering)
        if result is not None:
            gathering.add(result)
    context = source.document.need("context")
    _doubts(context, gathering)
    date, host = text_at(context.get("date")), text_at(context.get("host_name"))
    cores, clock = (
        {name: imported_names.parameter(value.value)} if (value := context.get(key)) is not None else {}
        for name, key in (("cores", "num_cpus"), ("clock_mhz", "mhz_per_cpu"))
    )
    version = text_at(context.get("library_version"))
    return ImportedFile(
        tool=f"Google Benchmark {version}" if version else "Google Benchmark",
        results=gathering.results,
        notes=gathering.notes(),
        machine=ImportedMachine(host, cores, varying=clock),  # the clock is read at the moment, not the processor's own
        started_at=iso_time(date) if date else None,
    )


def _doubts(context: LocatedValue, gathering: ResultCollector) -> None:
    scaling, build = context.get("cpu_scaling_enabled"), text_at(context.get("library_build_type"))
    if scaling is not None and scaling.value is True:
        gathering.note("the file says that the CPU changes its frequency (cpu_scaling_enabled): times will scatter")
    if build == "debug":
        gathering.note("the file says that the benchmark library is a debug build (library_build_type)")


def _result(
    run_name: str, rows: Sequence[LocatedValue], options: UploadOptions, gathering: ResultCollector
) -> Result | None:
    first = rows[0]
    workload, params = _case_of(run_name, first)
    broken = next((row for row in rows if _truth(row.get("error_occurred")) or _truth(row.get("skipped"))), None)
    if broken is not None:
        reason = text_at(broken.get("error_message")) or text_at(broken.get("skip_message")) or "skipped"
        return Result(broken.path, workload, params, failed=FailedResult("error", imported_names.message(reason)))
    measured = [row for row in rows if text_at(row.get("run_type")) != "aggregate"]
    aggregates = [row for row in rows if text_at(row.get("run_type")) == "aggregate"]
    if measured:
        gathering.left_out("aggregate rows left out, since the file has the repetitions themselves", len(aggregates))
    else:
        measured = [row for row in aggregates if text_at(row.get("aggregate_name")) == "median"]
        gathering.left_out("aggregate rows left out", len(aggregates) - len(measured))
        if measured:
            gathering.note("the file has aggregates only: their median rows were taken")
        else:
            return None  # a family's complexity is no benchmark
    first = measured[0]
    metrics: dict[str, Metric] = {}
    for key, metric_name in _TIMES.items():
        unit = _time_unit(first)
        samples = [row.need(key).number() for row in measured]
        _keep(metrics, metric_name, _metric(first, samples, unit, "smaller", gathering))
    for key, unit, direction in _counters(first, options, gathering):
        samples = [value.number() for row in measured if (value := row.get(key)) is not None]
        metric_name = imported_names.name(key, first.path)
        _keep(metrics, metric_name, _metric(first, samples, unit, direction, gathering))
    if "time" not in metrics:
        return Result(first.path, workload, params, failed=FailedResult("no-value", "No repetition has a usable time."))
    return Result(first.path, workload, params, metrics)


def _metric(
    row: LocatedValue, samples: Sequence[float], unit: Unit, direction: Direction, gathering: ResultCollector
) -> Metric | None:
    if text_at(row.get("run_type")) == "aggregate" and samples:
        return gathering.single(samples[0], unit, direction, method="median of repetitions, as given in the file")
    return gathering.one_process(row, samples, unit, direction, of="repetitions")


def _keep(metrics: dict[str, Metric], name: str, metric: Metric | None) -> None:
    if metric is not None:
        metrics[name] = metric


def _time_unit(row: LocatedValue) -> Unit:
    value = row.get("time_unit")
    unit = known_unit(value.text()) if value is not None else known_unit("ns")
    if unit is None or unit.stored != "s":
        row.refuse("has a time_unit that is not a unit of time")
    return unit


def _counters(
    row: LocatedValue, options: UploadOptions, gathering: ResultCollector
) -> list[tuple[str, Unit, Direction]]:
    results: list[tuple[str, Unit, Direction]] = [
        (key, unit, "bigger") for key, unit in _RATES.items() if row.get(key) is not None
    ]
    for key, value in row.members():
        if key in _OWN_KEYS or isinstance(value.value, bool) or not isinstance(value.value, int | float):
            continue
        unit, direction = options.units.get(key), options.directions.get(key)
        if unit is not None and direction is not None:
            results.append((key, options.need(key, "Google Benchmark")[0], direction))
        else:
            shown = imported_names.name(key, row.path)
            gathering.note(
                f"the counter `{shown}` has neither unit nor direction and was ignored: "
                f"add unit={shown}:UNIT and direction={shown}:smaller or {shown}:bigger to the address to store it"
            )
    return results


def _case_of(run_name: str, row: LocatedValue) -> tuple[str, dict[str, Scalar]]:
    """`BM_fill/1024/threads:2` is the workload BM_fill with two parameters; what follows a name is read from the end."""
    parts = run_name.split("/")
    given: list[tuple[str | None, str]] = []
    while len(parts) > 1:
        last = parts[-1]
        named = _NAMED.match(last)
        if _MODIFIERS.match(last):
            pass
        elif named is not None:
            given.append((named["name"], named["value"]))
        elif _NUMBER.match(last):
            given.append((None, last))
        else:
            break
        parts.pop()
    params = {}
    unnamed = 0
    for key, value in reversed(given):
        params[key if key is not None else f"arg{unnamed}"] = imported_names.literal(value)
        unnamed += key is None
    return imported_names.name("/".join(parts), row.path), imported_names.parameters(params, row.path)


def _truth(value: LocatedValue | None) -> bool:
    return value is not None and bool(value.value)


IMPORTER = Importer("google-benchmark", "Google Benchmark", recognises, read)
