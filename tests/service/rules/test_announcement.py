"""The changes that rules let be announced, and the channels that they name."""

from math import log

from hypothesis import given
from hypothesis import strategies as st

from pullback_service.rules.announcement import SizedChange, decide
from pullback_service.rules.matching import Rule, Subject

TIME = Subject("lstm", "lstm[n=100,act=tanh,f4,cpu]", "native", "time", "box")
GROWN = SizedChange(TIME, log(1.03))


def test_what_is_smaller_than_a_rule_asks_for_is_told_to_nobody_and_the_rule_is_named():
    rules = [Rule(0, at_least=0.05)]
    kept = decide(rules, [GROWN])
    assert (kept.tells, [each.as_json()["says"] for each in kept.held]) == (False, ["at_least = 0.05"])
    assert decide(rules, [GROWN, SizedChange(TIME, log(1.2))]).channels is None
    assert decide(rules, [GROWN._replace(is_of_budget=True)]).tells
    assert decide(rules, [SizedChange(TIME, None)]).tells


def test_channels_of_all_changes_are_told_together_and_none_named_is_all():
    rules = [
        Rule(0, variant="native", tell=["a"]),
        Rule(1, variant="fused", tell=["b"]),
        Rule(2, metric="ops", tell=[]),
    ]
    native, fused = GROWN, GROWN._replace(subject=TIME._replace(variant="fused"))
    assert set(decide(rules, [native, fused]).channels) == {"a", "b"}
    assert decide(rules, [native, GROWN._replace(subject=TIME._replace(variant="numpy"))]).channels is None
    assert not decide(rules, [GROWN._replace(subject=TIME._replace(metric="ops"))]).tells
    assert decide([], [GROWN]).channels is None


@given(st.lists(st.floats(-2, 2), max_size=6), st.floats(0.01, 0.9), st.floats(0.01, 0.9))
def test_a_larger_threshold_never_tells_more(sizes, one, other):
    low, high = sorted((one, other))
    changes = [SizedChange(TIME, size) for size in sizes]
    assert decide([Rule(0, at_least=low)], changes).tells or not decide([Rule(0, at_least=high)], changes).tells
