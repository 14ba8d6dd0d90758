"""Which cases a run measures: a suite, narrowed by names and globs."""

import re
from collections.abc import Sequence

from pullback_runners.errors import UsageError
from pullback_runners.workloads.case import Case
from pullback_runners.workloads.registry import known_workloads


def select_cases(suite: str, patterns: Sequence[str] = ()) -> list[Case]:
    """Return the cases of a suite that match any pattern; all of them without patterns.

    A pattern is a workload's name, a case's name or a glob with `*` and `?`. Brackets are plain characters, since case
    names are full of them. A pattern that matches nothing is an error: a benchmark that silently did not run is a lie.
    """
    known = [case for workload in known_workloads() for case in workload.cases(suite)]
    if not patterns:
        return known
    chosen: set[str] = set()
    for pattern in patterns:
        matching = {case.name for case in known if case.workload == pattern or _glob(pattern).fullmatch(case.name)}
        if not matching:
            raise UsageError(f"no case of suite {suite!r} matches {pattern!r}; `pullback run --list` shows them all")
        chosen |= matching
    return [case for case in known if case.name in chosen]


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
