"""Changes of the commit graph in a transaction, kept with its session until steps are judged at its end."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession


class GraphChange(NamedTuple):
    """Commits that became known, or their parents, and commits that moved in history."""

    told: set[int]
    moved: set[int]


_NOTED: Final = "graph changes"


def note_graph_change(session: AsyncSession, *, reported: Iterable[int] = (), moved: Iterable[int] = ()) -> None:
    """Keep with the session what became known of commits, until `noted_graph_change` takes it."""
    reported, moved = set(reported), set(moved)
    if not reported and not moved:
        return
    noted = session.info.setdefault(_NOTED, GraphChange(set(), set()))
    noted.told.update(reported)
    noted.moved.update(moved)


def has_graph_changed(session: AsyncSession) -> bool:
    """True if the graph changed in this transaction, and nobody has marked what that touches."""
    return _NOTED in session.info


def noted_graph_change(session: AsyncSession) -> GraphChange | None:
    """Take what was kept with the session; None where the graph did not change."""
    noted = session.info.pop(_NOTED, None)
    assert noted is None or isinstance(noted, GraphChange)  # noqa: S101 - `note_graph_change` alone writes it
    return noted
