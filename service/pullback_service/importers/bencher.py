"""The Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format/).

`{"benchmark": {"measure": {"value": 88.0, "lower_value": 87.4, "upper_value": 88.9}}}`: one number per measure, no
samples, and neither unit nor direction, which Bencher keeps with the measure. They must be in the address, for all
measures (`unit=ns`) or for one each (`unit=latency:ns,throughput:ops/s`).
"""

from pullback_service.importers import imported_names
from pullback_service.importers.contents import Source
from pullback_service.importers.importer import Importer
from pullback_service.importers.json_paths import LocatedValue
from pullback_service.importers.results import (
    FailedResult,
    ImportedFile,
    Metric,
    Result,
    ResultCollector,
    UploadOptions,
)


def recognises(source: Source) -> bool:
    """Objects of objects of values."""
    if source.files is not None or source.is_lines() or not source.document.is_object():
        return False
    benchmarks = source.document.value.values()
    return bool(benchmarks) and all(
        isinstance(measures, dict)
        and bool(measures)
        and all(isinstance(measure, dict) and "value" in measure for measure in measures.values())
        for measures in benchmarks
    )


def read(source: Source, options: UploadOptions) -> ImportedFile:
    """One result for every benchmark."""
    gathering = ResultCollector()
    for key, measures in source.document.members():
        workload = imported_names.name(key, measures.path)
        metrics: dict[str, Metric] = {}
        for measure_name, measure in measures.members():
            metric = _metric(measure_name, measure, options, gathering)
            if metric is not None:
                metrics[imported_names.name(measure_name, measure.path)] = metric
        failed = None if metrics else FailedResult("no-value", "This benchmark has no usable value.")
        gathering.add(Result(measures.path, workload, metrics=metrics, failed=failed))
    return ImportedFile("Bencher", gathering.results, gathering.notes())


def _metric(name: str, measure: LocatedValue, options: UploadOptions, gathering: ResultCollector) -> Metric | None:
    unit, direction = options.need(name, "Bencher")
    if measure.get("lower_value") is not None or measure.get("upper_value") is not None:
        gathering.note("lower_value and upper_value were ignored: the file does not say what interval they are")
    return gathering.single(measure.need("value").number(), unit, direction, method="as given in the file")


IMPORTER = Importer("bencher", "the Bencher Metric Format", recognises, read)
