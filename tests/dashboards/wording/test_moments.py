from datetime import UTC, datetime, timedelta, timezone

import pytest

from pullback_dashboards.wording.moments import ago, duration, moment

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=45), "45 s ago"),
        (timedelta(minutes=12), "12 min ago"),
        (timedelta(hours=3), "3 h ago"),
        (timedelta(days=5), "5 d ago"),
        (timedelta(minutes=-5), "in 5 min"),
    ],
)
def test_distance_in_words(past, text):
    assert ago(NOW - past, NOW) == text


def test_nobody_counts_the_digits_of_a_length_beyond_reason():
    assert [duration(seconds) for seconds in (45, 1e9, 1e308)] == ["45 s", "11574 d", "1.2e+303 d"]


def test_the_exact_instant_is_utc_whatever_zone_it_came_in():
    there = datetime(2026, 3, 1, 13, 30, tzinfo=timezone(timedelta(hours=2)))
    assert moment(there, NOW).iso == "2026-03-01T11:30:00Z"
    assert moment(there, NOW).second == "2026-03-01 11:30:00 UTC"


def test_beyond_a_month_the_day_says_more_than_the_distance():
    assert moment(NOW - timedelta(days=20), NOW).text == "20 d ago"
    assert moment(NOW - timedelta(days=40), NOW).text == "2026-01-20"
