"""The detector's state of a series: going on from it gives what all readings give."""

import random
from math import exp

import pytest

from pullback_service.incidents.finding import (
    MOST_READINGS,
    Observed,
    Watched,
    first_looked_at,
    suspicions_of,
)
from pullback_service.incidents.series_states import SETTLED, SeriesState, settled_before

SERIES = Watched(7, 1, 1, "fused", exact=False, bigger_is_better=False, is_watched=True)
COMMITS = 420
PLACES = {1000 + commit: commit for commit in range(COMMITS)}


def readings(seed, *, floor=None):
    """Ratios that take a step at 40, another at 330, and in between are made by another harness for a while."""
    chance = random.Random(seed)
    found = []
    for commit, place in PLACES.items():
        ratio = (0.05 if place >= 40 else 0.0) + (0.04 if place >= 330 else 0.0) + chance.gauss(0, 0.004)
        level = ("other",) if 200 <= place < 210 else ("harness",)
        found.append(Observed(commit, exp(ratio), ratio, ratio - 0.008, ratio + 0.008, level))
    return found


def grown(series, observed):
    """The state after each reading, stored and loaded in between; how often it had to begin anew."""
    state, anew = None, 0
    for count, reading in enumerate(observed, start=1):
        if state is None or not state.take(series, [reading], PLACES):
            state, anew = SeriesState.after(series, observed[:count][-MOST_READINGS:], PLACES), anew + 1
        state = SeriesState.loaded(state.dumped(), series, PLACES)
        yield count, state, anew


def test_a_state_suspects_what_all_readings_show_after_every_reading():
    observed = readings(1)
    suspected = 0
    for count, state, anew in grown(SERIES, observed):  # noqa: B007 - read behind the loop
        if count in {43, 240, 333, 336, 400}:
            newest = observed[:count][-MOST_READINGS:]
            assert state.commits == [reading.commit_id for reading in newest]
            afresh = SeriesState.after(SERIES, newest, PLACES)
            assert afresh.dumped() == state.dumped()
            found = suspicions_of(SERIES, newest, state.watchers)
            assert found == suspicions_of(SERIES, newest)
            assert found == [] or not state.is_calm
            suspected += len(found)
    assert suspected > 2
    assert 2 <= anew <= 12


def test_the_detector_begins_at_the_first_reading_until_there_are_enough_and_then_in_the_older_half():
    commits = list(PLACES)
    assert [first_looked_at(7, commits[:count]) for count in (1, 50, MOST_READINGS - 1)] == [0, 0, 0]
    begins = [
        commits[end - MOST_READINGS :][first_looked_at(7, commits[end - MOST_READINGS : end])]
        for end in range(MOST_READINGS, COMMITS)
    ]
    assert begins == sorted(begins, key=PLACES.__getitem__)
    assert all(
        begin in commits[end - MOST_READINGS : end - MOST_READINGS // 2]
        for end, begin in enumerate(begins, MOST_READINGS)
    )
    assert len(set(begins)) <= 6
    others = {first_looked_at(series, commits[:MOST_READINGS]) for series in range(40)}
    assert len(others) > 20  # not all series begin anew at the same upload


def test_a_state_goes_on_behind_its_end_and_before_what_it_looks_at():
    *_, (_, state, _) = grown(SERIES, readings(2)[:-5])
    commits = list(PLACES)
    assert state.goes_on(commits[-5:], PLACES)
    assert state.goes_on(commits[: COMMITS - 5 - MOST_READINGS], PLACES)
    assert not state.goes_on([commits[-5], commits[-6]], PLACES)
    assert not state.goes_on([commits[COMMITS - 5 - MOST_READINGS]], PLACES)
    young = SeriesState.after(SERIES, readings(2)[10:20], PLACES)
    assert not young.goes_on(commits[:1], PLACES)


def test_a_state_of_another_order_of_commits_another_floor_or_another_detector_is_none():
    stored = SeriesState.after(SERIES, readings(3)[:30], PLACES).dumped()
    assert SeriesState.loaded(stored, SERIES, PLACES) is not None
    assert SeriesState.loaded(stored, SERIES._replace(floor=0.01), PLACES) is None
    assert SeriesState.loaded(stored, SERIES, {commit: place + 1 for commit, place in PLACES.items()}) is None
    assert SeriesState.loaded(stored.replace(b'"levels ', b'"others ', 1), SERIES, PLACES) is None


def test_the_resolution_is_that_of_the_newest_level_and_unknown_while_there_are_few_readings():
    assert SeriesState.after(SERIES, readings(4)[:5], PLACES).resolution is None
    assert SeriesState.after(SERIES, readings(4)[:36], PLACES).resolution == pytest.approx(0.02, rel=0.5)
    assert SeriesState.after(SERIES, readings(4)[:203], PLACES).resolution is None


def test_changes_stay_as_they_were_found_where_the_detector_no_longer_looks():
    commits = list(PLACES)
    assert settled_before(7, commits[: MOST_READINGS - 1], PLACES) == 0
    newest = commits[-MOST_READINGS:]
    assert settled_before(7, newest, PLACES) == COMMITS - MOST_READINGS + first_looked_at(7, newest) + SETTLED
