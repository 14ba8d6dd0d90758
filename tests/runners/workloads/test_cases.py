import pytest

from pullback_runners.errors import UsageError
from pullback_runners.workloads import Case, grid, select_cases

QUICK = [
    "dense_bias_act[n=32,act=tanh,f4,cpu]",
    "dense_bias_act[n=100,act=tanh,f4,cpu]",
    "mul_restore[m=16,k=32,n=8,f8,cpu]",
    "poly9_broadcast[n=1000,f8,cpu]",
    "touch_large_array[n=100000,form=index,f8,cpu]",
    "touch_large_array[n=100000,form=projection,f8,cpu]",
]


def names(suite, *patterns):
    return [case.name for case in select_cases(suite, patterns)]


def test_the_quick_suite_holds_the_four_seeds_at_small_sizes():
    assert [name for name in names("quick") if name in QUICK] == QUICK


def test_the_standard_suite_holds_the_quick_one():
    assert set(QUICK) < set(names("standard"))


def test_a_case_is_the_same_after_a_trip_through_its_document():
    for case in select_cases("standard"):
        assert Case.of_document(case.document()) == case


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("mul_restore", QUICK[2:3]),
        ("dense_bias_act[n=100,act=tanh,f4,cpu]", QUICK[1:2]),
        ("*f4*", QUICK[:2]),
        ("dense_bias_act[n=???,*]", QUICK[1:2]),
        ("touch*", QUICK[4:]),
    ],
)
def test_patterns_take_brackets_as_they_are(pattern, expected):
    assert names("quick", pattern) == expected


def test_a_case_chosen_twice_is_measured_once():
    assert names("quick", "mul_restore", "mul*") == QUICK[2:3]


def test_a_pattern_without_a_case_is_an_error_even_beside_one_that_has_some():
    with pytest.raises(UsageError, match="'nothing'"):
        select_cases("quick", ["mul_restore", "nothing"])


def test_a_grid_is_every_combination():
    assert grid(n=(1, 2), form=("a", "b")) == [
        {"n": 1, "form": "a"},
        {"n": 1, "form": "b"},
        {"n": 2, "form": "a"},
        {"n": 2, "form": "b"},
    ]
