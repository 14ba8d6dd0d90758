import math

import pytest

from pullback_dashboards.wording import factors
from pullback_service.ratio import Ratio


def said(ratio, *, metric="time", outcome="faster"):
    return factors.words(math.log(ratio), metric=metric, outcome=outcome, baseline="unfused")


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.42, "0.42×"), (1.034, "1.03×"), (12.54, "12.5×"), (240, "240×"), (0.0123, "0.012×")]
)
def test_a_factor_has_two_or_three_digits(ratio, text):
    assert factors.factor(math.log(ratio)) == text


def test_words_name_the_direction_and_the_baseline():
    assert said(0.42) == "2.4× faster than unfused"
    assert said(0.88) == "takes 12 % less time than unfused"
    assert said(1.22, outcome="slower") == "takes 22 % more time than unfused"
    assert said(3.1, outcome="slower") == "3.1× slower than unfused"
    assert said(0.42, metric="array_bytes", outcome="less") == "58 % less than unfused"
    assert said(3.1, metric="array_bytes", outcome="more") == "3.1× as much as unfused"
    assert said(1.001, outcome="same") == "same as unfused"


def test_two_digits_of_a_percentage_are_enough_on_either_side_of_ten():
    assert [said(ratio) for ratio in (0.9, 0.901)] == [
        "takes 10 % less time than unfused",
        "takes 9.9 % less time than unfused",
    ]


def test_an_ambiguous_ratio_never_reads_as_faster():
    assert said(0.98, outcome="ambiguous") == "ambiguous against unfused: 0.98×"


@pytest.mark.parametrize(
    ("value", "base", "words"),
    [
        (0, 3, "none, unlike unfused"),
        (3, 0, "some, where unfused has none"),
        (-5, 3, "less than unfused: -5 against 3"),
        (-5, 0, "less than unfused: -5 against 0"),
        (0, -5, "more than unfused: 0 against -5"),
        (3, -5, "more than unfused: 3 against -5"),
        (-3, -5, "more than unfused: -3 against -5"),
    ],
)
def test_counts_with_zero_or_less_on_one_side_have_words_but_no_ratio(value, base, words):
    assert factors.without_ratio(value, base, unit="1", baseline="unfused") == words


def test_an_interval_has_the_digits_its_width_supports():
    assert factors.interval(math.log(0.41), math.log(0.43)) == "0.41–0.43"
    assert factors.interval(math.log(0.4112), math.log(0.4128)) == "0.4112–0.4128"


@pytest.mark.parametrize(
    ("low", "ratio", "high", "factor", "interval"),
    [
        (0.41, 0.42, 0.43, "0.42×", "0.41–0.43"),
        (0.4112, 0.412, 0.4128, "0.4120×", "0.4112–0.4128"),
        (1.2, 1.25, 1.3, "1.25×", "1.20–1.30"),
        (1.203, 1.25, 1.31, "1.25×", "1.20–1.31"),
        (9.95, 10.05, 10.15, "10.1×", "9.9–10.2"),
        (236.6, 240.0, 243.4, "240×", "237–243"),
        (0.0492, 0.0494, 0.0496, "0.0494×", "0.0492–0.0496"),
        (0.4, 0.4, 0.4, "0.40×", "0.4000–0.4000"),
    ],
)
def test_a_factor_beside_its_interval_has_as_many_decimals(low, ratio, high, factor, interval):
    low, ratio, high = map(math.log, (low, ratio, high))
    assert (factors.factor(ratio, low, high), factors.interval(low, high)) == (factor, interval)


def test_one_group_is_no_groups():
    ratio = Ratio(0.1, 0.05, 0.15, 1)
    said = factors.against_commit("ambiguous", ratio, metric="time", reference="a" * 40)
    assert said.endswith("1 group)")


def test_a_count_against_another_has_no_interval():
    half = math.log(1.5)
    said = factors.against_commit("more", Ratio(half, half, half, 1), metric="arrays", reference="a" * 40)
    assert said == "50.0 % more arrays than aaaaaaaaa"


@pytest.mark.parametrize(
    ("factor", "shown"), [(81, "81×"), (3, "3.0×"), (2.9, "+190.0 %"), (1.3, "+30.0 %"), (1 / 81, "−98.8 %")]
)
def test_from_three_times_as_much_on_a_movement_is_a_factor(factor, shown):
    assert factors.shift(math.log(factor)) == shown


def test_beyond_a_million_nobody_counts_digits():
    middle = 200.0  # the largest of an upload
    told = (
        factors.factor(middle),
        factors.factor(middle, middle - 0.01, middle + 0.01),
        factors.interval(middle - 0.01, middle + 0.01),
        factors.shift(middle),
        factors.doubt(-middle, middle),
        said(math.exp(middle), outcome="slower"),
        said(math.exp(middle), metric="array_bytes", outcome="more"),
        factors.against_commit("slower", Ratio(middle), metric="time", reference="a" * 40),
    )
    assert told == (
        "7.2e+86×",
        "7.2e+86×",
        "7.2e+86–7.3e+86",
        "more than 1,000,000×",
        "±7.2e+88 %",
        "more than 1,000,000× slower than unfused",
        "more than 1,000,000× as much as unfused",
        "more than 1,000,000× the time of aaaaaaaaa",
    )
    assert said(math.exp(-middle)) == "more than 1,000,000× faster than unfused"
    assert factors.factor(math.log(999_000)) == "999,000×"


def test_below_a_millionth_nobody_counts_zeros():
    assert factors.factor(-200.0, -200.01, -199.99) == "1.4e-87×"
    assert factors.interval(-200.01, -199.99) == "1.4e-87–1.4e-87"
    assert factors.interval(-200.0, math.log(2)) == "0.00–2.00"


def test_every_outcome_has_a_mark_of_its_own_kind_besides_its_tone():
    marks = {
        factors.tone(outcome, bigger_is_better=False): factors.mark(outcome, bigger_is_better=False)
        for outcome in ("faster", "slower", "same", "ambiguous", "failed")
    }
    assert len(set(marks.values())) == len(marks) == 5


@pytest.mark.parametrize("bigger_is_better", [False, True])
@pytest.mark.parametrize("outcome", ["less", "more", "faster", "slower", "equal", "ambiguous", "failed"])
def test_a_mark_is_the_sign_of_the_tone_in_either_direction(outcome, bigger_is_better):
    tone = factors.tone(outcome, bigger_is_better=bigger_is_better)
    assert factors.mark(outcome, bigger_is_better=bigger_is_better) == factors.sign(tone) != ""


def test_what_has_no_outcome_has_no_mark():
    assert factors.mark(None, bigger_is_better=True) == factors.mark("not_comparable", bigger_is_better=False) == ""


def test_more_is_better_only_where_the_series_says_so():
    told = [factors.tone(outcome, bigger_is_better=bigger) for bigger in (False, True) for outcome in ("less", "more")]
    assert told == ["better", "worse", "worse", "better"]
    assert factors.tone("faster", bigger_is_better=True) == "better"  # of rates as well, faster is the better one


@pytest.mark.parametrize(("ratio", "steps"), [(1.0, 0), (0.9, 1), (1.25, 2), (0.6, 3), (0.4, 4), (0.2, 5), (8, 5)])
def test_depth_grows_with_the_distance_from_the_baseline_either_way(ratio, steps):
    assert factors.depth(math.log(ratio)) == steps
