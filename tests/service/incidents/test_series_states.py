"""The detector's state of a series: going on from it gives what all readings give."""

import random
from math import exp

import orjson
import pytest

from pullback_service.incidents.series_states import SETTLED, SeriesState, settled_before
from pullback_service.incidents.trunk_changes import (
    MOST_READINGS,
    TrunkReading,
    TrunkSeries,
    first_looked_at,
    suspicions_of,
)
from pullback_service.regression import Watcher

SERIES = TrunkSeries(7, 1, 1, "fused", exact=False, bigger_is_better=False, is_watched=True)
COMMITS = 420
PLACES = {1000 + commit: commit for commit in range(COMMITS)}


def readings(seed, *, floor=None):
    """Ratios that take a step at 40, another at 330, and in between are made by another harness for a while."""
    chance = random.Random(seed)
    found = []
    for commit, place in PLACES.items():
        ratio = (0.05 if place >= 40 else 0.0) + (0.04 if place >= 330 else 0.0) + chance.gauss(0, 0.004)
        level = ("other",) if 200 <= place < 210 else ("harness",)
        found.append(TrunkReading(commit, exp(ratio), ratio, ratio - 0.008, ratio + 0.008, level))
    return found


def grown(series, observed):
    """The state after each reading, stored and loaded in between; how often it had to begin anew."""
    state, anew = None, 0
    for count, reading in enumerate(observed, start=1):
        if state is None or not state.take(series, [reading], PLACES):
            state, anew = SeriesState.after(series, observed[:count][-MOST_READINGS:], PLACES), anew + 1
        state = SeriesState.loaded(state.dumped(), series, PLACES)
        yield count, state, anew


@pytest.mark.long
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


def test_a_state_whose_levels_an_earlier_release_told_apart_has_not_taken_their_readings():
    apart = [each._replace(level=(f"of {number} rounds",)) for number, each in enumerate(readings(1)[:30])]
    state = SeriesState.after(SERIES, apart, PLACES)
    assert state.has_taken(apart)
    assert not state.has_taken([each._replace(level=("of rounds",)) for each in apart])


def without_marks(state):
    found = orjson.loads(state.dumped())
    for watcher in found[6].values():
        del watcher["series"]["marks"]
    return found


def newest_of(observed):
    return sorted(observed.values(), key=lambda reading: PLACES[reading.commit_id])[-MOST_READINGS:]


def brought(state, observed, touched):
    """Bring a state up to readings that are there now, of which some commits were touched; False where it has to be made anew."""
    newest = newest_of(observed)
    if not state.goes_on(touched, PLACES):
        if not state.go_back(SERIES, newest, touched, PLACES):
            return False
        if newest[-1].commit_id not in touched:
            return True
    known = PLACES[state.known(PLACES)]
    return state.take(SERIES, [reading for reading in newest if PLACES[reading.commit_id] > known], PLACES)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("seed", range(2))
def test_a_state_goes_back_where_readings_come_go_and_are_measured_again_and_gives_what_all_readings_give(seed):
    chance = random.Random(seed)
    every = {reading.commit_id: reading for reading in readings(seed)}
    waiting = [commit for commit in every if chance.random() < 0.1]
    observed = {commit: every[commit] for commit in list(every)[:330] if commit not in waiting}
    state = SeriesState.after(SERIES, newest_of(observed), PLACES)
    went_back = anew = compared = 0
    for end in list(every)[330:]:
        commits = list(observed)
        late = [commit for commit in waiting if end - 60 < commit < end]
        what = chance.choice(["late", "again", "gone", "end", "end", "both"])
        touched = {end}
        if what in {"late", "both"} and late:
            touched = {chance.choice(late)} | ({end} if what == "both" else set())
            waiting = [commit for commit in waiting if commit not in touched]
        elif what in {"again", "gone"}:
            touched = {chance.choice(commits[-60:])}
        for commit in touched:
            if what == "gone":
                waiting.append(commit)
                del observed[commit]
            else:
                ratio = every[commit].log_ratio + (0.01 if what == "again" else 0.0)
                observed[commit] = every[commit]._replace(log_ratio=ratio, low=ratio - 0.008, high=ratio + 0.008)
        went_back += not state.goes_on(touched, PLACES)
        if not brought(state, observed, touched):
            state, anew = SeriesState.after(SERIES, newest_of(observed), PLACES), anew + 1
        state = SeriesState.loaded(state.dumped(), SERIES, PLACES)
        assert state.commits == [reading.commit_id for reading in newest_of(observed)]
        if not state.behind and chance.random() < 0.2:
            assert without_marks(state) == without_marks(SeriesState.after(SERIES, newest_of(observed), PLACES))
            compared += 1
    assert compared > 5
    assert went_back > 20
    assert anew < 0.25 * went_back


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("back", "most"), [(1, 19), (20, 54), (60, 132), (100, 232)])
def test_a_late_reading_costs_nothing_at_first_and_then_no_more_than_what_lies_behind_it(back, most, monkeypatch):
    observed = {
        reading.commit_id: reading for reading in readings(5)[60:320]
    }  # calm, but for another harness for a while
    late, end = list(observed)[-2 - back], list(observed)[-1]
    before = {commit: reading for commit, reading in observed.items() if commit not in {late, end}}
    state = SeriesState.after(SERIES, newest_of(before), PLACES)
    taken = []
    observe = Watcher.observe
    monkeypatch.setattr(Watcher, "observe", lambda *args, **named: taken.append(1) or observe(*args, **named))
    assert brought(state, before | {late: observed[late]}, {late})
    assert state.behind
    assert taken == []
    assert brought(state, observed, {end})
    assert not state.behind
    assert back < len(taken) <= most


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


@pytest.mark.long
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
    assert SeriesState.loaded(stored, SERIES, {commit: -place for commit, place in PLACES.items()}) is None
    assert SeriesState.loaded(stored.replace(b'"levels ', b'"others ', 1), SERIES, PLACES) is None


def test_commits_that_came_to_the_trunk_before_its_end_void_no_state():
    observed = readings(3)[:30]
    state = SeriesState.after(SERIES, observed, PLACES)
    later = {commit: place + (place > 20) for commit, place in PLACES.items()} | {7: 21}
    moved = SeriesState.loaded(state.dumped(), SERIES, later)
    assert not moved.goes_on([observed[-1].commit_id + 1], later)
    assert moved.go_back(SERIES, observed, [], later)
    assert not moved.behind
    assert moved.goes_on([observed[-1].commit_id + 1], later)
    assert moved.go_back(SERIES, [*observed[:21], observed[20]._replace(commit_id=7), *observed[21:]], [], later)
    assert moved.known(later) == observed[15].commit_id


def test_the_resolution_is_that_of_the_newest_level_and_unknown_while_there_are_few_readings():
    assert SeriesState.after(SERIES, readings(4)[:5], PLACES).resolution is None
    assert SeriesState.after(SERIES, readings(4)[:36], PLACES).resolution == pytest.approx(0.02, rel=0.5)
    assert SeriesState.after(SERIES, readings(4)[:203], PLACES).resolution is None


def test_changes_stay_as_they_were_found_where_the_detector_no_longer_looks():
    commits = list(PLACES)
    assert settled_before(7, commits[: MOST_READINGS - 1], PLACES) == 0
    newest = commits[-MOST_READINGS:]
    assert settled_before(7, newest, PLACES) == COMMITS - MOST_READINGS + first_looked_at(7, newest) + SETTLED
