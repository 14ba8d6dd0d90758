import math

from pullback_cli.supervision.headline import paired_times


def test_ratios_are_factors_of_time_in_words():
    pair = {
        "variant": "fused",
        "baseline": "unfused",
        "metric": "time",
        "log_ratio": math.log(0.5),
        "outcome": "faster",
    }
    counted = {**pair, "metric": "array_bytes"}
    unpaired = {**pair, "log_ratio": None}
    case = {"case": {"workload": "poly9_broadcast"}, "error": None, "paired": [pair, counted, unpaired]}
    assert paired_times({"cases": [case]}) == ["poly9_broadcast fused 0.50x the time of unfused (faster)"]


def test_a_failed_case_is_said_to_have_failed():
    case = {"case": {"workload": "w"}, "error": {"kind": "gradient", "message": "wrong gradient"}, "paired": []}
    assert paired_times({"cases": [case]}) == ["w failed (wrong gradient)"]
