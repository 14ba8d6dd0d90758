from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from pullback_dashboards.fleet.page import in_words
from pullback_dashboards.fleet.view import (
    AgentLine,
    JobLine,
    MachineLine,
    Progress,
    failure_in_words,
    hardware_in_words,
    noise_line,
    percent,
    phase_in_words,
    progress_of,
    quality_of,
    spool_in_words,
    state_of,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
IDLE = AgentLine("a", "m", 1, NOW, present=True)
GONE = replace(IDLE, present=False)
BUSY = replace(IDLE, job_id=3)
FULL = replace(IDLE, refuses="the disk is full")
JOB = JobLine(1, "p", "a" * 40, "t", "quick", "queued", 0, 3, NOW, None)


@pytest.mark.parametrize(
    ("agents", "state"),
    [
        ([], "no agent"),
        ([GONE], "silent"),
        ([GONE, IDLE], "idle"),
        ([IDLE, BUSY], "at work"),
        ([FULL, GONE], "takes no jobs"),
        ([FULL, IDLE], "idle"),
    ],
)
def test_a_machine_is_what_its_agents_do(agents, state):
    assert state_of(agents) == state


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


def test_phases_have_words_and_a_strange_one_is_shown_as_it_is():
    assert [phase_in_words(phase) for phase in ("examine", "building", None)] == [
        "examining",
        "building",
        "starting",
    ]


def test_the_spool_says_what_waits():
    told = [spool_in_words(waiting, size) for waiting, size in ((None, None), (0, 0), (1, 512), (3, 2**20))]
    assert told == ["unknown", "none", "1 delivery, 512\u202fB", "3 deliveries, 1\u202fMiB"]


def test_a_machine_is_known_by_its_hardware():
    assert hardware_in_words({"cpu": "EPYC", "cores": 1, "memory_gib": 31}) == "EPYC, 1 core, 31 GiB"
    assert hardware_in_words({"gpu": "H200", "cpu": "Xeon", "cores": 8}) == "H200, Xeon, 8 cores"
    assert hardware_in_words({}) == ""


def test_a_floor_is_a_percentage_and_says_when_it_is_assumed():
    assert [percent(value) for value in (0.004, 0.02, 0.5)] == ["0.4 %", "2.0 %", "65 %"]
    known = noise_line(
        0.004, provisional=False, comparisons=9, false_alarms=1, history=[(date(2026, 3, 1), 0.004, False)]
    )
    assert (known.floor, known.words, known.days[0].day) == ("0.4 %", "9 A/A, 1 false alarm", "2026-03-01")
    unknown = noise_line(0.02, provisional=True, comparisons=0, false_alarms=0, history=[])
    assert (unknown.floor, unknown.words) == ("2.0 % assumed", "no A/A comparisons yet")


def test_the_quality_of_the_last_results_is_told_oldest_first():
    told = quality_of([("clean", 0), ("clean", 2), ("busy", 1)])
    assert told.marks == ("busy", "failed", "clean")
    assert told.words == "1 of 3 clean, 1 on a busy machine, 1 with failures"
    assert quality_of([]).words == "no results yet"


@pytest.mark.parametrize(
    ("changes", "asker", "what"),
    [
        ({"asked_by": "token 'ci'"}, "token 'ci'", "quick"),
        ({}, "unknown", "quick"),
        (
            {"origin": "idle", "kind": "compare", "reference": "a" * 40},
            "idle machine",
            "quick, against itself (A/A)",
        ),
        ({"origin": "backfill"}, "backfill of the project", "quick"),
        ({"origin": "backfill", "asked_by": "ann"}, "backfill by ann", "quick"),
        ({"kind": "compare", "reference": "b" * 40, "asked_by": "ann"}, "ann", "quick, against bbbbbbbbb"),
    ],
)
def test_a_job_says_who_wanted_it_and_what_it_does(changes, asker, what):
    job = replace(JOB, **changes)
    assert (job.asker, job.what) == (asker, what)


def test_the_fleet_is_told_in_a_sentence():
    noise = noise_line(0.02, provisional=True, comparisons=0, false_alarms=0, history=[])

    def machine(state):
        return MachineLine(1, "m", "", "/machines/1", state, (), noise, quality_of([]), False, NOW)

    machines = tuple(machine(state) for state in ("idle", "silent", "at work", "idle"))
    assert in_words(machines, 3) == "4 machines: 1 at work, 2 idle, 1 silent; 3 jobs waiting."
    assert in_words(machines[:1], 1) == "1 machine: 1 idle; 1 job waiting."
    assert in_words((), 0) == "No machines yet; no jobs waiting."


@pytest.mark.parametrize(
    ("kind", "message", "said"),
    [
        ("cancelled", "Cancelled before it started.", "Cancelled before it started."),
        ("timeout", "It took more than 60 s.", "timeout: It took more than 60 s."),
        ("crash", None, "crash"),
        (None, "gone", "gone"),
    ],
)
def test_the_kind_of_a_failure_is_not_said_twice(kind, message, said):
    assert failure_in_words(kind, message) == said
