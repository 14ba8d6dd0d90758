"""A day of GradBench's published archive (branch `ci/refs/heads/nightly`, tags `nightly-DATE`), sent as .tar.gz.

`summary.json` has the date and the commit; `evals/<eval>/summary.json` the mean duration of every function of every
tool at every workload, `{"secs": 0, "nanos": 69933824}`: for most evals by workload as `primal` and `derivative`, whose
names stand beside them, for particle and saddle by function.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from pullback_service.importers import gradbench, imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, refuse, text_at
from pullback_service.importers.results import (
    FailedResult,
    ImportedCommit,
    ImportedFile,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.times import iso_time
from pullback_service.importers.units import Unit

_SECONDS = Unit(1.0, "s")
_PARTS = ("primal", "derivative")


def recognises(source: Source) -> bool:
    """A folder with summaries of evals."""
    return source.files is not None and bool(_summaries(source))


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every duration."""
    del options  # the format fixes units and directions
    gathering = ResultCollector()
    summaries = _summaries(source)
    if not summaries:
        refuse("archive", "is not a nightly archive: send summary.json and evals/*/summary.json as .tar.gz")
    for path in summaries:
        for result in _results(source.file(str(path)), path.parent.name, gathering):
            gathering.add(result)
    about = _about(source)
    for result in _bad_outcomes(about):
        gathering.add(result)
    date, sha = _when(about)
    # The archive does not say when the commit was made; the day it was first measured is the nearest that is known.
    return ImportedFile(
        "GradBench nightly",
        gathering.results,
        gathering.notes(),
        ImportedCommit(sha, authored_at=date),
        started_at=date,
    )


def _summaries(source: Source) -> list[PurePosixPath]:
    paths = (PurePosixPath(name) for name in source.files or ())
    return sorted(path for path in paths if path.name == "summary.json" and path.parent.parent.name == "evals")


def _about(source: Source) -> LocatedValue:
    names = [name for name in source.files or () if PurePosixPath(name).name == "summary.json"]
    return source.file(min(names, key=lambda name: len(PurePosixPath(name).parts)))


def _when(about: LocatedValue) -> tuple[datetime | None, str | None]:
    date, sha = text_at(about.get("date")), text_at(about.get("commit"))
    return (iso_time(date) if date else None), (sha if sha and len(sha) in {40, 64} else None)


def _bad_outcomes(about: LocatedValue) -> Iterator[Result]:
    """Tools that are known not to get through an eval; those that do not have it at all are none."""
    table = about.get("table")
    for row in table.each() if table is not None else ():
        workload = imported_names.name(row.need("eval").text(), row.path)
        for cell in row.need("tools").each():
            outcome = text_at(cell.get("outcome"))
            if outcome is not None and outcome not in {"undefined", "success"}:
                failed = FailedResult(
                    imported_names.name(outcome, cell.path), f"GradBench's outcome was {outcome[:40]}."
                )
                yield Result(
                    cell.path, workload, failed=failed, variant=imported_names.name(cell.need("tool").text(), cell.path)
                )


def _results(summary: LocatedValue, evaluated: str, gathering: ResultCollector) -> Iterator[Result]:
    workload = imported_names.name(evaluated, summary.path)
    functions = {part: text_at(summary.get(part)) or part for part in _PARTS}
    for tool, entries in summary.need("tools").members():
        variant = imported_names.name(tool, entries.path)
        for key, entry in entries.members():
            if not entry.is_object():
                entry.refuse("must be an object")
            if "secs" in entry.value:
                yield _result(entry, workload, gradbench.case_of(workload, key, None), variant, gathering)
                continue
            for part in _PARTS:
                duration = entry.get(part)
                if duration is not None:
                    params = gradbench.case_of(workload, functions[part], key)
                    yield _result(duration, workload, params, variant, gathering)


def _result(
    duration: LocatedValue,
    workload: str,
    params: dict[str, imported_names.Scalar],
    variant: str,
    gathering: ResultCollector,
) -> Result:
    seconds = duration.need("secs").number() + duration.need("nanos").number() / 1e9
    # A duration of nothing is how the archive writes that no run was timed.
    metric = (
        gathering.single(seconds, _SECONDS, "smaller", method="mean of runs, as GradBench publishes it")
        if seconds > 0
        else None
    )
    if metric is None:
        failed = FailedResult("no-value", "The archive has no duration for this function.")
        return Result(duration.path, workload, params, failed=failed, variant=variant)
    return Result(duration.path, workload, params, {"time": metric}, variant=variant)


IMPORTER = Importer("gradbench-nightly", "GradBench's nightly archive", recognises, read)
