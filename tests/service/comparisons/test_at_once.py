"""All series at once: the same of every usual one as the rule says of it alone."""

from math import nan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.comparisons.at_once import CODE_OF, KINDS, OUTCOMES, judge_usual, urgencies
from pullback_service.comparisons.judging import Outcome, Side, judge, urgency

values = st.none() | st.sampled_from([0.0, 1.0, 2.0, 3.0, 1e-308, 1e308]) | st.floats(-1e3, 1e12)
series = st.tuples(values, values, st.booleans(), st.booleans()).filter(lambda each: each[:2] != (None, None))


def told(ratio):
    return nan if ratio is None else ratio


def side(value, *, exact):
    # What is noisy claims nothing unpaired, whoever measured it and how.
    return None if value is None else Side(value, dirty=not exact, quality="clean" if exact else "contaminated")


@given(st.lists(series, max_size=20))
def test_a_usual_series_is_judged_as_alone(found):
    older, newer = (np.array([told(each[end]) for each in found], np.float64) for end in (0, 1))
    exact, bigger = (np.array([each[end] for each in found], bool) for end in (2, 3))
    said = judge_usual(older, newer, ~np.isnan(older), ~np.isnan(newer), exact)
    ranks, weights = urgencies(said.outcome, said.log_ratio, bigger)
    for place, (reference, candidate, counts, is_bigger) in enumerate(found):
        alone = judge(
            side(reference, exact=counts), side(candidate, exact=counts), (), exact=counts, bigger_is_better=is_bigger
        )
        assert OUTCOMES[said.outcome[place]] == alone.outcome
        assert KINDS[said.kind[place]] == alone.kind
        np.testing.assert_equal(said.log_ratio[place], told(alone.log_ratio))
        assert (ranks[place], weights[place]) == urgency(alone, bigger_is_better=is_bigger)


@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.none() | st.floats(-30, 30), st.booleans()), max_size=20))
def test_any_outcome_is_as_urgent_as_alone(found: list[tuple[Outcome, float | None, bool]]):
    outcomes = np.array([CODE_OF[outcome] for outcome, _, _ in found], np.int8)
    ratios = np.array([told(ratio) for _, ratio, _ in found], np.float64)
    ranks, weights = urgencies(outcomes, ratios, np.array([bigger for _, _, bigger in found], bool))
    for place, (outcome, ratio, bigger) in enumerate(found):
        alone = judge(Side(1), Side(1), (), exact=True)._replace(outcome=outcome, log_ratio=ratio)
        assert (ranks[place], weights[place]) == urgency(alone, bigger_is_better=bigger)
