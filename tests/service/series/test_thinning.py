"""Fewer marks look like all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.series.thinning import FEWEST_MARKS, thin

values = st.floats(-1e6, 1e6)
traces = st.integers(0, 400).flatmap(
    lambda count: st.tuples(
        st.lists(values, min_size=count, max_size=count),
        st.lists(st.none() | values, min_size=count, max_size=count),
    )
)


@pytest.mark.long
@given(traces, st.integers(FEWEST_MARKS, 200), st.sets(st.integers(0, 500), max_size=8))
def test_what_matters_stays_and_the_rest_is_few(traces, at_most, keep):
    kept = thin(traces, at_most, keep=keep)
    count = len(traces[0])
    assert kept == sorted(set(kept))
    assert len(kept) <= at_most
    if count <= at_most:
        assert kept == list(range(count))
        return
    assert {0, count - 1} <= set(kept)
    assert {place for place in keep if place < count} <= set(kept)
    for trace in traces:
        known = [value for value in trace if value is not None]
        if known:
            shown = [trace[place] for place in kept if trace[place] is not None]
            assert (min(shown), max(shown)) == (min(known), max(known))


@given(st.integers(1_000, 3_000), st.data())
def test_a_step_is_shown_where_it_is_to_within_a_bucket(count, data):
    step = data.draw(st.integers(1, count - 1))
    trace = [1.0 if place < step else 2.0 for place in range(count)]
    kept = thin([trace], 400)
    last_before = max(place for place in kept if trace[place] == 1.0)
    first_behind = min(place for place in kept if trace[place] == 2.0)
    assert 0 < first_behind - last_before <= 2 * count / 100 + 2


@given(st.integers(1_000, 3_000), st.data())
def test_a_change_that_is_named_is_shown_exactly(count, data):
    step = data.draw(st.integers(1, count - 1))
    trace = [1.0 if place < step else 2.0 for place in range(count)]
    assert {step - 1, step} <= set(thin([trace], 400, keep=(step - 1, step)))


@given(st.integers(1_000, 3_000), st.data())
def test_spikes_up_and_down_side_by_side_stay_both(count, data):
    place = data.draw(st.integers(0, count - 2))
    trace = [1.0] * count
    trace[place], trace[place + 1] = 9.0, -9.0
    assert {place, place + 1} <= set(thin([trace], 100))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="15 marks"):
        thin([[1.0] * 50], 15)
    with pytest.raises(ValueError, match="allow 80"):
        thin([[1.0] * 100], 40, keep=range(40))
    with pytest.raises(ValueError, match="different lengths"):
        thin([[1.0], []], 40)
    assert thin([[]], 40) == []
