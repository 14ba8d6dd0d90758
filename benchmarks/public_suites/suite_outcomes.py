"""Outcomes of the tests of a suite, and their counts: passed, failed, skipped by the suite, or not portable."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

Ending = Literal["passed", "failed", "skipped", "not portable"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test. The message is the suite's own, the reason is ours where a test is not portable."""

    test: str
    ending: Ending
    message: str = ""

    @property
    def group(self) -> str:
        """The file of a test, the family of an operator."""
        return self.test.partition("::")[0]


def classified(outcomes: Sequence[Outcome], not_portable: Mapping[str, str]) -> list[Outcome]:
    """Outcomes with failures that a table of reasons (by pattern of the test's name) calls not portable marked as such.

    A test of the table that passes stays passed: the table explains failures, it hides nothing.
    """
    return [_explained(outcome, not_portable) for outcome in outcomes]


def _explained(outcome: Outcome, not_portable: Mapping[str, str]) -> Outcome:
    if outcome.ending != "failed":
        return outcome
    for pattern, reason in not_portable.items():
        if fnmatchcase(outcome.test, pattern):
            return Outcome(outcome.test, "not portable", reason)
    return outcome


def pass_rate(outcomes: Sequence[Outcome]) -> float:
    """Passed of portable: skipped and not portable tests count neither way."""
    passed = sum(outcome.ending == "passed" for outcome in outcomes)
    failed = sum(outcome.ending == "failed" for outcome in outcomes)
    return passed / (passed + failed) if passed + failed else float("nan")


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts, rate and every test, as plain data."""
    return {
        "counts": dict(Counter(outcome.ending for outcome in outcomes)),
        "pass_rate_of_portable": pass_rate(outcomes),
        "tests": [asdict(outcome) for outcome in outcomes],
    }


def table(outcomes: Sequence[Outcome]) -> str:
    """Counts by group, then every test that did not pass with its message or reason."""
    endings: tuple[Ending, ...] = ("passed", "failed", "skipped", "not portable")
    groups: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.group, Counter())[outcome.ending] += 1
    width = max([len("group"), *map(len, groups)])
    lines = [f"{'group':<{width}}" + "".join(f"{ending:>14}" for ending in endings)]
    for name, counts in groups.items():
        lines.append(f"{name:<{width}}" + "".join(f"{counts[ending] or '':>14}" for ending in endings))
    total = Counter(outcome.ending for outcome in outcomes)
    lines.append(f"{'all':<{width}}" + "".join(f"{total[ending]:>14}" for ending in endings))
    lines.append(f"{pass_rate(outcomes):.1%} of what is portable passes")
    lines += [
        f"  {outcome.ending}: {outcome.test}: {outcome.message}" for outcome in outcomes if outcome.ending != "passed"
    ]
    return "\n".join(lines)
