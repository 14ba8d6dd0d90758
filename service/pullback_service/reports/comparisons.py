"""Comparisons of two commits in a report, judged as every series is from which nothing but a comparison is known. Pure."""

from collections.abc import Mapping
from typing import Any

from pullback_service.comparisons.judgement_inputs import JudgementInputs, SeriesStatements
from pullback_service.comparisons.judgements import Shape
from pullback_service.comparisons.judging import UploadedComparison
from pullback_service.comparisons.queries import SeriesComparison, judged_series
from pullback_service.reports.ratios import UploadedMetric, ratio_in

_REFERENCE, _CANDIDATE = 0, 1


def compared_in(
    document: Mapping[str, Any], metrics: Mapping[str, UploadedMetric], *, quality: str, dirty: bool
) -> SeriesComparison:
    """The series that an entry of `comparisons` is about, with its judgement; `metrics` are those of the report by name."""
    name = document["metric"]
    metric = metrics.get(name, UploadedMetric(name, None, None, None))
    key = 0, 0, document["variant"], name
    shape = Shape(document["variant"], None, name, None, metric.direction or "smaller", metric.exact)
    uploaded = UploadedComparison(
        outcome=document["outcome"],
        ratio=ratio_in(document),
        claim=document.get("claim"),
        margin=document.get("margin"),
        provisional=bool(document.get("margin_is_provisional")),
        quality=quality,
        dirty=dirty,
    )
    inputs = JudgementInputs({key: SeriesStatements([uploaded], 0, None, None, None, shape.direction, shape.exact)})
    return judged_series(key, shape, None, None, None, _REFERENCE, _CANDIDATE, inputs)
