"""Entries of a report with the values and ratios of its commit's readings, whichever reports these are of."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pullback_dashboards.report.view import label_of
from pullback_service.readings.commit_readings import CaseReadings, SeriesReading
from pullback_service.uploaded_claims import kind_of_metric


def pooled_entry(entry: Mapping[str, Any], readings: Iterable[SeriesReading]) -> Mapping[str, Any]:
    """An entry, with the variants and metrics that other reports measured. Samples, plans and failures stay the report's."""
    if entry.get("error"):
        return entry
    variants = {variant["variant"]: {**variant} for variant in entry.get("variants", [])}
    paired = {(row["variant"], row["metric"]): row for row in entry.get("paired") or ()}
    for variant_name, kind, metric_name, unit, direction, exact, reading in readings:
        variant = variants.setdefault(variant_name, {"variant": variant_name, "kind": kind, "metrics": {}})
        if variant.get("error"):
            continue
        metrics = variant["metrics"] = {**variant.get("metrics", {})}
        told = metrics.get(metric_name) or {
            "method": reading.method,
            "direction": direction,
            "kind": kind_of_metric(metric_name, exact=exact),
        }
        kept = {name: value for name, value in told.items() if name != "processes" or metric_name == "time"}
        metrics[metric_name] = {"unit": unit, **kept, "value": reading.value, "pooled": reading.value}
        if reading.outcome is not None:
            its = {"variant": variant_name, "baseline": reading.against, "metric": metric_name}
            paired[variant_name, metric_name] = {**its, **reading.ratio._asdict(), "outcome": reading.outcome}
        else:
            paired.pop((variant_name, metric_name), None)
    return {**entry, "variants": [*variants.values()], "paired": [*paired.values()]}


def pooled_entries(
    entries: Iterable[Mapping[str, Any]], of_commit: Mapping[str, CaseReadings], *, most_others: int
) -> Iterator[Mapping[str, Any]]:
    """Some entries by the readings of their commit, then the first cases of which only other reports tell."""
    left = dict(of_commit)
    for entry in entries:
        found = left.pop(label_of(entry["case"]), None)
        yield entry if found is None else pooled_entry(entry, found.readings)
    for case, readings in islice(left.values(), most_others):
        yield pooled_entry({"case": case, "gradient": None}, readings)
