"""Strips: every group is a dot, the interval lies under them, nothing is drawn outside."""

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.charts.strip import WIDTH, Groups, strip
from pullback_service.ratio import Ratio

ratios = st.lists(st.floats(-5, 5), min_size=1, max_size=40).map(tuple)


def test_no_groups_draw_nothing():
    assert strip(Groups(()), Groups((0.1,))) == ""


def test_dots_of_now_are_filled_and_those_of_before_hollow():
    drawn = strip(Groups((0.0, 0.1), Ratio(low=-0.02, high=0.12)), Groups((0.3,)), tone="better")
    assert drawn.count('class="strip-now"') == 2
    assert drawn.count('class="strip-before"') == 1
    assert drawn.count("strip-interval") == 1
    assert "strip-better" in drawn


def test_the_axis_shows_factors():
    drawn = strip(Groups((math.log(0.5), math.log(2.0))))
    assert re.findall(r">([\d.]+)×<", drawn) == ["0.5", "1.0", "2.0"]


def test_the_axis_has_room_for_factors_beyond_a_million():
    drawn = strip(Groups((100.0, 300.0)))
    assert max(map(len, re.findall(r">([^<]+)×<", drawn))) < 10


def test_a_quiet_series_is_not_blown_up():
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', strip(Groups((0.0, 0.0001))))]
    assert max(places) - min(places) < WIDTH / 50


@given(ratios, st.none() | ratios)
def test_everything_lies_on_the_canvas(now, before):
    drawn = strip(Groups(now, Ratio(low=min(now) - 0.1, high=max(now) + 0.1)), Groups(before) if before else None)
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', drawn)]
    assert len(places) == len(now) + len(before or ())
    assert all(0 <= x <= WIDTH for x in places)
    assert all(
        0 <= float(x) <= WIDTH for pair in re.findall(r'interval" d="M([\d.]+) \S+H([\d.]+)"', drawn) for x in pair
    )
