"""The search for the commit that caused a change: few measurements, and the right commit."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_service.incidents.bisection import LONGER, Culprit, KnownAnswer, next_step, shown_by, side_of

COMMITS = 64


def search(last, measure, answers=None, most=200):
    """Search until a commit is named; it and the pairs that were measured."""
    answers, asked = dict(answers or {}), []
    for _ in range(most):
        step = next_step(last, answers)
        if isinstance(step, Culprit):
            return step, asked
        asked.append(step)
        answers[step.reference, step.place] = KnownAnswer(measure(step), step.effort)
    raise AssertionError(asked)


def exactly(culprit, *, broken=()):
    """Answers without noise; commits that are `broken` give none."""

    def measure(probe):
        if {probe.place, probe.reference} & set(broken):
            return "unusable"
        return "bad" if probe.reference < culprit <= probe.place else "good"

    return measure


def noisily(culprit, size, seed, scatter=0.0035):
    """Answers of comparisons of 20 groups that scatter like those of a standard run; twice as long, of 40."""
    noise = random.Random(seed)

    def measure(probe):
        true = size if probe.reference < culprit <= probe.place else 0.0
        sigma = scatter / (20 * probe.effort) ** 0.5
        got = noise.gauss(true, sigma)
        judge = side_of if probe.reference == 0 else shown_by
        return judge(got, got - 2 * sigma, got + 2 * sigma, size)

    return measure


@given(st.integers(1, COMMITS))
def test_of_64_commits_the_culprit_is_named_by_at_most_eight_measurements(culprit):
    found, asked = search(COMMITS, exactly(culprit))
    assert found == Culprit(culprit, culprit, is_borne_out=True)
    assert len(asked) <= 8


@given(st.data())
def test_of_any_range_with_broken_commits_those_are_named_with_the_culprit_that_they_hide(data):
    last = data.draw(st.integers(1, COMMITS))
    culprit = data.draw(st.integers(1, last))
    broken = data.draw(st.sets(st.integers(1, last - 1), max_size=last // 2)) if last > 1 else set()
    found, asked = search(last, exactly(culprit, broken=broken))
    assert found.first <= culprit <= found.last
    assert set(range(found.first, found.last)) <= broken
    assert found.is_borne_out
    assert len({(probe.reference, probe.place) for probe in asked}) == len(asked)


@pytest.mark.parametrize("size", [0.02, -0.02, 0.1])
def test_noise_of_a_standard_run_hardly_ever_misleads_it(size):
    right, most = 0, 0
    for seed in range(400):
        culprit = random.Random(f"{seed} culprit").randint(1, COMMITS)
        found, asked = search(COMMITS, noisily(culprit, size, seed))
        right += found.first == found.last == culprit
        most = max(most, len(asked))
    assert right >= 0.97 * 400
    assert most <= 8


def test_a_wrong_answer_is_found_out_by_the_comparison_with_the_parent():
    for culprit in range(1, COMMITS):
        for wrong in (8, 16, 32, 48):

            def measure(probe, culprit=culprit, wrong=wrong):
                told = exactly(culprit)(probe)
                is_wrong = (probe.reference, probe.place, probe.effort) == (0, wrong, 1)
                return {"good": "bad", "bad": "good"}[told] if is_wrong else told

            found, asked = search(COMMITS, measure)
            assert found == Culprit(culprit, culprit, is_borne_out=True), (culprit, wrong)
            assert len(asked) <= 20


def test_what_is_ambiguous_is_measured_longer_once_and_then_its_neighbour_is_asked():
    def measure(probe):
        return "ambiguous" if probe.place == 8 else exactly(9)(probe)

    found, asked = search(16, measure)
    assert [(probe.place, probe.effort) for probe in asked[:3]] == [(8, 1), (8, LONGER), (7, 1)]
    assert (found.first, found.last) == (8, 9)


def test_what_is_known_is_not_measured():
    known = {(0, place): KnownAnswer("bad" if place >= 20 else "good") for place in range(1, COMMITS) if place != 19}
    found, asked = search(COMMITS, exactly(20), known)
    assert found == Culprit(20, 20, is_borne_out=True)
    assert [(probe.reference, probe.place) for probe in asked] == [(0, 19), (19, 20)]


def test_a_change_that_no_single_commit_shows_is_not_called_borne_out():
    """Of a drift the answers contradict each other: they are asked for once more, and that is the end."""

    def measure(probe):
        if probe.reference == 0:
            return "bad" if probe.place >= 10 else "good"
        return "good"

    found, asked = search(20, measure)
    assert found == Culprit(10, 10, is_borne_out=False)
    assert [probe.effort for probe in asked[-2:]] == [LONGER, LONGER]
