"""Which cases a run measures: a suite, narrowed by names and globs."""

import re
from collections.abc import Sequence

from pullback_runners.errors import UsageError
from pullback_runners.suites import SUITES
from pullback_runners.workloads.case import Case
from pullback_runners.workloads.registry import known_workloads

_MOST_NAMED = 6
"""Longer lists of cases are cut in messages."""


def select_cases(suite: str, patterns: Sequence[str] = ()) -> list[Case]:
    """Return the cases of a suite that match any pattern; without patterns those of its headline, or all.

    A pattern is a workload's name, a case's name or a glob with `*` and `?`. Brackets are plain characters, since case
    names are full of them. A pattern that matches nothing is an error: a benchmark that silently did not run is a lie.
    """
    known = [case for workload in known_workloads() for case in workload.cases(suite)]
    if not patterns:
        headline = SUITES[suite].headline if suite in SUITES else None
        unasked = {
            each.name for each in known_workloads() if headline is None or each.is_foreign or each.name in headline
        }
        return [case for case in known if case.workload in unasked]
    chosen: set[str] = set()
    for pattern in patterns:
        matching = {case.name for case in known if case.workload == pattern or _glob(pattern).fullmatch(case.name)}
        if not matching:
            raise UsageError(f"no case of suite {suite!r} matches {pattern!r}; {_what_there_is(pattern, suite)}")
        chosen |= matching
    return [case for case in known if case.name in chosen]


def _what_there_is(pattern: str, suite: str) -> str:
    """The remedy: sizes of a workload that is known, or where all names can be seen."""
    name = pattern.partition("[")[0]
    sizes = [case.name for each in known_workloads() if each.name == name for case in each.cases(suite)]
    return (
        f"there are {', '.join(sizes)}" if sizes else f"`pullback run --suite {suite} --case '*' --list` shows them all"
    )


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
