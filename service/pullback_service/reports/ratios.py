"""The ratio to the baseline that is kept of a variant's metric: what an upload states of it, as far as numbers bear it out.

Points are stored by this rule, and pages of whole reports show by it, so that both say the same. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from pullback_service.ratio import NO_RATIO, Ratio
from pullback_service.uploaded_claims import (
    BASELINE,
    COUNTED_IN_ONE_SESSION,
    EXACT_METRICS,
    WIDEST_MARGIN,
    doubt_of_count,
    doubt_of_measurement,
    outcome_of_counts,
)


class PairedRatio(NamedTuple):
    """A variant against the baseline, measured in the same groups."""

    baseline: str
    ratio: Ratio
    outcome: str


class StoredRatio(NamedTuple):
    """The ratio to store, if any, and why it differs from the one in the upload, if it does."""

    paired: PairedRatio | None
    doubt: str | None = None


NOTHING_STORED = StoredRatio(None)


class UploadedMetric(NamedTuple):
    """A metric of a variant in a report. `kind` is None where the report does not say."""

    name: str
    value: float | None
    kind: str | None
    direction: str | None

    @property
    def exact(self) -> bool:
        """True if any change of it is a change."""
        return self.name in EXACT_METRICS if self.kind is None else self.kind == "exact"

    @property
    def least(self) -> float | None:
        """The least ratio of counts that is a difference; None of what is no count."""
        if self.exact:
            return 0.0
        return COUNTED_IN_ONE_SESSION.get(self.name) if self.kind is None else None

    @property
    def is_count(self) -> bool:
        """True if values of one session compare by difference."""
        return self.least is not None


def uploaded_value(processes: Sequence[float] | None, value: float | None) -> float | None:
    """The value of a metric in a report: the median of its processes, or one count."""
    return median(processes) if processes else value


def stored_ratio(uploaded: PairedRatio, metric: UploadedMetric, value_of_baseline: float | None) -> StoredRatio:
    """The stored form of a stated ratio: of counts that of the counts themselves, of measurements what its interval supports."""
    if uploaded.outcome == "failed":
        return StoredRatio(PairedRatio(uploaded.baseline, NO_RATIO, "failed"))
    if metric.least is not None:
        return _of_counts(uploaded, metric.value, value_of_baseline, metric.least)
    if uploaded.outcome == "ambiguous":
        return StoredRatio(uploaded)
    doubt = doubt_of_measurement(
        uploaded.outcome,
        uploaded.ratio,
        margin=WIDEST_MARGIN,  # a point does not say its own
        bigger_is_better=metric.direction == "bigger",
    )
    return StoredRatio(uploaded if doubt is None else uploaded._replace(outcome="ambiguous"), doubt)


def stored_ratios(entry: Mapping[str, Any]) -> Mapping[tuple[str, str], StoredRatio]:
    """The stored ratios of an entry of a document, by variant and metric; none of a case that failed."""
    gradient, paired = entry.get("gradient"), entry.get("paired")
    if not paired or entry.get("error") or (gradient and not gradient.get("ok")):
        return {}
    told = {(variant, metric.name): metric for variant, metric in uploaded_metrics(entry)}
    results = {}
    for one in paired:
        metric = told.get((one["variant"], one["metric"]))
        if metric is not None:
            base = told.get((one["baseline"], metric.name))
            results[one["variant"], metric.name] = stored_ratio(
                PairedRatio(one["baseline"], ratio_in(one), one["outcome"]), metric, base and base.value
            )
    return results


def baseline_of(entry: Mapping[str, Any]) -> str:
    """The variant that the ratios of an entry of a document are against; `unfused` where it does not say."""
    stated: Iterator[str] = (one["baseline"] for one in entry.get("paired") or ())
    return next(stated, entry.get("baseline") or BASELINE)


def uploaded_metrics(entry: Mapping[str, Any]) -> Iterator[tuple[str, UploadedMetric]]:
    """Metrics of which an entry of a document has values, with their variant."""
    for variant in entry.get("variants", []):
        for name, metric in ({} if variant.get("error") else variant.get("metrics", {})).items():
            value = uploaded_value(metric.get("processes"), metric.get("value"))
            if value is not None:
                yield variant["variant"], UploadedMetric(name, value, metric.get("kind"), metric.get("direction"))


def ratio_in(document: Mapping[str, Any]) -> Ratio:
    """The ratio in an entry of a document."""
    return Ratio(document.get("log_ratio"), document.get("low"), document.get("high"), document.get("n"))


def _of_counts(
    uploaded: PairedRatio, value: float | None, value_of_baseline: float | None, least: float
) -> StoredRatio:
    if value is None or value_of_baseline is None:
        return StoredRatio(None, f"There is no count of {uploaded.baseline} in this case.")
    outcome, log_ratio = outcome_of_counts(value, value_of_baseline, least=least)
    ratio = Ratio(log_ratio, log_ratio, log_ratio, uploaded.ratio.n)
    counted = PairedRatio(uploaded.baseline, ratio, outcome)
    if uploaded.outcome == "ambiguous":
        return StoredRatio(counted._replace(outcome="ambiguous"))
    return StoredRatio(counted, doubt_of_count(uploaded.outcome, log_ratio, least=least))
