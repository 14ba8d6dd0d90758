"""Counts of sessions of planted slowdowns, from their record."""

from benchmarks.projects.compare_sessions import SAME, floor_ratio, missing, planted, row_of


def row(outcome, log_ratio=0.0, claim=0.005, duration_s=30.0):
    return {"outcome": outcome, "log_ratio": log_ratio, "claim": claim, "n": 20, "duration_s": duration_s}


def test_a_row_counts_what_was_found_and_what_was_called_different():
    (_, two, _) = planted(["jax"])
    rows = [row("slower", 0.02), row("ambiguous", 0.01), row("faster", -0.03), row("same")]
    assert row_of(two, rows) == "| jax | +2 % | 4 | 1 | 2 | 1 | +0.00 % | 0.50 % | 20 | 30 |"


def test_what_is_missing_is_told_with_its_time():
    equal, two, thirty = planted(["numpy"])
    rows = {equal.name: [row("same", duration_s=40.0)] * 3, two.name: [row("slower", duration_s=20.0)]}
    # two of 20 s; three of the usual length of a session, since none was held
    assert missing([equal, two, thirty], rows, 3) == "missing: 5 sessions, about 3 minutes"
    assert missing([equal], rows, 3) is None


def test_the_floor_of_two_environments_is_held_against_that_of_one():
    one, two = SAME
    assert floor_ratio({one.name: [row("same", claim=0.01)]}) is None
    rows = {one.name: [row("same", claim=0.01)], two.name: [row("same", claim=0.012)]}
    assert floor_ratio(rows) == "floor of two environments: 1.20 times that of one"
