"""Entries of a report, with the readings of its commit in the place of its own values."""

from tests.service.readings.making import reading

from pullback_dashboards.report.pooled import pooled_entries, pooled_entry
from pullback_service.readings.commit_readings import CaseReadings, SeriesReading

CASE = {"workload": "w", "params": {"n": 1}, "dtype": "f8", "device": "cpu"}
ROW = {"variant": "fused", "baseline": "unfused", "metric": "memory", "log_ratio": 0.5}


def series(variant="fused", metric="time", **changes):
    outcome = {"log_ratio": -0.5, "low": -0.6, "high": -0.4, "n": 20, "outcome": "faster", "baseline": "unfused"}
    return SeriesReading(variant, None, metric, "s", "smaller", False, reading(2.0, **(outcome | changes)))


def test_what_is_not_pooled_stays_as_the_report_has_it():
    entry = {"case": CASE, "variants": [{"variant": "fused", "metrics": {"memory": {"value": 3}}}], "paired": [ROW]}
    pooled = pooled_entry(entry, [series()])
    assert [(row["metric"], row["log_ratio"]) for row in pooled["paired"]] == [("memory", 0.5), ("time", -0.5)]
    assert [metric["value"] for metric in pooled["variants"][0]["metrics"].values()] == [3, 2.0]


def test_a_reading_without_a_ratio_leaves_none_of_the_report():
    entry = {"case": CASE, "variants": [], "paired": [ROW]}
    assert pooled_entry(entry, [series(metric="memory", outcome=None, log_ratio=None)])["paired"] == []


def test_no_more_cases_of_other_reports_are_shown_than_are_asked_for():
    of_commit = {str(n): CaseReadings(CASE | {"params": {"n": n}}, [series()]) for n in range(5)}
    entries = [{"case": CASE, "variants": []}]
    assert [len(list(pooled_entries(entries, of_commit, most_others=most))) for most in (0, 2, 9)] == [1, 3, 6]
