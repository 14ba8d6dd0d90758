"""Facts derived from the parents of commits. Pure: hashes and times in, places and merge bases out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pullback_service.errors import InvalidInputError

# The smallest step a Postgres timestamp can make.
STEP = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit as it is stored: `heard_at` is when it was authored, or else (not `dated`) when it was first heard of.

    No commit is authored after it was heard of: what a clock far ahead says counts as a day after that, which is more than
    zones and honest clocks are apart, so that it is the newest commit for a day and not for years.
    """

    sha: str
    heard_at: datetime
    dated: bool
    ordered_at: datetime
    first_parent: str | None
    parent_ordered_at: datetime | None
    """The place of the first parent; None if that one is not known."""
    parent_dated: bool


@dataclass(frozen=True, slots=True)
class MergeBase:
    """The newest common ancestor; `unknown` are commits whose parents nobody told, behind which a newer one may hide."""

    sha: str | None
    unknown: tuple[str, ...]


def moved_places(commits: Mapping[str, StoredCommit]) -> dict[str, datetime]:
    """New places of those among some commits that do not stand right: when authored, but after their first parents.

    A parent of which only the arrival is known pushes no child whose author's time is known: it will move itself.
    """
    settled: dict[str, datetime] = {}
    for start in commits:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in commits and at not in settled:
            if at in path:
                raise InvalidInputError(f"Commit {at} is its own ancestor according to the parents sent: check them.")
            path[at] = None
            at = commits[at].first_parent
        for sha in reversed(path):
            commit = commits[sha]
            after = settled.get(commit.first_parent or "", commit.parent_ordered_at)
            if after is None or (commit.dated and not commit.parent_dated):
                settled[sha] = commit.heard_at
            else:
                settled[sha] = max(commit.heard_at, after + STEP)
    return {sha: place for sha, place in settled.items() if place != commits[sha].ordered_at}


def ancestry(parents: Mapping[str, Sequence[str]], sha: str) -> set[str]:
    """A commit and its ancestors as far as they are told; the last ones may be hashes alone."""
    ancestors, waiting = {sha}, [sha]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in ancestors:
                ancestors.add(parent)
                waiting.append(parent)
    return ancestors


def merge_base(parents: Mapping[str, Sequence[str]], one: str, other: str, *, newest: Mapping[str, float]) -> MergeBase:
    """The best common ancestor of two commits: one that no other common ancestor descends from.

    Of several (criss-cross merges) the one that stands latest is taken, by hash where that is not known either. `newest` are the places
    of commits in seconds since the epoch.
    """
    of_one, of_other = ancestry(parents, one), ancestry(parents, other)
    common = of_one & of_other
    beneath: set[str] = set()
    waiting = [parent for sha in common for parent in parents.get(sha, ())]
    while waiting:
        sha = waiting.pop()
        if sha not in beneath:
            beneath.add(sha)
            waiting.extend(parents.get(sha, ()))
    best = sorted(common - beneath, key=lambda sha: (newest.get(sha, 0.0), sha))
    if best and best[-1] in {one, other}:
        return MergeBase(best[-1], ())  # the one descends from the other, whatever else lies between them
    unknown = [sha for sha in (of_one | of_other) - common if not parents.get(sha)]
    return MergeBase(best[-1] if best else None, tuple(sorted(unknown)))
