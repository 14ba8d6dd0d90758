"""Rules, and the one that holds for a series. Pure."""

import re
from collections.abc import Sequence
from datetime import datetime
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

Key: TypeAlias = Literal["at_least", "budget", "watch", "tell"]
Glob: TypeAlias = Literal["workload", "case", "variant", "metric", "machine"]
GLOBS: Final[Sequence[Glob]] = ("workload", "case", "variant", "metric", "machine")
KEYS: Final[Sequence[Key]] = ("at_least", "budget", "watch", "tell")


class Subject(NamedTuple):
    """A series by its names; a case that failed as a whole has no variant, and what is no number has no metric."""

    workload: str
    case: str
    variant: str | None
    metric: str | None
    machine: str


class Rule(NamedTuple):
    """A rule at its place in the file, from 0 on; of what is None it says nothing."""

    place: int
    workload: str | None = None
    case: str | None = None
    variant: str | None = None
    metric: str | None = None
    machine: str | None = None
    at_least: float | None = None
    budget: float | None = None
    watch: bool | None = None
    tell: Sequence[str] | None = None
    held_since: datetime | None = None
    commit_sha: str | None = None

    def says(self) -> tuple[object, ...]:
        """The rule without its place and since when it holds."""
        tell = None if self.tell is None else tuple(self.tell)
        return (*self[1:9], tell)

    def matches(self, subject: Subject) -> bool:
        """True if all its globs match."""
        return all(
            glob is None or (name is not None and matches(glob, name))
            for glob, name in zip(self[1:6], subject, strict=True)
        )


def rule_for(rules: Sequence[Rule], subject: Subject, key: Key) -> Rule | None:
    """The rule that decides about one key: the last one that matches and sets it."""
    return next((rule for rule in reversed(rules) if getattr(rule, key) is not None and rule.matches(subject)), None)


def matches(glob: str, name: str) -> bool:
    """True if a glob with `*` and `?` matches all of a name. Brackets are plain characters: names of cases have them."""
    return _pattern(glob).fullmatch(name) is not None


@lru_cache(maxsize=1000)
def _pattern(glob: str) -> re.Pattern[str]:
    # Each star takes the first place that fits and tries no other (an atomic group): with `.*` the time is exponential in the stars.
    return re.compile(translate(glob.replace("[", "[[]")))
