"""The rule that holds for a series."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.rules.matching import Rule, Subject, matches, rule_for

CASE = "lstm[n=100,act=tanh,f4,cpu]"
TIME = Subject("lstm", CASE, "native", "time", "box")


@pytest.mark.parametrize(
    ("glob", "name", "said"),
    [
        (CASE, CASE, True),
        ("lstm[n=*]", CASE, True),
        ("lstm[abc]", "lstma", False),
        ("box-?", "box-1", True),
        ("box-?", "box-12", False),
        ("a.c", "abc", False),
        ("lstm", "lstm2", False),
    ],
)
def test_a_glob_matches_all_of_a_name_and_brackets_are_plain(glob, name, said):
    assert matches(glob, name) is said


def plainly_matches(glob, name):
    """By definition: a star is nothing, or a character and the star again."""
    if not glob:
        return not name
    if glob[0] == "*":
        return plainly_matches(glob[1:], name) or (name != "" and plainly_matches(glob, name[1:]))
    return name != "" and glob[0] in {"?", name[0]} and plainly_matches(glob[1:], name[1:])


@given(st.text("ab*?[]!^-\\&~|.", max_size=7), st.text("ab[]!^-\\&~|.", max_size=7))
def test_any_glob_matches_what_it_says(glob, name):
    assert matches(glob, name) is plainly_matches(glob, name)


def test_many_stars_take_no_longer_than_one():
    # Where stars try all places, the first ends after seconds, and the other never.
    for stars, length in ((16, 32), (99, 200)):
        began = time.process_time()
        assert not matches("*a" * stars + "b", "a" * length)
        assert time.process_time() - began < 0.5


def test_for_each_key_the_last_rule_that_matches_and_sets_it_decides():
    rules = [
        Rule(0, watch=False),
        Rule(1, workload="lstm", watch=True, at_least=0.02),
        Rule(2, variant="native", at_least=0.05),
        Rule(3, machine="other", watch=False),
    ]
    assert rule_for(rules, TIME, "watch") == rules[1]
    assert rule_for(rules, TIME, "at_least") == rules[2]
    assert rule_for(rules, TIME, "tell") is None
    assert rule_for(rules, TIME._replace(workload="gru"), "watch") == rules[0]


def test_a_rule_that_names_a_metric_is_not_about_what_failed():
    assert not Rule(0, metric="*").matches(TIME._replace(metric=None))
    assert Rule(0, workload="lstm").matches(TIME._replace(metric=None, variant=None))
