"""Which missing commits come first."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.backfills.order import newest_first, widest_gap_first

BRANCHES = st.integers(0, 60).flatmap(
    lambda places: st.tuples(st.just(places), st.sets(st.integers(0, max(places - 1, 0)), max_size=places))
)


@pytest.mark.parametrize("order", [newest_first, widest_gap_first])
@given(branch=BRANCHES)
def test_every_missing_place_comes_once_and_no_known_one(order, branch):
    places, known = branch
    chosen = list(order(places, known))
    assert sorted(chosen) == sorted(set(range(places)) - known)


@given(branch=BRANCHES)
def test_the_newest_comes_first(branch):
    places, known = branch
    assert list(newest_first(places, known)) == sorted(set(range(places)) - known, reverse=True)


def test_gaps_are_halved_widest_first_and_the_newer_of_gaps_alike():
    assert list(widest_gap_first(9, set())) == [8, 0, 4, 6, 2, 7, 5, 3, 1]
    assert list(widest_gap_first(9, {8, 0, 4})) == [6, 2, 7, 5, 3, 1]
    assert list(widest_gap_first(10, {9, 6})) == [0, 3, 8, 5, 2, 7, 4, 1]
    assert list(widest_gap_first(1, set())) == [0]
    assert list(widest_gap_first(0, set())) == []


@given(branch=BRANCHES, taken=st.integers(2, 40))
def test_no_gap_stays_much_wider_than_another(branch, taken):
    places, known = branch
    chosen = list(widest_gap_first(places, known))
    done = known | set(chosen[:taken])
    if len(done) < 2 or len(chosen) <= taken:
        return
    ordered = sorted(done)
    widest = max(newer - older for older, newer in pairwise(ordered))
    # What comes next halves the widest of the gaps that are left.
    following = chosen[taken]
    older = max(place for place in ordered if place < following)
    newer = min(place for place in ordered if place > following)
    assert newer - older == widest
    assert abs((newer - following) - (following - older)) <= 1
