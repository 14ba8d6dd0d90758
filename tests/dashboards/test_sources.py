"""From what the service says to a history: which lines a failure strikes."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from pullback_dashboards.history import Failure
from pullback_dashboards.sources import with_failures
from pullback_service.series.queries import CaseFacts, CommitFacts, FailedCase, MachineFacts

COMMIT = CommitFacts(7, "a" * 40, None, None, None, None, datetime(2026, 3, 1, tzinfo=UTC))
PLACES = {7: 0}


def failure(case_id, variant=None):
    case = CaseFacts(case_id, "dense", "dense[n=100,f4,cpu]", {}, "f4", "cpu")
    return FailedCase(
        case, MachineFacts(1, "box", "print"), COMMIT, variant, "crash", f"of case {case_id}", UUID(int=1)
    )


def failures_of(lines):
    results = [(line.variant, line.results[0]) for line in lines]
    return [(variant, one.message if isinstance(one, Failure) else None) for variant, one in results]


def test_a_failure_strikes_the_variants_of_its_case_and_not_those_of_one_that_reads_alike(build):
    """Of a case with n=1 and one with n="1" the label is the same."""
    lines = [(case_id, build.line(name, [None])) for case_id in (1, 2) for name in ("unfused", "fused")]
    struck = with_failures(lines, [failure(2), failure(1, "fused")], PLACES)
    assert failures_of(struck) == [
        ("unfused", None),
        ("fused", "of case 1"),
        ("unfused", "of case 2"),
        ("fused", "of case 2"),
    ]


def test_a_case_that_never_ran_has_one_line_for_all_its_failures(build):
    measured = (1, build.line("unfused", [build.paired(1.0)]))
    struck = with_failures([measured], [failure(2), failure(2)], PLACES)
    assert failures_of(struck) == [("unfused", None), ("unfused", "of case 2")]


def test_what_was_measured_stands_and_commits_that_are_not_shown_strike_nobody(build):
    measured = (1, build.line("unfused", [build.paired(1.0)]))
    elsewhere = replace(failure(1), commit=COMMIT._replace(id=8))
    assert failures_of(with_failures([measured], [failure(1), elsewhere], PLACES)) == [("unfused", None)]


def test_thousands_of_failures_find_the_lines_of_their_cases_without_reading_the_others(build):
    empty, count = build.line("unfused", [None]), 4_000
    began = time.thread_time()
    struck = with_failures([(n, empty) for n in range(count)], [failure(n) for n in range(count)], PLACES)
    took_s = time.thread_time() - began
    assert failures_of(struck) == [("unfused", f"of case {n}") for n in range(count)]
    assert took_s < 0.2  # with all lines read for each failure 0.5 s
