"""`/projects/{project}/explore`: series by what they are, drawn side by side. The address is the whole state."""

from collections.abc import Iterator, Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from pullback_dashboards import links
from pullback_dashboards.choices import Question, question, questions
from pullback_dashboards.explore.view import (
    MOST_DRAWN,
    SPLITS,
    ExploreView,
    Found,
    Menu,
    MenuValue,
    charts_of,
    rows_of,
)
from pullback_dashboards.history import metric_label
from pullback_dashboards.rendering import json_twin, page
from pullback_dashboards.sources import newest_project
from pullback_service.database import ReadSession
from pullback_service.ids import SeriesId
from pullback_service.projects.queries import project_by_name
from pullback_service.series.asking import ChosenSeries
from pullback_service.series.choosing import PARAM, SeriesChoice
from pullback_service.series.drawing import newest_marks
from pullback_service.series.finding import Facet, Facets, facets, list_series

router = APIRouter(include_in_schema=False)

_LISTED = 12  # values of a menu
_WINDOWS = (30, 100, 400)
_MARKS = 200  # a curve
_OWN = ("split", "y", "last")

Pairs = tuple[tuple[str, str], ...]


class _Address:
    """The addresses that differ from the present one in one answer."""

    def __init__(self, project: str, request: Request) -> None:
        self.project = project
        self.pairs: Pairs = tuple((key, value) for key, value in request.query_params.multi_items() if value)

    def chosen(self, name: str) -> set[str]:
        return {value for key, value in self.pairs if key == name}

    def replaced(self, name: str, value: str | None) -> str:
        kept = [(key, old) for key, old in self.pairs if key != name]
        return self._written(kept if value is None else [*kept, (name, value)])

    def cleared(self) -> str:
        return self._written([(key, value) for key, value in self.pairs if key in _OWN])

    def without(self, name: str) -> Pairs:
        return tuple((key, value) for key, value in self.pairs if key != name)

    def _written(self, pairs: Sequence[tuple[str, str]]) -> str:
        path = links.explore(self.project)
        return f"{path}?{urlencode(pairs)}" if pairs else path


async def _read(
    request: Request,
    session: ReadSession,
    choice: ChosenSeries,
    project: str,
    split: Annotated[str, Query(pattern=f"^({'|'.join(SPLITS)})?$")] = "metric",
    y: Annotated[str, Query(pattern="^(relative|absolute)$")] = "relative",
    last: Annotated[int, Query(ge=1, le=2000)] = _WINDOWS[1],
) -> ExploreView:
    await project_by_name(session, project)
    address = _Address(project, request)
    counted = await facets(session, choice)
    found: list[Found] = []
    if 0 < counted.series <= MOST_DRAWN:
        chosen = await list_series(session, choice, after_id=None, limit=MOST_DRAWN)
        ids = [SeriesId(stored.series.id) for stored in chosen]
        marks = await newest_marks(session, ids, last=last, at_most=_MARKS)
        found = [Found(stored, tuple(marks[id_])) for stored, id_ in zip(chosen, ids, strict=True)]
    return ExploreView(
        project=project,
        series=counted.series,
        menus=tuple(_menus(counted, address)),
        charts=charts_of(found, split=split, relative=y == "relative"),
        rows=rows_of(found, project),
        split=split,
        questions=_questions(address, choice, split, y, last) if found else (),
        clear_href=address.cleared(),
        words=choice.text or "",
        kept=address.without("q"),
    )


AskedView = Annotated[ExploreView, Depends(_read)]
_PATH = "/projects/{project:path}/explore"


@router.get("/explore")
async def explore_somewhere(session: ReadSession) -> Response:
    """To the project that was uploaded to last, or to the overview where there is none."""
    newest = await newest_project(session)
    return RedirectResponse(links.explore(newest.name) if newest else links.overview(), status_code=307)


@router.get(_PATH + ".json")
async def explore_json(view: AskedView) -> Response:
    """The same as JSON."""
    return json_twin(view)


@router.get(_PATH)
async def explore_page(request: Request, view: AskedView) -> Response:
    """The page."""
    return page(request, "explore.html", title="Explore", view=view, most=MOST_DRAWN, twins=("json",))


def _menus(counted: Facets, address: _Address) -> Iterator[Menu]:
    for facet in counted.facets:
        if facet.dimension == "project" or not facet.values:
            continue
        yield _menu(facet, address)


def _menu(facet: Facet, address: _Address) -> Menu:
    chosen = address.chosen(facet.dimension)
    listed = [pair for place, pair in enumerate(facet.values) if place < _LISTED or pair[0] in chosen]
    values = tuple(
        MenuValue(
            text=metric_label(value) if facet.dimension == "metric" else value,
            count=count,
            href=address.replaced(facet.dimension, None if value in chosen else value),
            chosen=value in chosen,
        )
        for value, count in listed
    )
    return Menu(facet.dimension, facet.dimension.removeprefix(PARAM), values, facet.values_in_all - len(listed))


def _questions(address: _Address, choice: SeriesChoice, split: str, y: str, last: int) -> tuple[Question, ...]:
    del choice
    return questions(
        question("a chart for each", ((name, address.replaced("split", name), name == split) for name in SPLITS)),
        question(
            "values",
            (
                (text, address.replaced("y", None if value == "relative" else value), value == y)
                for value, text in (("relative", "÷ unfused"), ("absolute", "absolute"))
            ),
        ),
        question(
            "commits",
            ((f"newest {count}", address.replaced("last", str(count)), count == last) for count in _WINDOWS),
        ),
    )
