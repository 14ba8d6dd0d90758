"""Stills: the marks of a figure as an SVG that stands alone."""

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback_dashboards.charts.palette import line_style_of
from pullback_dashboards.charts.static_chart import HEIGHT, WIDTH, Axes, Curve, CurvePoint, standalone, still

AXES = Axes("time, variant ÷ unfused", "×", 4, "aaaaaaa", "ddddddd", baseline=1.0, baseline_name="unfused")
heights = st.floats(-1e6, 1e6, allow_subnormal=False)


def curve(*heights, name="fused"):
    spots = [
        None if h is None else CurvePoint(place, h, (h - abs(h) / 10, h + abs(h) / 10))
        for place, h in enumerate(heights)
    ]
    return Curve(name, line_style_of(name), tuple(spots))


def test_a_failure_breaks_the_line():
    assert still([curve(0.5, 0.5, 0.4, 0.4)], AXES).count('fill="none"') == 1
    assert still([curve(0.5, 0.5, None, 0.4)], AXES).count('fill="none"') == 1
    assert still([curve(0.5, 0.5, None, 0.4, 0.4)], AXES).count('fill="none"') == 2


def test_an_ambiguous_mark_is_hollow():
    spots = (CurvePoint(0, 0.5), CurvePoint(1, 0.5, hollow=True))
    assert still([Curve("fused", line_style_of("fused"), spots)], AXES).count('fill="var(--surface)"') == 1


@given(st.lists(st.sampled_from([0.0, 0.01, 0.5, 0.501, 0.99, 1.0, 1.01]), min_size=1, max_size=10))
def test_names_at_the_ends_do_not_overlap_each_other_or_the_baselines_and_lie_on_the_canvas(ends):
    drawn = still([curve(end, name=f"curve {number}") for number, end in enumerate(ends)], AXES)
    names = re.findall(r'y="([\d.]+)" fill="var\(--[a-z0-9-]+\)"(?: font-weight="600")?>(curve \d|unfused)<', drawn)
    heights = [float(y) for y, _ in names]
    assert len(heights) == len(ends) + 1
    assert min(b - a for a, b in itertools.pairwise(heights)) > 13.9  # a line, rounded
    assert heights[-1] <= HEIGHT - 8


def test_a_file_has_its_own_colours_and_a_title_without_markup():
    axes = Axes("<script>alert(1)</script>", "×", 1, "<a>", "", baseline=1.0, baseline_name="&")
    document = ET.fromstring(standalone([curve(0.5, name="<b>")], axes))  # noqa: S314 - our own text
    assert document.find("{http://www.w3.org/2000/svg}title").text == "<script>alert(1)</script>"
    assert not list(document.iter("{http://www.w3.org/2000/svg}script"))
    assert "prefers-color-scheme:dark" in document.find("{http://www.w3.org/2000/svg}style").text


@pytest.mark.parametrize(
    ("title", "start", "drawn"),
    [("short", 58, "short"), ("n" * 48, 8, "n" * 48), ("n" * 90, 8, "n" * 48 + "…")],
)
def test_a_title_that_is_too_long_begins_at_the_edge_and_is_cut_on_the_canvas(title, start, drawn):
    axes = Axes(title, "×", 1, "a", "b")
    assert f'x="{start}" y="16" fill="var(--ink-2)" font-weight="600">{drawn}</text>' in still([curve(0.5)], axes, 420)


def test_a_chart_in_a_page_says_heights_amid_it_as_well_for_phones_and_a_file_does_not():
    axes = Axes("t", "×", 2, "a", "b")
    inside, file = still([curve(1.0, 1.0)], axes), standalone([curve(1.0, 1.0)], axes)
    assert inside.count(">0.5×</text>") == 2 * file.count(">0.5×</text>") == 2


def test_many_marks_are_a_line_with_an_end():
    assert still([curve(*[0.5] * 200)], AXES).count("<circle") == 1


@given(st.lists(st.none() | heights, max_size=20))
def test_everything_lies_on_the_canvas(values):
    axes = Axes("t", "×", max(1, len(values)), "a", "b", baseline=1.0)
    drawn = still([curve(*values)], axes)
    marks = re.findall(r'cx="([-\d.]+)" cy="([-\d.]+)"', drawn)
    assert len(marks) == sum(value is not None for value in values)
    for x, y in marks:
        assert 0 <= float(x) <= WIDTH
        assert 0 <= float(y) <= HEIGHT


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((-3.0, -5.0), [-4, -2, 0]),
        ((-3.0, 5.0), [-2.5, 0, 2.5, 5]),
        ((-1e-3, 0.0), [-0.001, -0.0005, 0]),
        ((0.0, 0.0), [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_an_axis_holds_every_value_and_always_has_a_line_at_zero(values, said):
    drawn = still([curve(*values)], Axes("score", "", 2, "a", "b"))
    places = {
        float(text): float(y) - 4 for y, text in re.findall(r'y="([\d.]+)" text-anchor="end"[^>]*>([^<b]+)<', drawn)
    }
    assert list(places) == said
    for y, value in zip(re.findall(r'cy="([\d.]+)"', drawn), values, strict=True):
        assert (float(y) > places[0.0]) == (value < 0)
