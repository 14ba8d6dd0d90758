import re

from pullback_dashboards.charts.tally import MOST_ROWS, Line, tally


def texts_of(svg):
    return re.findall(r">([^<>]+)</text>", svg)


def test_a_tally_says_of_every_metric_what_it_did():
    drawn = tally([Line("time", "2, mean +3.1 %", "0", 41), Line("<arrays>", "0", "5", 0)], 700)
    assert texts_of(drawn)[3:] == ["time", "2, mean +3.1 %", "0", "41", "&lt;arrays&gt;", "0", "5", "0"]
    assert re.findall(r'fill="var\(--(worse|better)\)"', drawn) == ["worse", "better"]


def test_metrics_that_do_not_fit_are_counted():
    many = [Line(f"metric {number}", "0", "0", 1) for number in range(MOST_ROWS + 3)]
    assert texts_of(tally(many[:MOST_ROWS], 700))[-4] == f"metric {MOST_ROWS - 1}"
    assert texts_of(tally(many, 700))[-1] == "and 4 more"
