"""criterion.rs's folder `target/criterion`, sent as .tar.gz (what 0.3 to 0.5 write: <id>/new/{benchmark,sample}.json).

`sample.json` has the iterations and the nanoseconds of every sample; with linear sampling their numbers grow, so a time
per iteration is `times[i] / iters[i]`. All samples are of one process: the median of them is its value. `new` is the
last run; `base`, `change` and named baselines are of earlier ones and left out.
"""

from pathlib import PurePosixPath

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue, refuse, text_at
from pullback_service.importers.results import (
    FailedResult,
    ImportedFile,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
)
from pullback_service.importers.units import Unit

_NANOSECONDS = Unit(1e-9, "s")


def recognises(source: Source) -> bool:
    """Folders named `new` with a benchmark in them."""
    return source.files is not None and bool(_folders(source))


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every benchmark of the last run."""
    del options  # the format fixes units and directions
    gathering = ResultCollector()
    folders = _folders(source)
    if source.files is None or not folders:
        refuse("archive", "is not a criterion folder: send target/criterion as .tar.gz, as `pullback upload` does")
    earlier = sum(PurePosixPath(name).name == "sample.json" for name in source.files) - len(folders)
    gathering.left_out("samples of earlier runs left out", max(earlier, 0))
    for folder in folders:
        gathering.add(_result(source, folder, gathering))
    return ImportedFile("criterion.rs", gathering.results, gathering.notes())


def _folders(source: Source) -> list[PurePosixPath]:
    paths = (PurePosixPath(name) for name in source.files or ())
    return sorted(path.parent for path in paths if path.name == "benchmark.json" and path.parent.name == "new")


def _result(source: Source, folder: PurePosixPath, gathering: ResultCollector) -> Result:
    about = source.file(str(folder / "benchmark.json"))
    group, function, value = (text_at(about.get(key)) for key in ("group_id", "function_id", "value_str"))
    full_id = text_at(about.get("full_id")) or "/".join(folder.parent.parts)
    workload = imported_names.name("/".join(part for part in (group, function) if part) or full_id, about.path)
    params = {"value": imported_names.literal(value)} if value is not None else {}
    metric = _time(source, folder, gathering)
    if metric is None:
        failed = FailedResult("no-value", "The last run of this benchmark has no usable sample.")
        return Result(about.path, workload, params, failed=failed)
    return Result(about.path, workload, params, {"time": metric})


def _time(source: Source, folder: PurePosixPath, gathering: ResultCollector) -> Metric | None:
    sample_name, estimates_name = str(folder / "sample.json"), str(folder / "estimates.json")
    if not {sample_name, estimates_name} & set(source.files or ()):
        refuse(f"{folder}/benchmark.json", "has neither sample.json nor estimates.json beside it")
    if sample_name in (source.files or ()):
        sample = source.file(sample_name)
        times, iterations = sample.need("times"), sample.need("iters")
        if times.count() != iterations.count():
            sample.refuse(f"has {times.count()} times for {iterations.count()} iters")
        return gathering.one_process(sample, _per_iteration(times, iterations), _NANOSECONDS, "smaller", of="samples")
    median = source.file(estimates_name).need("median").need("point_estimate")
    return gathering.single(median.number(), _NANOSECONDS, "smaller", method="median, as estimated in the file")


def _per_iteration(times: LocatedValue, iterations: LocatedValue) -> list[float]:
    return [
        time / count if count else float("nan")
        for time, count in zip(times.numbers(), iterations.numbers(), strict=True)
    ]


IMPORTER = Importer("criterion", "criterion.rs", recognises, read)
