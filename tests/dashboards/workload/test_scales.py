import pytest
from tests.service.readings.making import reading

from pullback_dashboards.workload.figure import workload_figure
from pullback_dashboards.workload.scales import is_log
from pullback_dashboards.workload.static_charts import stills
from pullback_dashboards.workload.view import State, workload_view


@pytest.mark.parametrize(
    ("curves", "log"),
    [
        ([[1.0], [0.05, 0.06]], True),
        ([[1.0], [0.11, 0.12]], False),
        ([[1.0], [0.5, 0.05, 0.5]], False),  # the middle one counts, no outlier
        ([[1.0], [0.05, 0.05, 0.5]], True),
        ([[1.0], [0.0, 0.0], [0.05]], False),  # what is nothing has no place there
        ([[-1.0, 20.0], [0.05]], False),
        ([[20.0], []], False),
        ([], False),
    ],
)
def test_an_axis_is_logarithmic_where_a_curve_lies_far_below_another(curves, log):
    assert is_log("auto", curves) is log
    assert is_log("log", curves)
    assert not is_log("linear", curves)


def test_an_axis_that_would_be_empty_is_not_logarithmic_even_where_that_is_asked_for():
    assert not is_log("log", [[-3.0, -5.0], [0.0]])
    assert is_log("log", [[-3.0, -5.0], [2.0]])


@pytest.fixture
def far_apart(build):
    """Native takes a twentieth of the time and makes no array; fused takes half of both."""
    return build.history(
        build.line("unfused", [reading(1e-3)] * 3),
        build.line("fused", [build.paired(0.5)] * 3),
        build.line("native", [build.paired(0.05)] * 3),
        build.line("unfused", [reading(4096.0)] * 3, build.bytes),
        build.line("fused", [reading(2048.0)] * 3, build.bytes),
        build.line("native", [reading(0.0)] * 3, build.bytes),
    )


def drawn(history, **state):
    return workload_view(history, project="p", workload="dense", state=State(memory="array_bytes", **state))


def test_every_plot_has_the_scale_that_shows_all_its_curves(far_apart):
    view = drawn(far_apart)
    assert [(plot.metric.name, plot.log) for plot in view.plots] == [("time", True), ("array_bytes", False)]
    layout = workload_figure(view)["layout"]
    assert [layout[axis]["type"] for axis in ("yaxis", "yaxis2")] == ["log", "linear"]
    assert layout["yaxis"]["title"]["text"] == "time, variant ÷ unfused, log"
    time, memory = stills(view)
    assert ">0.05×<" in time
    assert ">0×<" in memory
    assert [plot.log for plot in drawn(far_apart, y="absolute").plots] == [True, False]


def test_an_axis_that_is_asked_for_is_drawn_and_stands_in_the_address(far_apart):
    view = drawn(far_apart, scale="linear")
    assert [plot.log for plot in view.plots] == [False, False]
    assert [plot.log for plot in drawn(far_apart, scale="log").plots] == [True, True]
    assert State().parameters()["scale"] is None
    assert [State().parameters(scale=scale)["scale"] for scale in ("linear", "log", "auto")] == ["linear", "log", None]
