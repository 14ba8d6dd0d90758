"""`/projects/{project}/incidents`: what changed since which commit."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Literal, get_args

from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from pullback_dashboards import links
from pullback_dashboards.choices import EmptyPage, question
from pullback_dashboards.forms import SEE_OTHER, Form
from pullback_dashboards.incident_marks import KINDS
from pullback_dashboards.incidents.badge import incidents_badge
from pullback_dashboards.incidents.filters import IncidentFilters
from pullback_dashboards.incidents.triage import ANSWERS, box_of, chosen_in, incident_of, triage_for, verdict_of
from pullback_dashboards.incidents.view import IncidentsView, line_of
from pullback_dashboards.project_redirects import redirect_to_project
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import add_formats, csv_response, page, svg_response
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_dashboards.wording.plurals import noun
from pullback_service.access.authentication import KnownCaller
from pullback_service.audit.trail import note
from pullback_service.caller import Caller
from pullback_service.errors import MissingObject, NotFoundError
from pullback_service.incidents import triage
from pullback_service.incidents.queries import CLOSED, OPEN, IncidentChoice, costly_incidents, count_incidents
from pullback_service.incidents.schemas import IncidentKind, IncidentState
from pullback_service.projects.queries import project_by_name
from pullback_service.sessions import ReadSession, WriteSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

ON_A_PAGE = 25
COLUMNS = ("id", "state", "kind", "cause", "sentence", "commit", "cases", "machines", "found_at", "verdict", "href")


NARROWED = ("workload", "case", "variant", "machine")
Show = Literal["open", "told", "mine", "closed", "all"]
_SHOWN: Mapping[Show, tuple[str, ...]] = {
    "open": OPEN,
    "told": (*OPEN, *CLOSED),
    "mine": OPEN,
    "closed": CLOSED,
    "all": (*OPEN, *CLOSED),
}


@dataclass(frozen=True)
class State(IncidentFilters):
    """Everything that the address of the page decides; `state` is one of them alone, whatever else is asked."""

    show: Show = "open"
    state: IncidentState | None = None
    sort: Literal["cost", "newest"] = "cost"
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1

    def href(self, project: str, **changes: str | int | None) -> str:
        """The address of this state with some of it changed, at the first page."""
        parameters = {**asdict(self), "page": None, **changes}
        usual = {"show": "open", "sort": "cost"}
        return links.incidents(project, **{name: v for name, v in parameters.items() if v != usual.get(name)})

    def chosen(self, project: str, caller: Caller) -> IncidentChoice:
        """The incidents of this state."""
        states = _SHOWN[self.show] if self.state is None else (self.state,)
        mine, told = self.show == "mine", self.show == "told"
        return IncidentChoice(project, states, assignee=caller.name if mine else None, told=told, **self.narrowed)


RequestedState = Annotated[State, Depends()]


async def _read(project: str, session: ReadSession, caller: KnownCaller, state: RequestedState) -> IncidentsView:
    await project_by_name(session, project)
    choice, skip = state.chosen(project, caller), (state.page - 1) * ON_A_PAGE
    by_cost = state.sort == "cost"
    listed = await costly_incidents(session, choice, by_cost=by_cost, skip=skip, limit=ON_A_PAGE + 1)
    if not listed and state.page > 1:
        raise NotFoundError(
            f"There is no page {state.page}: go to an earlier page.", missing=MissingObject("page", str(state.page))
        )
    earlier = state.page - 1 if state.page > 2 else None
    return IncidentsView(
        project=project,
        lines=tuple(map(line_of, listed[:ON_A_PAGE])),
        questions=(
            question("show", _shows(project, state)),
            question("kind", _kinds(project, state)),
            question("sort", _sorts(project, state)),
            *(question(name, _narrowed(project, state, name)) for name in NARROWED if state.narrowed[name] is not None),
        ),
        action=state.href(project, page=None if state.page == 1 else state.page),
        triage=triage_for(caller),
        here_href=links.incidents(project, **state.narrowed),
        feed_href=links.feed(project, **state.narrowed),
        badge_href=links.incidents_badge(project, **state.narrowed),
        newer_href=state.href(project, page=earlier) if state.page > 1 else None,
        older_href=state.href(project, page=state.page + 1) if len(listed) > ON_A_PAGE else None,
        empty=None if listed else _nothing(project, state, caller),
    )


RequestedView = Annotated[IncidentsView, Depends(_read)]
_PATH = "/projects/{project:path}/incidents"


@router.get("/incidents")
async def incidents_somewhere(request: Request, session: ReadSession) -> Response:
    """Redirect to the requested project, or to the one with the latest upload; without projects, an empty page with the reason."""
    nothing = "This page shows which commit made which gradient slower, use more memory, wrong, or fail."
    return await redirect_to_project(request, session, links.incidents, title="Incidents", nothing=nothing)


add_formats(router, _PATH, RequestedView)


@router.get(_PATH + ".csv")
async def incidents_csv(view: RequestedView) -> Response:
    """The same as CSV."""
    rows = (asdict(line) | {"verdict": line.verdict.verdict if line.verdict else None} for line in view.lines)
    return csv_response(f"incidents-{view.project}", rows, COLUMNS)


@router.get(_PATH + ".badge.svg")
async def incidents_badge_svg(
    project: str, session: ReadSession, filters: Annotated[IncidentFilters, Depends()]
) -> Response:
    """The number of open incidents, as a badge; suspicions and improvements are not counted, unless the address asks for those."""
    known = await project_by_name(session, project)
    counts = await count_incidents(session, filters.open(project))
    if filters.kind is None:
        counts = {(kind, state): count for (kind, state), count in counts.items() if kind != "better"}
    subject = filters.subject or project
    return svg_response(partial(incidents_badge, subject, counts, is_watched=known.watched is not None))


@router.post(_PATH)
async def judge_incidents(
    request: Request, project: str, session: WriteSession, caller: KnownCaller, state: RequestedState
) -> Response:
    """Give the incidents that are ticked one verdict, all of them or none, and show the list again."""
    form = await Form.of(request)
    chosen, verdict = chosen_in(form.fields), verdict_of(form)
    known = await project_by_name(session, project)
    changed = []
    for incident_id in sorted(chosen):  # as detection locks them
        incident, is_new = (
            await triage.revoke_verdict(session, incident_id, by=caller.name)
            if verdict is None
            else await triage.give_verdict(
                session, incident_id, verdict.verdict, note=verdict.note, link=verdict.link, by=caller.name
            )
        )
        incident_of(known, incident)
        changed += [incident_id] if is_new else []
    subject = f"{noun(len(changed), 'incident')} {', '.join(map(str, changed))}"
    note(
        session,
        changed=bool(changed),
        subject=subject,
        project=project,
        verdict=None if verdict is None else verdict.verdict,
    )
    page_again = None if state.page == 1 else state.page
    return RedirectResponse(state.href(project, page=page_again), status_code=SEE_OTHER)


@router.get(_PATH)
@router.get(_PATH + ".md")
async def incidents_page(request: Request, view: RequestedView) -> Response:
    """The page."""
    return page(
        request,
        "incidents.html",
        title="Incidents",
        project=view.project,
        view=view,
        against_baseline=None,
        formats=("json", "csv", "md"),
        answers=ANSWERS,
        box_of=box_of,
        scripts=("copy.js", *(["triage.js"] if view.triage.may else [])),
    )


def _shows(project: str, state: State) -> Iterator[tuple[str, str, bool]]:
    for show in get_args(Show):
        text = "announced" if show == "told" else show
        yield text, state.href(project, show=show, state=None), state.state is None and state.show == show
    if state.state is not None:
        yield state.state, state.href(project), True


def _sorts(project: str, state: State) -> Iterator[tuple[str, str, bool]]:
    for sort, text in (("cost", "cost"), ("newest", "newest first")):
        yield text, state.href(project, sort=sort), state.sort == sort


def _narrowed(project: str, state: State, name: str) -> Iterator[tuple[str, str, bool]]:
    """The choice that the address names, and the way back to all."""
    yield "any", state.href(project, **{name: None}), False
    yield str(state.narrowed[name]), state.href(project), True


def _kinds(project: str, state: State) -> Iterator[tuple[str, str, bool]]:
    yield "any", state.href(project, kind=None), state.kind is None
    for kind in get_args(IncidentKind):
        yield KINDS[kind], state.href(project, kind=kind), state.kind == kind


def _nothing(project: str, state: State, caller: Caller) -> EmptyPage:
    if state.kind or state.state or state.subject:
        return EmptyPage("No such incidents", ("Choose another state, kind or place.",))
    if state.show == "mine":
        return EmptyPage(f"Nothing is open for {caller.name}", ("Assign incidents to yourself on their pages.",))
    if state.show == "told":
        return EmptyPage("Nothing was announced", ("A change is announced once it is confirmed or likely.",))
    if state.show == "closed":
        return EmptyPage("Nothing is over", ("Incidents that are resolved, refuted or unconfirmed appear here.",))
    return EmptyPage(
        "No incidents" if state.show == "all" else "Nothing is open",
        (
            (
                "No commit of the trunk is known to have made a gradient slower, use more memory, "
                "wrong, or fail. Pages of cases show the smallest step that would be noticed."
            ),
            (
                "A worker searches uploads for changes: counts and comparisons of two commits are conclusive at once, times "
                "of separate runs once they are measured again or later commits show the same."
            ),
            (
                "Only commits of the trunk are watched; to select another branch, run "
                f"`pullback project set {shlex.quote(project)} --trunk BRANCH`."
            ),
        ),
    )
