"""Charts of levels, forests and squares: where what is drawn, and that nothing leaves its canvas."""

import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.charts.forest import Forest
from pullback_dashboards.charts.levels import (
    HEIGHT,
    NARROW,
    WIDE,
    Dot,
    Level,
    LevelChart,
    bounds_of,
    levels,
    ticks_between,
)
from pullback_dashboards.charts.squares import squares
from pullback_service.ratio import Ratio


class Elements(HTMLParser):
    """The attributes of elements of one name."""

    def __init__(self, name):
        super().__init__()
        self.name, self.found = name, []

    def handle_starttag(self, tag, attrs):
        if tag == self.name:
            self.found.append(dict(attrs))


def elements(svg, name):
    parser = Elements(name)
    parser.feed(svg)
    return parser.found


HEIGHTS = st.floats(1e-9, 1e9)


def chart(heights, words="0.5× since"):
    dots = tuple(Dot(place, height) for place, height in enumerate(heights))
    low, high = bounds_of(heights)
    ticks = tuple((tick, f"{tick:.3g}") for tick in ticks_between(low, high))
    level = Level(0, len(heights) - 1, heights[0], words)
    return LevelChart(
        "time", dots, (level,), (0, min(1, len(heights) - 1)), ((0, "▲", "worse"),), ticks, ("a", "b"), len(heights)
    )


@given(st.lists(HEIGHTS, min_size=1, max_size=60))
def test_every_observation_is_on_the_canvas_and_higher_ones_stand_higher(heights):
    for width in (WIDE, NARROW):
        spots = [(float(c["cx"]), float(c["cy"])) for c in elements(levels(chart(heights), width), "circle")]
        assert len(spots) == len(heights)
        assert all(0 <= x <= width and 0 <= y <= HEIGHT for x, y in spots)
        assert [x for x, _ in spots] == sorted(x for x, _ in spots)
        by_height = sorted(zip(heights, (y for _, y in spots), strict=True))
        assert all(first[1] >= second[1] - 0.11 for first, second in pairwise(by_height))


@given(st.lists(HEIGHTS, min_size=1, max_size=60))
def test_an_axis_has_a_few_round_heights_inside_it(heights):
    low, high = bounds_of(heights)
    ticks = ticks_between(low, high)
    assert 1 <= len(ticks) <= 6
    assert all(low <= tick <= high * (1 + 1e-12) for tick in ticks)


def test_one_percent_of_scatter_does_not_fill_the_chart():
    low, high = bounds_of([1.0, 1.01])
    assert high - low >= 0.04


def test_words_of_a_level_are_escaped_and_left_out_where_they_do_not_fit():
    assert "<b>" not in levels(chart([1.0, 2.0], words="<b>"))
    assert "a very long" not in levels(chart([1.0] * 40, words="a very long sentence " * 30), NARROW)


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 1)), min_size=1, max_size=8))
def test_ratios_of_a_forest_share_one_axis_on_which_one_has_its_place(found):
    ratios = [Ratio(middle, middle - doubt, middle + doubt, 20) for middle, doubt in found]
    forest = Forest.around(ratios)
    assert 1.0 in forest.factors
    assert all(forest.left - 1e-9 <= math.log(factor) <= forest.right + 1e-9 for factor in forest.factors)
    ones = {re.search(r'forest-one" d="M([\d.]+)', forest.row(ratio))[1] for ratio in ratios}
    assert len(ones) == 1
    assert forest.row(Ratio()) == ""


def test_equal_factors_are_equal_distances():
    ratios = [Ratio(math.log(factor)) for factor in (0.25, 0.5, 2.0, 4.0)]
    forest = Forest.around(ratios)
    places = [float(re.search(r'forest-middle" d="M([\d.]+)', forest.row(ratio))[1]) for ratio in ratios]
    assert places[1] - places[0] == pytest.approx(places[3] - places[2], abs=0.2)


def test_squares_stand_at_their_commits_and_what_is_worse_is_told_without_colour():
    paths = {path["class"]: path["d"] for path in elements(squares(["plain", "", "worse", "better"]), "path")}
    assert paths == {"sq-plain": "M0 3h5v6h-5z", "sq-worse": "M14 0h5v12h-5z", "sq-better": "M21 3h5v9h-5z"}
    assert squares(["", ""]) == ""
