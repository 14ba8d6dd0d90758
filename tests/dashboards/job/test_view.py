from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pullback_dashboards.fleet.view import JobLine
from pullback_dashboards.job.view import decisions_for, from_a_line_on, steps_of, whole_characters
from pullback_service.caller import LOCAL, Caller, anonymous

JOB = JobLine(1, "p", "a" * 40, "t", "quick", "queued", 0, 3, datetime(2026, 3, 1, tzinfo=UTC), None)
READER = Caller("token 'look'", frozenset({"read"}))
CI = Caller("token 'ci'", frozenset({"read", "upload"}))


@pytest.mark.parametrize(
    ("state", "phase", "here"),
    [
        ("queued", None, "waiting"),
        ("leased", None, "preparing"),
        ("running", "prepare", "preparing"),
        ("running", "examine", "measuring"),
        ("running", "measure", "measuring"),
        ("running", "upload", "sending"),
    ],
)
def test_a_job_is_at_one_step_of_its_way(state, phase, here):
    steps = steps_of(state, phase)
    assert [step.name for step in steps if step.state == "here"] == [here]
    assert [step.name for step in steps] == ["waiting", "preparing", "measuring", "sending", "done"]


def test_what_is_done_is_behind_it_and_what_ended_says_how():
    assert {step.state for step in steps_of("done", None)} == {"behind"}
    assert [(step.name, step.state) for step in steps_of("failed", None)] == [
        ("waiting", "behind"),
        ("failed", "ended"),
    ]


@pytest.mark.parametrize(
    ("changes", "caller", "allowed"),
    [
        ({}, LOCAL, {"cancel"}),
        ({}, CI, {"cancel"}),
        ({}, READER, set()),
        ({"state": "running"}, CI, {"cancel"}),
        ({"state": "running", "cancel_requested": True}, CI, set()),
        ({"state": "failed"}, CI, {"retry"}),
        ({"state": "done"}, LOCAL, set()),
        ({"awaits_approval": True}, CI, {"cancel"}),
        ({"awaits_approval": True}, LOCAL, {"cancel", "approve"}),
    ],
)
def test_a_reader_may_decide_what_the_job_and_the_token_allow(changes, caller, allowed):
    decide = decisions_for(replace(JOB, **changes), caller)
    assert {name for name in ("cancel", "retry", "approve") if getattr(decide, name)} == allowed


def test_what_a_reader_may_not_decide_is_explained():
    assert (
        decisions_for(JOB, READER).explained
        == "Cancelling needs a token with the scope upload; you are signed in as token 'look'."
    )
    of_a_fork = decisions_for(replace(JOB, awaits_approval=True), anonymous(frozenset()))
    assert of_a_fork.explained == (
        "Cancelling needs a token with the scope upload, and approving needs the scope admin; you are not signed in."
    )
    assert decisions_for(replace(JOB, state="done"), READER).explained is None


def test_cancelling_asks_first_only_where_something_is_lost():
    assert decisions_for(JOB, LOCAL).cancel_loses is None
    assert "discarded" in decisions_for(replace(JOB, state="running"), LOCAL).cancel_loses


def test_a_character_that_is_cut_waits_for_its_end():
    content = "12 \N{MICRO SIGN}s \N{SNOWMAN}".encode()
    assert whole_characters(content[:-1], more_follows=True) == ("12 \N{MICRO SIGN}s ", len(content) - 3)
    assert whole_characters(content, more_follows=True)[1] == len(content)
    assert whole_characters(content[:-1], more_follows=False)[0].endswith("\N{REPLACEMENT CHARACTER}")


def test_a_cut_log_begins_with_a_whole_line():
    assert from_a_line_on(b"half a line\nwhole\n") == 12
    assert from_a_line_on(b"one line without an end") == 0
