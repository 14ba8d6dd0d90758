"""`/projects/{project}/compare`: two commits, branches or machines, or a branch and its merge base, series by series."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, get_args

import numpy as np
from fastapi import Depends, Query, Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.charts.card import WIDTH as CARD_WIDTH
from pullback_dashboards.charts.card import card
from pullback_dashboards.charts.tally import Line, tally
from pullback_dashboards.choices import question
from pullback_dashboards.compare.parameters import Comparison, read_comparison
from pullback_dashboards.compare.row_details import ExpandedRow, expanded
from pullback_dashboards.compare.view import (
    SHOWN,
    CompareView,
    Dimension,
    Show,
    columns_of,
    dimensions_of,
    is_measured_here,
    markdown,
    metric_rows,
    rows_of,
    shown_by,
    verdict,
)
from pullback_dashboards.explore.view import Menu, MenuValue
from pullback_dashboards.history import Commit, case_order, metric_label
from pullback_dashboards.incident_marks import MOST_MARKS, marks_of
from pullback_dashboards.news.sources import lately
from pullback_dashboards.news.view import LATELY, moves
from pullback_dashboards.page_state import Address, FormParameter
from pullback_dashboards.project_redirects import redirect_to_project
from pullback_dashboards.projection_notice import note_unprojected
from pullback_dashboards.rendering import csv_response, json_response, markdown_response, page, png_response
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_service import statements
from pullback_service.background_threads import in_background
from pullback_service.commits.ref_names import names_to_choose
from pullback_service.comparisons import queries
from pullback_service.comparisons import requests as comparing
from pullback_service.comparisons.dimension_counts import case_dimensions
from pullback_service.comparisons.judgements import Outcomes, summarize
from pullback_service.errors import NotFoundError
from pullback_service.fields import Name
from pullback_service.ids import MachineId, ProjectId, SeriesId
from pullback_service.incidents.commands import compare_command
from pullback_service.incidents.queries import incidents_between
from pullback_service.projects.queries import project_by_name
from pullback_service.readings.queries import processes_behind
from pullback_service.series.filters import PARAM
from pullback_service.series.queries import machines_called, machines_of
from pullback_service.series.query_parameters import ChosenSeries
from pullback_service.series.windows import Window, marks_in
from pullback_service.sessions import ReadSession

router = page_router(note_unprojected, route_class=RawNamesRoute)

ROWS = 100  # a page
_SUGGESTIONS = 60
_CHANGES = (
    ("failed", "failed"),
    ("worse", "worse"),
    ("likely-worse", "likely worse"),
    ("better", "better"),
    ("likely-better", "likely better"),
    ("unsure", "ambiguous"),
    ("plain", "back as before"),
)
_LISTED = 12  # values of a filter
_WINDOW = Window(last=60)  # of the history of a series that is opened
_MARKS = 200
COLUMNS = (
    "case", "variant", "metric", "machine", "outcome", "kind", "reference", "candidate", "unit", "factor", "low", "high",
    "groups", "threshold", "significance", "reason",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """The state in the address besides the dimensions of series: who is compared, which outcomes, from which row, which row is open."""

    head: FormParameter[Name] = None
    base: FormParameter[Name] = None
    merge_base: bool = False
    head_machine: FormParameter[Name] = None
    base_machine: FormParameter[Name] = None
    show: Show = "changed"
    start: Annotated[int, Query(ge=0, le=1_000_000)] = 0
    open: Annotated[int | None, Query(ge=1, description="Series whose history and processes are shown.")] = None


@dataclass(frozen=True)
class Neighbours:
    """A commit, the one measured before it, the page that compares them, and how many series changed: tones with words."""

    candidate: Commit
    reference: Commit
    href: str
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ComparePage:
    """The page: the form with what may be named in it and, where two commits were found, the view; else the newest neighbours."""

    project: str
    state: State
    words: str
    kept: tuple[tuple[str, str], ...]
    suggestions: tuple[tuple[str, str], ...]
    machines: tuple[str, ...]
    view: CompareView | None
    newest: tuple[Neighbours, ...] = ()
    newest_machine: str | None = None


async def _read(
    request: Request, project: str, session: ReadSession, choice: ChosenSeries, state: Annotated[State, Depends()]
) -> ComparePage:
    known = await project_by_name(session, project)
    project_id = ProjectId(known.id)
    address = Address(links.compare(project), request)
    view: CompareView | None = None
    comparison: Comparison | None = None
    newest: tuple[Neighbours, ...] = ()
    newest_machine: str | None = None
    if state.head:
        comparison = await read_comparison(
            session,
            project,
            comparing.ComparisonRequest(
                head=state.head,
                base=state.base,
                merge_base=state.merge_base,
                head_machine=state.head_machine,
                base_machine=state.base_machine,
                choice=choice,
            ),
        )
    async with statements.together(session) as ask:
        suggestions = ask(names_to_choose(project_id, limit=_SUGGESTIONS))
        measuring = ask(machines_of(project_id))
        if comparison is not None:
            pair = comparison.answered.pair
            ends = pair.reference.commit.id, pair.candidate.commit.id
            between = ask(incidents_between(project_id, *ends, limit=MOST_MARKS))
            judged, selected = comparison.answered.judged, _wanted(state, comparison)
            details = queries.in_full(ask, judged, selected[state.start : state.start + ROWS])
            of_cases = ask(case_dimensions(judged.outcomes.case_id, judged.names))
            machines = ask(machines_called(np.unique(judged.outcomes.machine_id).tolist()))
    if comparison is not None:
        listed = details()
        opened = next((each for each in listed if state.open and each.compared.series_id == state.open), None)
        detail = await _opened(session, comparison, opened) if opened is not None else None
        view = await in_background.after(
            session,
            lambda: _view(
                project,
                state,
                address,
                comparison,
                listed,
                (opened, detail),
                dimensions_of(judged.outcomes, of_cases.value, machines.value),
            ),
        )
        view = replace(view, incidents=marks_of(project, between.value))
    elif measuring.value:
        newest = await _newest_neighbours(session, project, project_id, measuring.value[0].id)
        newest_machine = measuring.value[0].name
    return ComparePage(
        project=project,
        state=state,
        words=choice.text or "",
        kept=address.without("head", "base", "merge_base", "head_machine", "base_machine", "q", "start", "open"),
        suggestions=suggestions.value,
        machines=tuple(machine.name for machine in measuring.value),
        view=view,
        newest=newest,
        newest_machine=newest_machine,
    )


RequestedPage = Annotated[ComparePage, Depends(_read)]
_PATH = "/projects/{project:path}/compare"


@router.get("/compare")
async def compare_somewhere(request: Request, session: ReadSession) -> Response:
    """Redirect to the requested project, or to the one with the latest upload; without projects, an empty page with the reason."""
    nothing = "This page compares two commits of a project, two of its branches or two machines."
    return await redirect_to_project(request, session, links.compare, title="Compare", nothing=nothing)


@router.get(_PATH + ".json")
async def compare_json(requested: RequestedPage) -> Response:
    """The same as JSON; where nothing is named yet, what may be."""
    return json_response(requested.view or requested)


@router.get(_PATH + ".csv")
async def compare_csv(requested: RequestedPage) -> Response:
    """The rows that the page shows, as CSV."""
    view = _found(requested)
    name = f"{view.project}-{view.reference.short}-{view.candidate.short}"
    return csv_response(name, [columns_of(row) for row in view.rows], COLUMNS)


@router.get(_PATH + ".md")
async def compare_markdown(requested: RequestedPage) -> Response:
    """The same as Markdown, for a pull request."""
    return markdown_response(partial(markdown, _found(requested)))


@router.get(_PATH + ".card.png")
async def compare_card(requested: RequestedPage) -> Response:
    """The picture that sites show beside a link to the page: its verdict, and what every metric did."""
    view = _found(requested)
    lines = [Line(one.label, one.worse, one.better, one.unchanged) for one in view.metrics]
    draw = partial(card, _title(view), view.verdict.text, lambda width: tally(lines, width), of=view.project)
    return png_response(draw, CARD_WIDTH)


@router.get(_PATH)
async def compare_page(request: Request, requested: RequestedPage) -> Response:
    """The page."""
    view = requested.view
    title = _title(view) if view else "Compare"
    formats = ("json", "csv", "md", "card.png") if view else ("json",)
    return page(
        request,
        "compare.html",
        title=title,
        project=requested.project,
        asked=requested,
        view=view,
        formats=formats,
        scripts=("copy.js",),
    )


def _title(view: CompareView) -> str:
    return f"{view.reference.short} → {view.candidate.short}"


def _wanted(state: State, comparison: Comparison) -> Outcomes:
    outcomes = comparison.answered.judged.outcomes
    return outcomes[shown_by(outcomes, state.show)]


def _view(
    project: str,
    state: State,
    address: Address,
    comparison: Comparison,
    details: Sequence[queries.SeriesDetail],
    opened: tuple[queries.SeriesDetail | None, ExpandedRow | None],
    dimensions: Mapping[str, Dimension],
) -> CompareView:
    outcomes, selected = comparison.answered.judged.outcomes, _wanted(state, comparison)
    reference, candidate = comparison.reference, comparison.candidate
    open_series, detail = opened
    following = state.start + ROWS
    return CompareView(
        project=project,
        reference=reference,
        candidate=candidate,
        machines=(state.base_machine or "", state.head_machine or "") if comparison.across else None,
        verdict=verdict(outcomes, reference, candidate, across=comparison.across),
        notes=tuple(comparison.answered.notes),
        metrics=metric_rows(summarize(outcomes)),
        rows=rows_of(
            details,
            project=project,
            candidate=candidate,
            opened=None
            if open_series is None or open_series.compared.series_id is None
            else (open_series.compared.series_id, detail),
            opening=address.replaced("open", ""),
            closing=address.replaced("open", None),
        ),
        found=len(selected),
        hidden=len(outcomes) - len(selected),
        all_href=address.replaced("show", "all"),
        relevant_href=address.replaced("show", None),
        showing=state.show,
        first=state.start + 1,
        next_href=address.replaced("start", str(following)) if following < len(selected) else None,
        turned_href=_turned(address, state, comparison),
        commands=compare_command(reference.sha, candidate.sha) if is_measured_here(outcomes) else None,
        questions=(question("show", _shows(outcomes, state, address)),),
        menus=tuple(_menus(dimensions, address)),
        pin_href=links.pin(address.less("start", "open")),
    )


async def _opened(session: AsyncSession, comparison: Comparison, opened: queries.SeriesDetail) -> ExpandedRow:
    """The history and the processes of one series. Index: as `marks_in`, `groups_of` and `processes_behind`."""
    compared, pair = opened.compared, comparison.answered.pair
    series_id = SeriesId(compared.series_id or 0)
    points, _ = await marks_in(session, series_id, _WINDOW, at_most=_MARKS)
    groups: Sequence[float] = ()
    if not comparison.across:
        groups = await queries.groups_of(session, pair.reference.commit, pair.candidate.commit, compared.key)
    sides = (opened.reference, opened.candidate)
    older, newer = [() if side is None else await processes_behind(session, side.reading) for side in sides]
    return expanded(
        opened, points, groups, (older, newer), reference=comparison.reference, candidate=comparison.candidate
    )


def _turned(address: Address, state: State, comparison: Comparison) -> str:
    """The same the other way round."""
    pairs = {"base": comparison.candidate.sha, "head": comparison.reference.sha, "merge_base": None, "open": None}
    if comparison.across:
        pairs |= {"base_machine": state.head_machine, "head_machine": state.base_machine}
    return address.with_all(pairs)


def _found(requested: ComparePage) -> CompareView:
    if requested.view is None:
        raise NotFoundError(
            "The address names nothing to compare: give head=, and base= for another reference than its parent."
        )
    return requested.view


async def _newest_neighbours(
    session: AsyncSession, project: str, project_id: ProjectId, machine_id: MachineId
) -> tuple[Neighbours, ...]:
    """The newest commits of a machine, each with the one that it follows there. Index: as `changes_at`."""
    history = await lately(session, project_id, machine_id)
    series = {(move.sha, move.tone, move.case, move.variant, move.metric) for move in moves(history, LATELY.commits)}
    changed = Counter((sha, tone) for sha, tone, *_ in series)
    places = range(len(history.commits))[-LATELY.commits :]
    pairs = [(history.commits[place], history.before(place)) for place in reversed(places)]
    return tuple(
        Neighbours(
            commit,
            history.commits[before],
            links.compare(project, base=history.commits[before].sha, head=commit.sha),
            tuple((tone, f"{count} {words}") for tone, words in _CHANGES if (count := changed[commit.sha, tone])),
        )
        for commit, before in pairs
        if before >= 0
    )


def _shows(outcomes: Outcomes, state: State, address: Address) -> Iterator[tuple[str, str, bool]]:
    """The kinds of rows to choose from, with their counts; kinds without rows are not offered."""
    for show in get_args(Show):
        count = int(shown_by(outcomes, show).sum())
        if count or show in {"changed", "all", state.show}:
            href = address.replaced("show", None if show == "changed" else show)
            yield f"{SHOWN[show]} {count}", href, show == state.show


def _menus(dimensions: Mapping[str, Dimension], address: Address) -> Iterator[Menu]:
    """Every dimension in which the compared series differ, or by which they were chosen, with the counts of its values."""
    for name in [*dimensions, *(name for name in address.names if name.startswith(PARAM) and name not in dimensions)]:
        dimension, chosen = dimensions.get(name, Dimension()), address.chosen(name)
        values = dimension.counts
        if len(values) < 2 and not chosen:
            continue
        listed = sorted(values.items(), key=lambda item: (-item[1], case_order(item[0])))
        remaining = [item for place, item in enumerate(listed) if place < _LISTED or item[0] in chosen]
        remaining += [(value, 0) for value in sorted(chosen - set(values))]
        yield Menu(
            dimension=name,
            label=name.removeprefix(PARAM),
            values=tuple(
                MenuValue(
                    text=metric_label(value) if name == "metric" else value,
                    count=count,
                    href=address.dropped(name, value) if value in chosen else address.added(name, value),
                    chosen=value in chosen,
                )
                for value, count in remaining
            ),
            more=max(0, len(listed) - _LISTED) + dimension.unlisted,
        )
