"""Incidents as pages of commits and boards name them: number, kind and state, with a link."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pullback_dashboards import links

KINDS = {
    "worse": "worse",
    "better": "better",
    "unsteady": "unsteady",
    "wrong_gradient": "wrong gradient",
    "failed": "failed",
    "missing": "missing",
}
MOST_MARKS = 20
"""Incidents that a page of commits names, or a chart of a board."""


@dataclass(frozen=True)
class IncidentMark:
    """An incident, named on a page of commits at which it begins, or beside a pinned chart."""

    id: int
    href: str
    kind: str
    state: str


def marks_of(project: str, incidents: Iterable[tuple[Any, ...]]) -> tuple[IncidentMark, ...]:
    """Incidents, given by id, kind and state, as pages name them."""
    return tuple(IncidentMark(id_, links.incident(project, id_), KINDS[kind], state) for id_, kind, state in incidents)
