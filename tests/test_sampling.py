"""Of a test that is sampled the others are long: without that, some of these cases would be run and fail."""

import pytest


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("row", "same"), [(row, row) for row in range(3)])
@pytest.mark.parametrize("column", range(4))
def test_every_third_case_is_a_default_test_whose_places_are_added_up(request, row, same, column):
    is_long = request.node.get_closest_marker("long") is not None
    assert is_long == bool((row + column) % 3)
