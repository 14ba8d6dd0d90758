"""Finding series, and counting which other choices there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Text, and_, cast, func, literal, select, true, union_all
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.among import among
from pullback_service.machines.models import Machine
from pullback_service.projects.models import Project
from pullback_service.series.choosing import DIMENSIONS, PARAM, SeriesChoice, conditions
from pullback_service.series.models import Case, Series

MOST_FACET_VALUES = 100


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """A series with what it is of."""

    series: Series
    case: Case
    machine: Machine
    project: str


@dataclass(frozen=True, slots=True)
class Facet:
    """One dimension: its values, most series first, with how many series each would leave; `values_in_all` may be more.

    The dimension's own choice is left out of the counts, so that they say what choosing another value would give.
    """

    dimension: str
    values: Sequence[tuple[str, int]]
    values_in_all: int


@dataclass(frozen=True, slots=True)
class Facets:
    """How many series a choice finds, and what else there is to choose."""

    series: int
    facets: Sequence[Facet]


async def list_series(
    session: AsyncSession, choice: SeriesChoice, *, after_id: int | None, limit: int
) -> Sequence[StoredSeries]:
    """Series by any dimension, in the order in which they were first seen.

    Index: ix_series_project_id within a project, ix_case_workload within a workload.
    """
    statement = (
        select(Series, Case, Machine, Project.name)
        .select_from(Series)
        .join(Case, Case.id == Series.case_id)
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Series.project_id)
        .where(*(await conditions(session, choice)).values())
        .order_by(Series.id)
        .limit(limit)
    )
    if after_id is not None:
        statement = statement.where(Series.id > after_id)
    return [StoredSeries(*row) for row in await session.execute(statement)]


async def series_by_ids(session: AsyncSession, ids: Sequence[int]) -> Mapping[int, StoredSeries]:
    """Series by their ids. Index: pk_series."""
    rows = await session.execute(
        select(Series, Case, Machine, Project.name)
        .select_from(Series)
        .join(Case, Case.id == Series.case_id)
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Series.project_id)
        .where(among(Series.id, ids))
    )
    return {row[0].id: StoredSeries(*row) for row in rows}


async def facets(session: AsyncSession, choice: SeriesChoice) -> Facets:
    """Which values of each dimension there are under a choice, with counts of series, in one statement.

    Reads series and cases and no points. Index: ix_series_project_id.
    """
    where = await conditions(session, choice)
    always = [where.pop(name) for name in ("project", "case", "branch", "text") if name in where]
    fits = {name: condition.label(f"fits_{place}") for place, (name, condition) in enumerate(where.items())}
    known = (
        select(
            *(column.label(name) for name, column in DIMENSIONS.items()),
            Case.params.label("params"),
            *fits.values(),
        )
        .select_from(Series)
        # Of one project, or a planner reads the cases of all.
        .join(Case, and_(Case.id == Series.case_id, Case.project_id == Series.project_id))
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Series.project_id)
        .where(*always)
        .cte("known")
    )

    def others(*own: str) -> ColumnElement[bool]:
        return and_(true(), *(known.c[label.name] for name, label in fits.items() if name not in own))

    named = (
        select(literal(name).label("dimension"), cast(known.c[name], Text).label("value"), func.count().label("series"))
        .where(others(name), known.c[name].is_not(None))
        .group_by(known.c[name])
        for name in DIMENSIONS
    )
    param = func.jsonb_each_text(cast(known.c.params, JSONB)).table_valued("key", "value").render_derived("param")
    chosen = [name.removeprefix(PARAM) for name in fits if name.startswith(PARAM)]
    parameters = (
        select((literal(PARAM) + param.c.key).label("dimension"), param.c.value, func.count().label("series"))
        .select_from(known.join(param, true()))
        .where(param.c.value.is_not(None), of_these, others(*own))
        .group_by(param.c.key, param.c.value)
        for of_these, own in (
            (param.c.key.not_in(chosen), ()),
            *((param.c.key == name, (f"{PARAM}{name}",)) for name in chosen),
        )
    )
    total = select(literal("").label("dimension"), literal("").label("value"), func.count().label("series")).where(
        others()
    )
    every = union_all(total.select_from(known), *named, *parameters).subquery("every")
    ranked = select(
        every,
        func.row_number()
        .over(partition_by=every.c.dimension, order_by=(every.c.series.desc(), every.c.value))
        .label("rank"),
        func.count().over(partition_by=every.c.dimension).label("values_in_all"),
    ).subquery("ranked")
    rows = await session.execute(
        select(ranked).where(ranked.c.rank <= MOST_FACET_VALUES).order_by(ranked.c.dimension, ranked.c.rank)
    )
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in DIMENSIONS}
    sizes: dict[str, int] = {}
    series = 0
    for row in rows:
        if not row.dimension:
            series = row.series
            continue
        found.setdefault(row.dimension, []).append((row.value, row.series))
        sizes[row.dimension] = row.values_in_all
    return Facets(series, [Facet(name, values, sizes.get(name, 0)) for name, values in found.items()])
