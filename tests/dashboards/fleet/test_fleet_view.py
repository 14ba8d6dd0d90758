from datetime import UTC, datetime, timedelta

import pytest

from pullback_dashboards.fleet.view import PRESENT_FOR, AgentLine, Fleet, Progress, is_present, progress_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_an_agent_that_was_not_heard_of_is_away():
    assert is_present(NOW - timedelta(seconds=40), NOW)
    assert not is_present(NOW - PRESENT_FOR, NOW)


def test_the_fleet_counts_those_present_and_knows_who_was_seen_last():
    agents = tuple(AgentLine(str(n), "m", n, NOW - timedelta(days=n), present=n == 0) for n in range(3))
    fleet = Fleet(agents)
    assert (fleet.present, fleet.last_seen) == (1, NOW)
    assert Fleet().last_seen is None


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ({"done": 3, "total": 6, "message": "x"}, Progress(3, 6, "x")),
        ({"done": 9, "total": 6}, Progress(6, 6, "")),
        ({"done": 0, "total": 0}, None),
        ({"done": "3", "total": 6}, None),
        (None, None),
        ([], None),
    ],
)
def test_progress_is_shown_only_where_it_makes_sense(raw, shown):
    assert progress_of(raw) == shown
