import re
from xml.etree import ElementTree as ET

from pullback_dashboards.charts.sparkline import HEIGHT, WIDTH, Tick, sparkline
from pullback_service.ratio import Ratio


def heights(svg, css_class="spark-line"):
    return [y for _, y in points(svg, css_class)]


def points(svg, css_class="spark-line"):
    """Every point of every path, its steps added up."""
    found = []
    for path in re.findall(rf'class="{css_class}" d="([^"Z]+)Z?"', svg):
        numbers = [int(number) for number in re.findall(r"-?\d+", path)]
        x = y = 0
        for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
            x, y = x + dx, y + dy
            found.append((x, y))
    return found


def test_it_is_one_well_formed_element_inside_its_box():
    svg = sparkline(
        [
            Tick(Ratio(-0.5, -0.52, -0.48)),
            Tick(Ratio(0.3, 0.2, 0.4)),
            Tick(failed=True),
            Tick(nothing=True),
            Tick(Ratio(-2.0)),
        ]
    )
    root = ET.fromstring(svg)  # noqa: S314 - made by ourselves one line above
    assert root.tag == "svg"
    assert all(0 <= y <= HEIGHT for y in heights(svg))
    assert all(0 <= x <= WIDTH for x, _ in points(svg))


def test_a_series_that_does_not_move_looks_flat():
    ys = heights(sparkline([Tick(Ratio(-0.5 + 0.002 * (i % 2))) for i in range(10)]))
    assert max(ys) - min(ys) <= 1


def test_lower_is_better_and_lies_lower():
    first, last = heights(sparkline([Tick(Ratio(0.0)), Tick(Ratio(-0.5))]))
    assert last > first  # in SVG y grows downwards


def test_a_failure_breaks_the_line_and_is_a_cross():
    svg = sparkline([Tick(Ratio(0.1)), Tick(Ratio(0.1)), Tick(failed=True), Tick(Ratio(0.1)), Tick(Ratio(0.1))])
    assert svg.count('class="spark-line"') == 2
    assert svg.count('class="spark-failed"') == 1


def test_a_commit_nobody_measured_does_not_break_the_line():
    assert sparkline([Tick(Ratio(0.1)), Tick(), Tick(Ratio(0.1))]).count('class="spark-line"') == 1


def test_nothing_left_lies_on_the_lower_edge():
    assert heights(sparkline([Tick(Ratio(-0.1)), Tick(nothing=True)]))[-1] == HEIGHT - 2


def test_the_baseline_is_drawn_only_where_it_is_near_and_meant():
    assert "spark-base" in sparkline([Tick(Ratio(-0.02)), Tick(Ratio(0.02))])
    assert "spark-base" not in sparkline([Tick(Ratio(-1.02)), Tick(Ratio(-1.0))])
    assert "spark-base" not in sparkline([Tick(Ratio(-0.02)), Tick(Ratio(0.02))], against_baseline=False)


def test_without_any_measurement_there_is_no_drawing():
    assert not sparkline([Tick(), Tick()])


def test_only_real_intervals_have_a_band():
    assert "spark-band" not in sparkline([Tick(Ratio(-0.1, -0.1, -0.1)), Tick(Ratio(-0.1, -0.1, -0.1))])
    assert "spark-band" in sparkline([Tick(Ratio(-0.1, -0.2, 0.0)), Tick(Ratio(-0.1, -0.2, 0.0))])


def test_thirty_commits_are_a_few_hundred_bytes():
    assert len(sparkline([Tick(Ratio.around(0.01 * (i % 5), 0.02)) for i in range(30)])) < 650
