"""A case of a report, taken apart into the rows that are stored. Pure: no ids, no database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from pullback_service.errors import FieldError, InvalidInputError
from pullback_service.measured_code.code_identity import CodeIdentity
from pullback_service.models.reports import WRONG_GRADIENT
from pullback_service.reports.ratios import PairedRatio, UploadedMetric, stored_ratio, uploaded_value
from pullback_service.reports.schemas import (
    CaseDocument,
    ComparisonDocument,
    DigestsDocument,
    MeasuredCaseDocument,
    MetricDocument,
    PairedDocument,
    VariantDocument,
)
from pullback_service.series import case_identity
from pullback_service.series.case_identity import CasePart, SeriesPart


class PointPart(NamedTuple):
    """The measurement of one series. `path` is its place in the report; the harness is that of the whole report.

    `calls` are the least and the most that a call counted, where calls differ. `doubt` is why its ratio is not kept as the report states it.
    """

    series: SeriesPart
    path: str
    value: float
    process_values: list[float] | None
    calls: tuple[float, float] | None
    method: str | None
    program_hash: str | None
    measured: CodeIdentity
    paired: PairedRatio | None
    doubt: str | None


@dataclass(frozen=True, slots=True)
class FailurePart:
    """A failure to measure; `variant` is None for the whole case."""

    case: bytes
    variant: str | None
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class ComparisonPart:
    """Two commits against each other."""

    case: bytes
    document: ComparisonDocument


_NO_DIGESTS: Final = DigestsDocument()


def part_of(document: CaseDocument) -> CasePart:
    """A case with its identity and its label."""
    facts = (document.workload, document.params, document.dtype, document.device)
    return CasePart(case_identity.identity(*facts), case_identity.label(*facts), *facts)


def take_apart(
    case: CasePart, measured: MeasuredCaseDocument, path: str, *, inside: bool = True
) -> tuple[list[PointPart], list[FailurePart]]:
    """Points and failures of a case that stands at `path`; contradictions inside it are refused with their place.

    A place that is not `inside` our own document is where another tool's file says all of the case.
    """
    points: list[PointPart] = []
    failures: list[FailurePart] = []
    failure = _failure_of_case(case, measured)
    if failure is not None:
        return points, [failure]
    paired = _paired_by_metric(measured, path)
    sound = {variant.variant: variant.metrics for variant in measured.variants if variant.error is None}
    for position, variant in enumerate(measured.variants):
        if variant.error is not None:
            failures.append(FailurePart(case.identity, variant.variant, variant.error.kind, variant.error.message))
            continue
        where = f"{path}.variants[{position}].metrics." if inside else f"{path}: "
        points += _points_of(case, variant, paired, sound, where)
    return points, failures


def _failure_of_case(case: CasePart, measured: MeasuredCaseDocument) -> FailurePart | None:
    """A case that did not run, or whose gradient was wrong: a wrong gradient is a failed case, not a fast point.

    Where every variant says why it failed, nothing was checked, and their reasons stand instead.
    """
    if measured.error is not None:
        return FailurePart(case.identity, None, measured.error.kind, measured.error.message)
    gradient = measured.gradient
    has_reasons = bool(measured.variants) and all(variant.error is not None for variant in measured.variants)
    if gradient is not None and not gradient.ok and not has_reasons:
        size = "" if gradient.max_rel_error is None else f", largest relative error {gradient.max_rel_error:.3g}"
        oracle = f" against {gradient.oracle}" if gradient.oracle else ""
        return FailurePart(case.identity, None, WRONG_GRADIENT, f"The gradient was wrong{oracle}{size}.")
    return None


def _paired_by_metric(measured: MeasuredCaseDocument, path: str) -> dict[tuple[str, str], PairedDocument]:
    names = [variant.variant for variant in measured.variants]
    for position, name in enumerate(names):
        if name in names[:position]:
            refuse_part(f"{path}.variants[{position}].variant", f"{name} is in this case already")
    known = {(variant.variant, metric) for variant in measured.variants for metric in variant.metrics}
    failed = {variant.variant for variant in measured.variants if variant.error is not None}
    results: dict[tuple[str, str], PairedDocument] = {}
    for position, paired in enumerate(measured.paired):
        key = (paired.variant, paired.metric)
        where = f"{path}.paired[{position}]"
        if key not in known and paired.variant not in failed:
            refuse_part(where, f"there is no {paired.metric} of a variant {paired.variant} in this case")
        if key in results:
            refuse_part(where, f"{paired.metric} of {paired.variant} is paired already")
        results[key] = paired
    return results


def _points_of(
    case: CasePart,
    variant: VariantDocument,
    paired: Mapping[tuple[str, str], PairedDocument],
    sound: Mapping[str, Mapping[str, MetricDocument]],
    path: str,
) -> Iterator[PointPart]:
    digests = variant.digests or _NO_DIGESTS
    measured = CodeIdentity(digests.workload or "", digests.subject or "")
    for name, metric in variant.metrics.items():
        uploaded = _told(name, metric)
        stated = paired.get((variant.variant, name))
        if uploaded.value is None or (stated is not None and stated.outcome == "failed"):
            continue  # a layer that could not be seen is no point; it is not zero
        base = {} if stated is None else sound.get(stated.baseline, {})
        ratio = None if stated is None else stored_ratio(_stated(stated), uploaded, _count_in(base, uploaded))
        yield PointPart(
            series=SeriesPart(
                case.identity, variant.variant, variant.kind, name, metric.unit, metric.direction, uploaded.exact
            ),
            path=f"{path}{name}",
            value=uploaded.value,
            process_values=metric.processes or None,
            calls=None if metric.processes else _calls(uploaded.value, metric.range),
            method=metric.method or metric.clock,
            program_hash=variant.program_hash or digests.code,
            measured=measured,
            paired=ratio and ratio.paired,
            doubt=ratio and ratio.doubt,
        )


def _calls(value: float, told: Sequence[float] | None) -> tuple[float, float] | None:
    return None if told is None else (min(value, *told), max(value, *told))


def _told(name: str, metric: MetricDocument) -> UploadedMetric:
    return UploadedMetric(name, uploaded_value(metric.processes, metric.value), metric.kind, metric.direction)


def _count_in(base: Mapping[str, MetricDocument], uploaded: UploadedMetric) -> float | None:
    """The count of the baseline; what is measured is compared by groups, and ignored."""
    metric = base.get(uploaded.name) if uploaded.is_count else None
    return None if metric is None else uploaded_value(metric.processes, metric.value)


def _stated(document: PairedDocument) -> PairedRatio:
    return PairedRatio(document.baseline, document.ratio, document.outcome)


def refuse_part(path: str, message: str) -> NoReturn:
    """Raise: what the report says at `path` contradicts the rest of it."""
    raise InvalidInputError(f"{path}: {message}.", errors=[FieldError(path=path, message=message)])
