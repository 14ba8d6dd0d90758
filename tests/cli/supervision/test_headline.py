"""What `up` prints of a measured commit: the words of `pullback run`, however large the factor."""

import math

from pullback_cli.supervision.headline import Ratio, failed_cases, time_ratios

CASE = {"workload": "poly9_broadcast", "params": {"n": 100}, "dtype": "f4", "device": "cpu"}


def test_ratios_are_told_in_the_words_of_a_run():
    pair = {
        "variant": "native", "baseline": "unfused", "metric": "time", "outcome": "faster",
        "log_ratio": -math.log(209), "low": -math.log(224), "high": -math.log(195),
    }  # fmt: skip
    counted = {**pair, "metric": "array_bytes"}
    unpaired = {**pair, "log_ratio": None}
    report = {"cases": [{"case": CASE, "error": None, "paired": [pair, counted, unpaired]}]}
    name = "poly9_broadcast[n=100,f4,cpu]"
    assert list(time_ratios(report)) == [Ratio(name, "native", "unfused", "209x faster (195-224)")]
    assert list(failed_cases(report)) == []


def test_a_failed_case_is_said_to_have_failed():
    report = {"cases": [{"case": CASE, "error": {"kind": "gradient", "message": "wrong gradient"}, "paired": []}]}
    assert list(failed_cases(report)) == ["poly9_broadcast[n=100,f4,cpu] failed: wrong gradient"]
    assert list(time_ratios(report)) == []
