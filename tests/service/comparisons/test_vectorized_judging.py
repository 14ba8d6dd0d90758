"""All series at once: the same of every usual one as the rule says of it alone."""

from math import log, nan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.service.readings.making import reading

from pullback_service.comparisons.judging import Outcome, judge, of_equal_code, urgency
from pullback_service.comparisons.vectorized_judging import CODE_OF, OUTCOMES, ReadingColumns, judge_usual, urgencies
from pullback_service.ratio import Ratio

values = st.sampled_from([0.0, 1.0, 1.05, 1.1, 2.0, 3.0, 1e-308, 1e308]) | st.floats(-1e3, 1e12)
ratios = st.sampled_from([None, -0.5, -0.48, -0.47, 0.0]) | st.floats(-3, 3)
readings = st.builds(
    lambda value, processes, ratio, width, **rest: reading(
        value,
        processes,
        baseline="unfused" if ratio is not None else None,
        log_ratio=ratio,
        low=None if ratio is None or width is None else ratio - width,
        high=None if ratio is None or width is None else ratio + width,
        **rest,
    ),
    values,
    st.none() | st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6),
    ratios,
    st.none() | st.floats(0, 0.1),
    program_hash=st.sampled_from([None, "a", "b"]),
    dirty=st.booleans(),
)
moves = st.sampled_from([0.4, 0.8, 0.88, 0.98, 1.0, 1.02, 1.12, 1.38, 2.4])


@st.composite
def moved(draw):
    """Two readings of a variant and its baseline, of which both, one or none moved, by much or little, either way."""
    own, base = draw(moves), draw(moves)
    width = draw(st.sampled_from([0.0, 0.01, 0.2]))
    processes = draw(st.none() | st.lists(st.floats(0.95, 1.05), min_size=1, max_size=6))
    ends = []
    for of_variant, of_baseline in ((1.0, 1.0), (own, base)):
        ratio = log(0.25 * of_variant / of_baseline)
        spread = None if processes is None else [25 * of_variant * each for each in processes]
        value = 25 * of_variant
        ends.append(reading(value, spread, baseline="unfused", log_ratio=ratio, low=ratio - width, high=ratio + width))
    return tuple(ends)


pairs = st.tuples(st.none() | readings, st.none() | readings) | moved()
series = st.tuples(
    pairs,
    st.sampled_from(["exact", "noisy", "together"]),
    st.booleans(),
    st.booleans(),
)


def told(ratio):
    return nan if ratio is None else ratio


def extent(ratio):
    return None if ratio.bounded is None else ratio.high - ratio.low


def code(text):
    return 0 if text is None else ord(text[0])


def columns(found):
    rows = [
        (
            *map(told, (each.value, each.ratio.log_ratio, extent(each.ratio))),
            each.process_count or 0,
            told(each.process_q25),
            told(each.process_q75),
            *map(code, (each.baseline, each.method, each.program_hash)),
            each.measured_id or 0,
            each.dirty,
            each.consistent,
        )
        for each in (one or reading(nan) for one in found)
    ]
    return ReadingColumns.of(*(zip(*rows, strict=True) if rows else [()] * len(ReadingColumns._fields)))


@given(st.lists(series, max_size=20), st.booleans())
def test_a_usual_series_is_judged_as_alone(found, values_compare):
    older, newer = ([each[0][end] for each in found] for end in (0, 1))
    exact, together = (np.array([each[1] == kind for each in found], bool) for kind in ("exact", "together"))
    bigger, equal_code = (np.array([each[flag] for each in found], bool) for flag in (2, 3))
    said = judge_usual(
        columns(older), columns(newer), *(np.array([each is not None for each in end], bool) for end in (older, newer)),
        exact=exact, counted_together=together, bigger_is_better=bigger,
        equal_code=equal_code, values_compare=values_compare,
    )  # fmt: skip
    ranks, weights = urgencies(said.outcome, said.log_ratio, bigger)
    judgements = list(said.judgements())
    for place, (ends, kind, is_bigger, is_equal) in enumerate(found):
        # What processes counted differently, or with uncommitted changes, is not usual.
        usual = [end and end._replace(consistent=True, dirty=False) for end in ends] if kind == "exact" else ends
        alone = judge(
            *usual,
            (),
            exact=kind == "exact",
            counted_together=0.0 if kind == "together" else None,
            bigger_is_better=is_bigger,
            values_compare=values_compare,
        )
        if is_equal:
            alone = of_equal_code(alone)
        assert judgements[place] == alone
        assert (ranks[place], weights[place]) == urgency(alone, bigger_is_better=is_bigger)


@given(st.lists(st.tuples(st.sampled_from(OUTCOMES), st.none() | st.floats(-30, 30), st.booleans()), max_size=20))
def test_any_outcome_is_as_urgent_as_alone(found: list[tuple[Outcome, float | None, bool]]):
    outcomes = np.array([CODE_OF[outcome] for outcome, _, _ in found], np.int8)
    ratios = np.array([told(ratio) for _, ratio, _ in found], np.float64)
    ranks, weights = urgencies(outcomes, ratios, np.array([bigger for _, _, bigger in found], bool))
    for place, (outcome, ratio, bigger) in enumerate(found):
        alone = judge(reading(1), reading(1), (), exact=True)._replace(outcome=outcome, ratio=Ratio(ratio))
        assert (ranks[place], weights[place]) == urgency(alone, bigger_is_better=bigger)
