from pullback_dashboards.help.page import examples


def test_there_is_a_drawing_of_every_kind():
    drawn = examples()
    assert drawn.chart.count("<circle") == 7  # eight commits, of which one failed
    assert drawn.strip.count("<circle") == 40
    assert "spark-failed" in drawn.sparkline
    assert "2.4× faster" in drawn.badge
