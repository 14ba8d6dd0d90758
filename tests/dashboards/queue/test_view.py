from datetime import UTC, datetime

import pytest

from pullback_dashboards.fleet.view import JobLine
from pullback_dashboards.queue.page import State
from pullback_dashboards.queue.view import ends_in_words, waiting_line
from pullback_service.jobs.forecast import Forecast

JOB = JobLine(1, "p", "a" * 40, "t", "quick", "queued", 0, 3, datetime(2026, 3, 1, tzinfo=UTC), None)


@pytest.mark.parametrize(
    ("told", "starts", "takes", "stuck", "forecast"),
    [
        (
            Forecast("turn", "Next.", starts_in_s=0.0, takes_s=60),
            "now",
            "about 60 s",
            False,
            "Starts now, takes about 60 s",
        ),
        (
            Forecast("turn", "2 jobs are before it.", 2, starts_in_s=7200.0),
            "in about 2 h",
            "no estimate",
            False,
            "Starts in about 2 h",
        ),
        (
            Forecast("turn", "1 job is before it.", 1, takes_s=600),
            "no estimate",
            "about 10 min",
            False,
            "Takes about 10 min",
        ),
        (
            Forecast("silent", "Only lab-7 may take it, and it is silent."),
            "not yet",
            "no estimate",
            True,
            "Starts not yet",
        ),
        (None, "no estimate", "no estimate", False, "No estimate"),
    ],
)
def test_what_is_not_known_of_a_waiting_job_is_said(told, starts, takes, stuck, forecast):
    line = waiting_line(JOB, told)
    assert (line.starts, line.takes, line.stuck, line.forecast) == (starts, takes, stuck, forecast)


def test_a_running_job_ends_sometime():
    assert [ends_in_words(left) for left in (None, 0.2, 150)] == ["no estimate", "soon", "in about 2 min"]


def test_the_address_keeps_what_was_asked():
    asked = State(state="queued", project="p/q", page=3)
    assert asked.href() == "/jobs?state=queued&project=p%2Fq"
    assert asked.href(page=4) == "/jobs?state=queued&project=p%2Fq&page=4"
    assert asked.href(state=None) == "/jobs?project=p%2Fq"
