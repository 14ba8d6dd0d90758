"""Small multiples: curves without words on one scale."""

import pytest

from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.small_multiples import HEIGHT, SharedScale, SmallCurve, small


def curve(*heights):
    return SmallCurve("fused", line_style_of("fused"), range(len(heights)), heights)


@pytest.mark.parametrize("heights", [(-3.0, -5.0), (-3.0, 5.0), (0.0, -5.0), (0.0, 0.0), (1.0, 2.0)])
def test_a_scale_holds_every_value_and_zero(heights):
    scale = SharedScale.around([[curve(*heights)]], count=2)
    assert scale.bottom <= min(0.0, *heights) <= max(0.0, *heights) <= scale.top
    places = scale.ys(heights)
    assert all(0 <= y <= HEIGHT for y in places)
    assert (places[0] > places[1]) == (heights[0] < heights[1])


def test_what_is_zero_or_less_breaks_a_curve_on_a_logarithmic_scale():
    broken = curve(1.0, 1.0, -2.0, 1.0, 1.0)
    scale = SharedScale.around([[broken]], count=5, log=True)
    assert small([broken], scale).count("<path") == 2
