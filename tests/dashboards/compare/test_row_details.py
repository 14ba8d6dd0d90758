import pytest
from tests.service.readings.making import reading

from pullback_dashboards.compare.row_details import expanded
from pullback_dashboards.history import Commit
from pullback_service.comparisons.judging import Judgement
from pullback_service.comparisons.queries import SeriesComparison, SeriesDetail, SideDetail
from pullback_service.ratio import Ratio
from pullback_service.series.windows import PooledPoint

OLD, NEW = Commit("a" * 40), Commit("b" * 40)


def side(values):
    return SideDetail(reading(sorted(values)[len(values) // 2], values), ("r1",))


def shown(before, after):
    judgement = Judgement("slower", "paired", Ratio(0.1, 0.09, 0.11, 3), 0.01)
    compared = SeriesComparison((1, 1, "fused", "time"), 1, "tier", "s", "smaller", False, None, None, judgement)
    return SeriesDetail(compared, None, None, before, after)


def point(commit, value, ratio=None):
    numbers = {} if ratio is None else {"log_ratio": ratio, "low": ratio - 0.1, "high": ratio + 0.1}
    measured = reading(value, baseline="unfused" if ratio else None, **numbers)
    return PooledPoint(measured, commit, title=None, position=None, after_gap=None, reports=())


def test_an_open_row_shows_history_groups_and_processes():
    points = [point("a" * 40, 1.0, -0.5), point("b" * 40, 1.1, -0.4)]
    older, newer = [1.0, 1.1, 1.2], [1.2, 1.3]
    both = shown(side(older), side(newer))
    detail = expanded(both, points, (0.09, 0.1, 0.11), (older, newer), reference=OLD, candidate=NEW)
    assert detail.history.count("<circle") == 2
    assert "÷ unfused" in detail.history
    assert (detail.group_count, detail.groups.count("strip-now")) == (3, 3)
    assert (detail.processes.count("strip-before"), detail.processes.count("strip-now")) == (3, 2)
    assert [(one.commit, one.processes) for one in detail.sides] == [(OLD.short, 3), (NEW.short, 2)]
    assert detail.sides[0].median == "1.10\u202fs"
    assert detail.reports == ("r1",)


@pytest.mark.parametrize("before", [None, SideDetail(reading(1.0), ()), side([0.0, 0.0, 0.0])])
def test_what_is_not_kept_is_left_out(before):
    detail = expanded(shown(before, side([1.0])), [], (), ((), (1.0,)), reference=OLD, candidate=NEW)
    assert (detail.history, detail.groups, detail.processes) == ("", "", "")


def test_a_series_without_ratios_is_drawn_by_its_values():
    detail = expanded(shown(None, side([2.0])), [point("a" * 40, 2.0)], (), ((), (2.0,)), reference=OLD, candidate=NEW)
    assert "÷" not in detail.history
