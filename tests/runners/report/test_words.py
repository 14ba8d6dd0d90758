import math

import pytest

from pullback_runners.report.words import (
    bytes_in_words,
    duration_in_words,
    factor_in_words,
    memory_in_words,
    time_in_words,
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.0, "2.00 s"), (0.0123, "12.3 ms"), (209e-6, "209 µs"), (1.19e-6, "1.19 µs"), (5e-9, "5.00 ns"), (0.0, "0 ns")],
)
def test_durations_have_three_digits_and_a_fitting_unit(seconds, words):
    assert duration_in_words(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (440_456, "430 KiB"), (3 << 30, "3.00 GiB")]
)
def test_bytes_are_exact_below_a_kibibyte(count, words):
    assert bytes_in_words(count) == words


def paired(outcome, log_ratio, low, high):
    return {"outcome": outcome, "log_ratio": log_ratio, "low": low, "high": high, "margin": 0.02}


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (paired("faster", -math.log(2.4), -math.log(2.5), -math.log(2.3)), "2.40x faster (2.30-2.50)"),
        (paired("slower", math.log(1.3), math.log(1.2), math.log(1.4)), "1.30x slower (1.20-1.40)"),
        (paired("same", 0.0, -0.01, 0.01), "same within 2% (0.99-1.01x)"),
        (paired("ambiguous", 0.0, math.log(0.9), math.log(1.1)), "ambiguous (0.90-1.10x)"),
        (paired("ambiguous", 0.0, math.log(0.996), math.log(1.004)), "ambiguous (0.996-1.004x)"),
        (paired("same", 0.0, math.log(0.9999), math.log(1.0001)), "same within 2% (0.9999-1.0001x)"),
        (paired("faster", -math.log(12.31), -math.log(12.312), -math.log(12.308)), "12.3x faster (12.308-12.312)"),
        (paired("failed", None, None, None), "failed"),
    ],
)
def test_outcomes_are_said_with_their_interval(pair, words):
    assert time_in_words(pair) == words


def test_memory_says_what_was_not_seen_and_what_varies():
    seen, unseen = {"value": 2048, "differs": False}, {"value": None}
    assert memory_in_words(seen, {"value": 3, "differs": False}) == "2.00 KiB in 3"
    assert memory_in_words(seen, {"value": 3, "differs": True}) == "2.00 KiB in 3 (varies between calls)"
    assert memory_in_words(unseen, unseen) == "not seen"


def test_a_count_of_zero_has_no_factor_but_a_direction():
    assert factor_in_words({"outcome": "less", "log_ratio": None}) == "less"
    assert factor_in_words({"outcome": "less", "log_ratio": math.log(0.36)}) == "0.36x"
    assert factor_in_words({"outcome": "equal", "log_ratio": 0.0}) == "equal"
