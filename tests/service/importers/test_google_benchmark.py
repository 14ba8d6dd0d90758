"""Google Benchmark's files."""

import json
from statistics import median

import pytest


def test_repetitions_count_once_and_aggregates_not_at_all(read, sample):
    found = read("google-benchmark/repetitions.json")
    rows = [
        row
        for row in json.loads(sample("google-benchmark/repetitions.json"))["benchmarks"]
        if row["run_type"] == "iteration" and row["name"].startswith("BM_sin/8/")
    ]
    assert len(rows) == 3
    point = found.points["BM_sin[arg0=8]", "external", "time"]
    assert point.process_values == pytest.approx([median(row["real_time"] for row in rows) * 1e-6])
    assert point.series.unit == "s"
    assert found.values("cpu_time")["BM_sin[arg0=8]"] == pytest.approx(median(row["cpu_time"] for row in rows) * 1e-6)
    assert any("8 aggregate rows left out" in note for note in found.report.notes)


def test_arguments_become_parameters_and_modifiers_vanish(read):
    labels = read("google-benchmark/repetitions.json").values().keys()
    assert "BM_fill[size=1024,value=1,threads=2]" in labels
    assert not any("real_time" in label or "repeats" in label for label in labels)


def test_rates_are_better_bigger_and_other_counters_need_to_be_explained(read):
    found = read("google-benchmark/repetitions.json")
    rate = found.points["BM_sin[arg0=8]", "external", "items_per_second"]
    assert (rate.series.unit, rate.series.direction) == ("1/s", "bigger")
    assert any("`heat` has neither unit nor direction" in note for note in found.report.notes)
    explained = read("google-benchmark/repetitions.json", unit="heat:K", direction="heat:smaller")
    assert explained.values("heat")["BM_sin[arg0=8]"] == 7.0


def test_a_counter_that_is_nan_is_left_out_and_said(read):
    found = read("google-benchmark/repetitions.json", unit="odd:K", direction="odd:smaller")
    assert found.values("odd") == {}
    assert "6 NaN, infinite and out-of-range values ignored" in found.report.notes


def test_an_error_is_a_failure_and_not_a_fast_run(read):
    found = read("google-benchmark/repetitions.json")
    assert found.failures == {"BM_broken": "error"}
    assert "BM_broken" not in found.values()


def test_where_only_aggregates_are_left_the_median_is_taken(read):
    found = read("google-benchmark/aggregates-only.json")
    assert found.values().keys() == {"BM_sin[arg0=8]", "BM_sin[arg0=64]"}
    assert "the file has aggregates only: their median rows were taken" in found.report.notes


def test_the_clock_of_the_moment_is_shown_with_the_report_and_no_fact_of_the_machine(read):
    document = read("google-benchmark/repetitions.json").document
    assert document.machine.facts == {"cores": 2}
    assert document.harness.preflight == {"clock_mhz": 2596}


def test_a_debug_library_is_said(read):
    assert any("debug build" in note for note in read("google-benchmark/repetitions.json").report.notes)
