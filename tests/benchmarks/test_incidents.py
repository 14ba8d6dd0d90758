"""What is told of a small project whose changes are known, and how it is counted."""

import pytest
from benchmarks.incidents import __main__ as program
from benchmarks.incidents.counting import Counts, Incident, count
from benchmarks.incidents.noise import Noise, recorded
from benchmarks.incidents.planting import EVENTS, SILENT, plant, plant_small
from benchmarks.incidents.truth import Event, Truth, cases_for


def test_a_seed_plants_thirty_events_that_ask_for_an_incident_and_fifteen_that_accuse_nobody():
    truth = plant(0, series=200, commits=300)
    assert (len(truth.events), len(truth.silent)) == (sum(EVENTS.values()), sum(SILENT.values())) == (30, 15)
    assert {each.kind for each in truth.events} == set(EVENTS)
    assert truth.series == 200
    assert all(each.place not in truth.docs for each in truth.events)
    assert plant(0, series=200, commits=300).events == truth.events
    assert {each.size for each in plant_small(0, commits=300).events} == {0.02, 0.01}


def test_what_is_true_of_a_commit_is_what_was_planted_there():
    event = Event("fixed", 10, frozenset({(0, 3)}), 0.1, until=20)
    truth = Truth(cases_for(32), 30, 2, [event], (), frozenset({11, 12}))
    moved = truth.times[:, 0, 3] - truth.times[0, 0, 3]
    assert [place for place in range(30) if moved[place] > 0.05] == list(range(10, 20))
    assert truth.subject(12) == truth.subject(10) != truth.subject(13)


def incident(subjects, reference, commit, *, told=("confirmed",), kind="worse", culprit=None):
    was = frozenset({"confirming", *told})
    return Incident(1, kind, "confirmed", reference, commit, frozenset(subjects), told, was, culprit, 0, "slower")


TRUTH = Truth(
    cases_for(32), 60, 2, [Event("case", 20, frozenset({(0, 3)}), 0.1), Event("case", 40, frozenset({(1, 2)}), 0.1)], (),
    frozenset(),
)  # fmt: skip


def counted(*incidents):
    counts = Counts()
    count(TRUTH, incidents, counts)
    return counts


def test_an_event_that_is_told_once_at_its_commit_is_right_and_one_that_is_not_is_missed():
    counts = counted(incident([(0, 3)], 19, 20))
    assert (counts.told_of, counts.missed, counts.right_commit, counts.false_suspicions) == (1, 1, 1, 0)


def test_a_range_is_right_once_its_culprit_is_found():
    assert counted(incident([(0, 3)], 17, 20)).right_commit == 0
    assert counted(incident([(0, 3)], 17, 20, culprit=20)).right_commit == 1


def test_two_incidents_of_an_event_are_split_and_told_twice():
    counts = counted(incident([(0, 3)], 19, 20), incident([(0, 3)], 19, 20))
    assert (counts.split, counts.told_twice) == (1, 1)


def test_what_is_told_of_another_case_or_commit_is_false():
    counts = counted(incident([(0, 3)], 29, 30), incident([(3, 3)], 19, 20, told=("likely",)))
    assert (counts.confirmed_and_false, counts.likely_and_false, counts.false_suspicions) == (1, 1, 2)


def test_recorded_noise_has_no_level_of_its_own():
    noise = Noise("a seed")
    ratios = [noise.ratio(0.1)["log_ratio"] for _ in range(400)]
    assert abs(sum(ratios) / len(ratios) - 0.1) < 0.005
    assert len(recorded()) >= 20


@pytest.mark.parametrize("mark", program.MARKS)
def test_the_page_has_a_place_for_the_table(mark):
    assert program.PAGE.read_text().count(mark) == 1
