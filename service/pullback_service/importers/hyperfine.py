"""hyperfine's `--export-json` (https://github.com/sharkdp/hyperfine; what 1.15 to 1.20 write).

Every run is a process of its own, so `times` are process values. `user` and `system` are means over the runs. A command
that ended with another exit code than 0 was still timed; that is said, since a program that fails early is fast.
"""

import re
from collections.abc import Mapping

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.imported_names import Scalar
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue
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

_SECONDS = Unit(1.0, "s")
_BYTES = Unit(1.0, "B")


def recognises(source: Source) -> bool:
    """Results that have commands."""
    if source.files is not None or source.is_lines() or not source.document.is_object():
        return False
    results = source.document.get("results")
    return (
        results is not None
        and results.is_list()
        and results.count() > 0
        and all(each.is_object() and "command" in each.value for each in results.each())
    )


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every command."""
    del options  # the file says everything; hyperfine writes seconds and bytes
    gathering = ResultCollector()
    for result in source.document.need("results").each():
        gathering.add(_result(result, gathering))
    return ImportedFile("hyperfine", gathering.results, gathering.notes())


def _result(result: LocatedValue, gathering: ResultCollector) -> Result:
    given = result.get("parameters")
    params = (
        {
            key: imported_names.literal(value) if isinstance(value, str) else value
            for key, value in imported_names.parameters(given.members_raw(), given.path).items()
        }
        if given is not None
        else {}
    )
    command = _template(result.need("command").text(), params)
    workload = imported_names.name(command, f"{result.path}.command")
    codes = result.get("exit_codes")
    failures = sum(1 for code in codes.each() if code.value is not None and code.value != 0) if codes is not None else 0
    if failures:
        gathering.note(f"`{workload[:60]}` exited {failures} times with a status other than 0")
    metrics = metrics_of(
        time=_time(result, gathering),
        user_time=_mean(result, "user", gathering),
        system_time=_mean(result, "system", gathering),
        max_rss=_memory(result, gathering),
    )
    if "time" not in metrics:
        return Result(
            result.path, workload, params, failed=FailedResult("no-value", "No run of this command has a time.")
        )
    return Result(result.path, workload, params, metrics)


def _template(command: str, params: Mapping[str, Scalar]) -> str:
    """`sleep 0.02` with n=0.02 is `sleep {n}`, as it was on the command line: one workload at several sizes."""
    for key, value in params.items():
        if isinstance(value, str | int | float) and str(value):
            placeholder = f"{{{key}}}".replace("\\", r"\\")
            command = re.sub(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", placeholder, command)
    return command


def _time(result: LocatedValue, gathering: ResultCollector) -> Metric | None:
    times = result.get("times")
    if times is not None and times.count():
        return gathering.per_process(times, times.numbers(), _SECONDS, "smaller", method="wall time of a run")
    for statistic in ("median", "mean"):
        value = result.get(statistic)
        if value is not None:
            return gathering.single(value.number(), _SECONDS, "smaller", method=f"{statistic} of runs")
    return None


def _mean(result: LocatedValue, key: str, gathering: ResultCollector) -> Metric | None:
    value = result.get(key)
    return None if value is None else gathering.single(value.number(), _SECONDS, "smaller", method="mean of runs")


def _memory(result: LocatedValue, gathering: ResultCollector) -> Metric | None:
    sizes = result.get("memory_usage_byte")
    if sizes is None or not sizes.count():
        return None
    return gathering.per_process(sizes, sizes.numbers(), _BYTES, "smaller", method="largest resident set of a run")


IMPORTER = Importer("hyperfine", "hyperfine", recognises, read)
