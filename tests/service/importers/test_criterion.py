"""criterion.rs's folders."""

import json
from pathlib import Path
from statistics import median

import pytest

TARGET = Path(__file__).parents[2] / "data" / "importers" / "criterion" / "target" / "criterion"


def test_a_time_is_per_iteration_and_of_the_last_run(read):
    found = read("criterion/target/criterion")
    sample = json.loads((TARGET / "fill_vec/zeros/16/new/sample.json").read_text())
    assert sample["sampling_mode"] == "Linear"
    expected = median(time / count for time, count in zip(sample["times"], sample["iters"], strict=True)) * 1e-9
    assert found.values()["fill/vec/zeros[value=16]"] == pytest.approx(expected)
    assert found.values().keys() == {"sum", "fill/vec/flat", "fill/vec/zeros[value=16]", "fill/vec/zeros[value=256]"}
    assert "4 samples of earlier runs left out" in found.report.notes


def test_it_agrees_with_what_criterion_estimates_itself(read):
    estimates = json.loads((TARGET / "sum/new/estimates.json").read_text())
    found = read("criterion/target/criterion").values()["sum"]
    assert found == pytest.approx(estimates["median"]["point_estimate"] * 1e-9, rel=1e-9)
