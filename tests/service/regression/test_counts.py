"""Counts: every difference at its commit, and one change where a count goes back and forth."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from pullback_service.regression import Watcher, find_changes


def lived(values, commits=None):
    watcher = Watcher(exact=True)
    commits = commits or [None] * len(values)
    return [
        (i, c.kind, c.first)
        for i, (v, x) in enumerate(zip(values, commits, strict=True))
        for c in watcher.observe(v, commit=x)
    ]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30)), min_size=1, max_size=6))
def test_every_new_value_of_a_count_is_told_at_its_observation(levels):
    values, expected, value = [], [], 100
    for up, length in levels:
        value += up
        expected.append(len(values))
        values += [value] * length
    assert [(c.first, c.last, c.kind) for c in find_changes(values, exact=True)] == [
        (i, i, "step") for i in expected[1:]
    ]
    assert lived(values) == [(i, "step", i) for i in expected[1:]]


@given(st.integers(1, 30), st.lists(st.integers(1, 20), min_size=4, max_size=9))
def test_a_count_that_goes_back_and_forth_is_one_change(begin, lengths):
    values = [7] * begin + [v for i, length in enumerate(lengths) for v in [8 if i % 2 == 0 else 7] * length]
    (change,) = find_changes(values, exact=True)
    assert (change.kind, change.first) == ("unsteady", begin)
    assert change.last == len(values) - lengths[-1]
    assert [kind for _, kind, _ in lived(values)] == ["step", "return"]


def test_a_count_that_is_mended_is_one_event_with_an_end_however_late():
    values = [5] * 10 + [6] * 80 + [5] * 10
    assert [(c.kind, c.first, c.since) for c in find_changes(values, exact=True)] == [
        ("step", 10, None),
        ("return", 90, 10),
    ]


def test_a_new_value_of_an_unsteady_count_is_told():
    values = [5, 6, 5, 6, 5, 6, 9, 9, 9]
    assert [(c.kind, c.first) for c in find_changes(values, exact=True)] == [("unsteady", 1), ("step", 6)]


def test_a_count_that_differs_within_a_commit_blames_no_commit():
    assert lived([5, 5, 6, 5], ["a", "b", "b", "c"]) == [(2, "unsteady", 2)]


def test_a_count_that_was_zero_grew_without_bound():
    (change,) = find_changes([0, 0, 3], exact=True)
    assert (change.first, change.size) == (2, math.inf)
    watcher = Watcher(exact=True)
    for value in (0, 0, 3):
        watcher.observe(value)
    assert Watcher.restored(json.loads(json.dumps(watcher.state(), allow_nan=False))).changes == [change]


def test_a_count_that_is_steady_for_long_may_change_again():
    values = [5, 6, 5, 6, *[5] * 60, 6, 6]
    assert [(c.kind, c.first) for c in find_changes(values, exact=True)] == [("unsteady", 1), ("step", 64)]
