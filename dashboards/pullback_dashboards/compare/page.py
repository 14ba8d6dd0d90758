"""`/projects/{project}/compare`: two commits, branches or a branch and where it parted, series by series."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.choices import Question, question, questions
from pullback_dashboards.compare.view import (
    CompareView,
    columns_of,
    is_relevant,
    markdown,
    metric_rows,
    rows_of,
    verdict,
)
from pullback_dashboards.history import Commit, metric_label
from pullback_dashboards.rendering import csv_twin, json_twin, page
from pullback_dashboards.sources import newest_project
from pullback_service.commits import models as commits
from pullback_service.commits.branches import list_branches
from pullback_service.commits.queries import list_commits
from pullback_service.comparisons import queries
from pullback_service.comparisons.pairs import find_pair, missing_series
from pullback_service.comparisons.queries import Compared
from pullback_service.database import ReadSession
from pullback_service.errors import NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.machines.models import Machine
from pullback_service.projects.queries import project_by_name
from pullback_service.series.choosing import SeriesChoice

router = APIRouter(include_in_schema=False)

ROWS = 100  # a page
_SUGGESTIONS = 60
COLUMNS = (
    "case", "variant", "metric", "machine", "outcome", "kind", "reference", "candidate", "unit", "factor", "low", "high",
    "groups", "threshold", "reason",
)  # fmt: skip


@dataclass(frozen=True)
class State:
    """Everything that the address of the page decides. `show=all` also shows what did not change."""

    head: str | None = None
    base: str | None = None
    merge_base: bool = False
    metric: str | None = None
    variant: str | None = None
    machine: str | None = None
    q: str | None = None
    show: str | None = None
    start: int = 0

    def address(self, project: str, **changed: str | int | bool | None) -> str:
        """The page in another state; what is the default anyway is left out."""
        state = replace(self, **changed)  # type: ignore[arg-type] # given by name, from this file
        return links.compare(
            project,
            base=state.base or None,
            head=state.head or None,
            merge_base="true" if state.merge_base else None,
            metric=state.metric or None,
            variant=state.variant or None,
            machine=state.machine or None,
            q=state.q or None,
            show=state.show or None,
            start=str(state.start) if state.start else None,
        )


@dataclass(frozen=True)
class Asked:
    """The page: the form with what may be named in it and, where two commits were found, the view."""

    project: str
    state: State
    suggestions: tuple[tuple[str, str], ...]
    view: CompareView | None


async def _read(project: str, session: ReadSession, state: Annotated[State, Depends()]) -> Asked:
    known = await project_by_name(session, project)
    project_id = ProjectId(known.id)
    suggestions = await _suggested(session, project_id)
    if not state.head:
        return Asked(project, state, suggestions, None)
    pair = await find_pair(session, project_id, state.base or None, state.head, merge_base=state.merge_base)
    reference, candidate = _named(pair.reference.commit), _named(pair.candidate.commit)
    choice = SeriesChoice(
        project=project,
        metric=[state.metric] if state.metric else (),
        variant=[state.variant] if state.variant else (),
        machine=[state.machine] if state.machine else (),
        text=state.q or None,
    )
    compared = await queries.compare(session, pair.reference.commit, pair.candidate.commit, choice)
    showing_all = state.show == "all"
    wanted = [each for each in compared if showing_all or is_relevant(each)]
    start = max(0, state.start)
    part = wanted[start : start + ROWS]
    shown = await queries.show(session, pair.reference.commit, pair.candidate.commit, part)
    notes = [*pair.notes, *await missing_series(session, project_id, pair, compared)]
    view = CompareView(
        project=project,
        reference=reference,
        candidate=candidate,
        verdict=verdict(compared, reference),
        notes=tuple(notes),
        metrics=metric_rows(queries.summarize(compared)),
        rows=rows_of(shown, project=project, candidate=candidate),
        found=len(wanted),
        hidden=len(compared) - len(wanted),
        all_href=state.address(project, show="all", start=0),
        relevant_href=state.address(project, show=None, start=0),
        showing_all=showing_all,
        next_href=state.address(project, start=start + ROWS) if start + ROWS < len(wanted) else None,
        turned_href=state.address(project, base=candidate.sha, head=reference.sha, merge_base=False, start=0),
        commands=f"git switch --detach {candidate.sha}\npullback compare --against {reference.sha}",
        questions=await _questions(session, project, state, compared),
    )
    return Asked(project, state, suggestions, view)


AskedPage = Annotated[Asked, Depends(_read)]
_PATH = "/projects/{project:path}/compare"


@router.get("/compare")
async def compare_somewhere(session: ReadSession) -> Response:
    """To the project that was uploaded to last, or to the overview where there is none."""
    newest = await newest_project(session)
    return RedirectResponse(links.compare(newest.name) if newest else links.overview(), status_code=307)


@router.get(_PATH + ".json")
async def compare_json(asked: AskedPage) -> Response:
    """The same as JSON."""
    return json_twin(_found(asked))


@router.get(_PATH + ".csv")
async def compare_csv(asked: AskedPage) -> Response:
    """The rows that the page shows, as CSV."""
    view = _found(asked)
    name = f"{view.project}-{view.reference.short}-{view.candidate.short}"
    return csv_twin(name, [columns_of(row) for row in view.rows], COLUMNS)


@router.get(_PATH + ".md")
async def compare_markdown(asked: AskedPage) -> Response:
    """The same as Markdown, for a pull request."""
    return PlainTextResponse(markdown(_found(asked)), media_type="text/markdown; charset=utf-8")


@router.get(_PATH)
async def compare_page(request: Request, asked: AskedPage) -> Response:
    """The page."""
    view = asked.view
    title = f"{view.reference.short} → {view.candidate.short}" if view else "Compare"
    twins = ("json", "csv", "md") if view else ()
    return page(request, "compare.html", title=title, asked=asked, view=view, twins=twins, copying=True)


def _found(asked: Asked) -> CompareView:
    if asked.view is None:
        raise NotFoundError("Nothing to compare is named: give head=, and base= for another reference than its parent.")
    return asked.view


async def _suggested(session: AsyncSession, project_id: ProjectId) -> tuple[tuple[str, str], ...]:
    """Branches, then the newest commits, each with what it is."""
    branches = await list_branches(session, project_id)
    newest = await list_commits(session, project_id, branch=None, before=None, limit=_SUGGESTIONS)
    named = [(known.branch.name, "branch") for known in branches[:_SUGGESTIONS]]
    return (*named, *((commit.sha[:12], commit.title or "") for commit in newest))


async def _questions(
    session: AsyncSession, project: str, state: State, compared: Sequence[Compared]
) -> tuple[Question, ...]:
    """Filters by what there is. A filter that is set keeps its way back."""

    def ask(name: str, chosen: str | None, values: Sequence[tuple[str, str]]) -> Question:
        answers = [("all", state.address(project, **{name: None}, start=0), chosen is None)]
        answers += [(text, state.address(project, **{name: value}, start=0), value == chosen) for value, text in values]
        return question(name, answers if len(values) > 1 or chosen else answers[:1])

    metrics = sorted({each.key[3] for each in compared} | ({state.metric} if state.metric else set()))
    variants = sorted({each.key[2] for each in compared} | ({state.variant} if state.variant else set()))
    names = await _machine_names(session, {each.key[1] for each in compared})
    machines = sorted({*names, *([state.machine] if state.machine else [])})
    return questions(
        ask("metric", state.metric, [(metric, metric_label(metric)) for metric in metrics]),
        ask("variant", state.variant, [(variant, variant) for variant in variants]),
        ask("machine", state.machine, [(machine, machine) for machine in machines]),
    )


async def _machine_names(session: AsyncSession, ids: set[int]) -> list[str]:
    found = [await session.get(Machine, machine_id) for machine_id in sorted(ids)]
    return [machine.name for machine in found if machine]


def _named(commit: commits.Commit) -> Commit:
    return Commit(commit.sha, commit.title, commit.author, commit.authored_at, commit.branch)
