"""Series are made in one order for everybody, found without keeping other threads waiting."""

import random

from tests.service.held_threads import longest_call

from pullback_service.series.registration import in_order


def test_the_order_of_many_series_is_found_in_pieces():
    draw = random.Random(7)
    places = [(draw.randrange(20_000), f"v{draw.randrange(10)}", "time", 3) for _ in range(200_000)]
    longest_s, ordered = longest_call(in_order, places)
    assert ordered == sorted(places)
    assert longest_s < 0.06  # sorted at once they take 0.2 s
