"""The order of commits in history, defined here alone.

A commit stands at `ordered_at`, ties are broken by id. That is when it was authored, at most a day after it was first
heard of, but always later than its first parent (`ancestry.py`): along the first parents of any branch this is exactly the
order of its positions, commits of other branches and commits with unknown parents are placed by their author date, and
late results need nothing but their commit. It is git's "corrected commit date"
(Documentation/technical/commit-graph.adoc) along first parents.
Points, readings and failures carry a copy of `ordered_at`, so that each series is read in order from its own index.
"""

from typing import Any

from sqlalchemy import ColumnElement, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from pullback_service.models.commits import Commit
from pullback_service.models.readings import StoredReading
from pullback_service.models.reports import Failure
from pullback_service.models.series import Point

OrderedTable = type[Commit] | type[Point] | type[StoredReading] | type[Failure]


def place(of: OrderedTable) -> tuple[InstrumentedAttribute[Any], InstrumentedAttribute[Any]]:
    """The columns a commit, a point, a reading or a failure is ordered by, most significant first."""
    if issubclass(of, Commit):
        return Commit.ordered_at, Commit.id
    return of.ordered_at, of.commit_id


def newest_first(of: OrderedTable) -> tuple[ColumnElement[Any], ...]:
    """Order of history, backwards."""
    return tuple(column.desc() for column in place(of))


def since(of: OrderedTable, ordered_at: object, commit_id: object) -> ColumnElement[bool]:
    """The condition that a row is at a commit or later."""
    return tuple_(*place(of)) >= tuple_(ordered_at, commit_id)


def before(of: OrderedTable, ordered_at: object, commit_id: object) -> ColumnElement[bool]:
    """Earlier than a commit."""
    return tuple_(*place(of)) < tuple_(ordered_at, commit_id)
