import math

import pytest

from pullback_cli.supervision.headline import Ratio, failed_cases, time_ratios

CASE = {"workload": "poly9_broadcast", "params": {"n": 100}, "dtype": "f4", "device": "cpu"}


def test_ratios_are_factors_of_the_baselines_time():
    pair = {
        "variant": "fused",
        "baseline": "unfused",
        "metric": "time",
        "log_ratio": math.log(0.5),
        "outcome": "faster",
    }
    counted = {**pair, "metric": "array_bytes"}
    unpaired = {**pair, "log_ratio": None}
    report = {"cases": [{"case": CASE, "error": None, "paired": [pair, counted, unpaired]}]}
    name = "poly9_broadcast[n=100,f4,cpu]"
    assert list(time_ratios(report)) == [Ratio(name, "fused", "unfused", pytest.approx(0.5), "faster")]
    assert list(failed_cases(report)) == []


def test_a_failed_case_is_said_to_have_failed():
    report = {"cases": [{"case": CASE, "error": {"kind": "gradient", "message": "wrong gradient"}, "paired": []}]}
    assert list(failed_cases(report)) == ["poly9_broadcast[n=100,f4,cpu] failed: wrong gradient"]
    assert list(time_ratios(report)) == []
