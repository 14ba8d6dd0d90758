"""`/projects/{project}/incidents`: what changed since which commit."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, get_args

from fastapi import Depends, Query, Request, Response

from pullback_dashboards import links
from pullback_dashboards.choices import Empty, question
from pullback_dashboards.incidents.view import KINDS, IncidentsView, line_of
from pullback_dashboards.projectless import elsewhere
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import WholeNames
from pullback_dashboards.unprojected import note_unprojected
from pullback_service.errors import Missing, NotFoundError
from pullback_service.incidents.queries import OPEN, IncidentChoice, incidents_open_first
from pullback_service.incidents.schemas import IncidentKind, IncidentState
from pullback_service.projects.queries import project_by_name
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=WholeNames)

ON_A_PAGE = 25
COLUMNS = ("id", "state", "kind", "sentence", "commit", "cases", "machines", "found_at", "verdict", "href")


@dataclass(frozen=True)
class State:
    """Everything that the address of the page decides; without a state it is of open and resolved incidents."""

    state: IncidentState | None = None
    kind: IncidentKind | None = None
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1

    def href(self, project: str, **changes: str | int | None) -> str:
        """The address of this state with some of it changed, at the first page."""
        return links.incidents(project, **{"state": self.state, "kind": self.kind, **changes})


AskedState = Annotated[State, Depends()]


async def _read(project: str, session: ReadSession, asked: AskedState) -> IncidentsView:
    await project_by_name(session, project)
    states = (*OPEN, "resolved") if asked.state is None else (asked.state,)
    choice = IncidentChoice(project, states, asked.kind)
    skip = (asked.page - 1) * ON_A_PAGE
    found = await incidents_open_first(session, choice, skip=skip, limit=ON_A_PAGE + 1)
    if not found and asked.page > 1:
        raise NotFoundError(
            f"There is no page {asked.page}: go to an earlier page.", missing=Missing("page", str(asked.page))
        )
    earlier = asked.page - 1 if asked.page > 2 else None
    return IncidentsView(
        project=project,
        lines=tuple(map(line_of, found[:ON_A_PAGE])),
        questions=(question("state", _states(project, asked)), question("kind", _kinds(project, asked))),
        newer_href=asked.href(project, page=earlier) if asked.page > 1 else None,
        older_href=asked.href(project, page=asked.page + 1) if len(found) > ON_A_PAGE else None,
        empty=None if found else _nothing(project, asked),
    )


AskedView = Annotated[IncidentsView, Depends(_read)]
_PATH = "/projects/{project:path}/incidents"


@router.get("/incidents")
async def incidents_somewhere(request: Request, session: ReadSession) -> Response:
    """To the project that is asked for, else the one that was uploaded to last; without any, why there is nothing."""
    nothing = "This page tells which commit made which gradient slower, use more memory, wrong, or fail."
    return await elsewhere(request, session, links.incidents, title="Incidents", nothing=nothing)


@router.get(_PATH + ".json")
async def incidents_json(view: AskedView) -> Response:
    """The same as JSON."""
    return json_twin(view)


@router.get(_PATH + ".csv")
async def incidents_csv(view: AskedView) -> Response:
    """The same as CSV."""
    rows = (asdict(line) | {"verdict": line.verdict.verdict if line.verdict else None} for line in view.lines)
    return csv_twin(f"incidents-{view.project}", rows, COLUMNS)


@router.get(_PATH)
@router.get(_PATH + ".md")
async def incidents_page(request: Request, view: AskedView) -> Response:
    """The page."""
    return page(
        request,
        "incidents.html",
        title="Incidents",
        project=view.project,
        view=view,
        against_baseline=None,
        twins=("json", "csv", "md"),
    )


def _states(project: str, asked: State) -> Iterator[tuple[str, str, bool]]:
    yield "open and resolved", asked.href(project, state=None), asked.state is None
    for state in (*OPEN, "resolved", "unconfirmed", "refuted"):
        yield state, asked.href(project, state=state), asked.state == state


def _kinds(project: str, asked: State) -> Iterator[tuple[str, str, bool]]:
    yield "any", asked.href(project, kind=None), asked.kind is None
    for kind in get_args(IncidentKind):
        yield KINDS[kind], asked.href(project, kind=kind), asked.kind == kind


def _nothing(project: str, asked: State) -> Empty:
    if asked.state or asked.kind:
        return Empty("No such incidents", ("Choose another state or kind.",))
    return Empty(
        "No incidents",
        (
            "Commits that make a gradient slower, use more memory, wrong, or fail appear here, each with its evidence.",
            (
                "A worker looks for them in what is uploaded: counts and comparisons of two commits tell at once, times of "
                "separate runs once they are measured again or later commits show the same."
            ),
            (
                "Only commits of the trunk are watched; another branch is made the trunk by "
                f"`pullback project set {shlex.quote(project)} --trunk BRANCH`. More is told by `docs/incidents.md`."
            ),
        ),
    )
