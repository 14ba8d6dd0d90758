"""How much evidence is asked for among many series."""

import random

from hypothesis import given
from hypothesis import strategies as st

from pullback_service.incidents.false_discoveries import FALSE_SHARE, highest_chance

CHANCES = st.lists(st.floats(0, 0.001), max_size=20)


def test_few_series_ask_for_no_more_than_the_detector_does():
    assert highest_chance([0.001], 200) == 0.001
    assert highest_chance([0.001], 201) == 0.0


def test_what_many_series_show_at_once_is_accepted_with_less_evidence_than_what_one_shows():
    assert highest_chance([0.0005], 2000) == 0.0
    assert highest_chance([0.0005] * 5, 2000) == 0.0005


@given(CHANCES, st.integers(1, 3000), st.integers(0, 3000))
def test_more_series_ask_for_more_evidence_and_more_discoveries_for_less(chances, tests, more):
    assert highest_chance(chances, tests + more) <= highest_chance(chances, tests)
    assert highest_chance([*chances, 0.0], tests + 1) >= highest_chance(chances, tests + 1)


def test_of_what_is_accepted_no_more_than_the_share_is_false_on_average():
    chance, shares = random.Random(1), []
    for _ in range(400):
        noise = [chance.random() for _ in range(180)]
        real = [chance.random() ** 8 for _ in range(20)]
        highest = highest_chance([*noise, *real], 200)
        false, accepted = sum(each <= highest for each in noise), sum(each <= highest for each in [*noise, *real])
        shares.append(false / max(accepted, 1) if highest else 0.0)
    assert 0.5 * FALSE_SHARE < sum(shares) / len(shares) <= FALSE_SHARE
