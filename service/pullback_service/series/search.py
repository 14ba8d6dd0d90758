"""Finding series, and counting which other choices there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Join,
    Select,
    Text,
    and_,
    cast,
    func,
    literal,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from pullback_service.membership import among
from pullback_service.models.incidents import StoredSeriesState
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.series import Case, Series
from pullback_service.series.filters import DIMENSIONS, PARAM, SeriesChoice, conditions

MOST_FACET_VALUES = 100


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """A series with what it is of."""

    series: Series
    case: Case
    machine: Machine
    project: str
    suspected_from: float | None = None
    """The smallest step (natural log) that would be noticed within three commits, as far as it is known."""

    @property
    def resolution(self) -> float | None:
        """The same of every series: any difference of a count is seen."""
        return 0.0 if self.series.exact else self.suspected_from


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
    """Counts of the series of a choice, and of the values that narrow it further."""

    series: int
    facets: Sequence[Facet]


async def list_series(
    session: AsyncSession, choice: SeriesChoice, *, after_id: int | None, limit: int
) -> Sequence[StoredSeries]:
    """Series by any dimension, in the order in which they were first seen.

    Index: ix_series_project_id within a project, ix_case_workload within a workload; pk_series_state.
    """
    statement = (
        select(Series, Case, Machine, Project.name, StoredSeriesState.resolution)
        .select_from(Series)
        .join(Case, Case.id == Series.case_id)
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Series.project_id)
        .outerjoin(StoredSeriesState, StoredSeriesState.series_id == Series.id)
        .where(*(await conditions(session, choice)).values())
        .order_by(Series.id)
        .limit(limit)
    )
    if after_id is not None:
        statement = statement.where(Series.id > after_id)
    return [StoredSeries(*row) for row in await session.execute(statement)]


async def series_by_ids(session: AsyncSession, ids: Sequence[int]) -> Mapping[int, StoredSeries]:
    """Series by their ids. Index: pk_series, pk_series_state."""
    rows = await session.execute(
        select(Series, Case, Machine, Project.name, StoredSeriesState.resolution)
        .select_from(Series)
        .join(Case, Case.id == Series.case_id)
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Series.project_id)
        .outerjoin(StoredSeriesState, StoredSeriesState.series_id == Series.id)
        .where(among(Series.id, ids))
    )
    return {row[0].id: StoredSeries(*row) for row in rows}


_OF_SERIES = {name: column for name, column in DIMENSIONS.items() if column.class_ in (Series, Machine)}
_OF_CASE = {name: column for name, column in DIMENSIONS.items() if name not in _OF_SERIES}


def _counted(
    dimension: ColumnElement[str], value: ColumnElement[Any] | InstrumentedAttribute[Any], count: ColumnElement[int]
) -> Select[str, str, int]:
    """A row of facets: values that no series has under the choice are none."""
    series = cast(func.coalesce(func.sum(count), 0), BigInteger)
    rows = select(dimension.label("dimension"), cast(value, Text).label("value"), series.label("series"))
    return rows.where(value.is_not(None)).having(func.sum(count) > 0)


def _parameters(cases: Join, counts: Mapping[str, ColumnElement[int]]) -> Iterator[Select[str, str, int]]:
    """Values of parameters: of each that is chosen with its own count, of all others with that of "" (nothing left out)."""
    param = func.jsonb_each_text(cast(Case.params, JSONB)).table_valued("key", "value").render_derived("param")
    chosen = [name.removeprefix(PARAM) for name in counts if name]
    for name, count in counts.items():
        of_these = param.c.key == name.removeprefix(PARAM) if name else param.c.key.not_in(chosen)
        counted = _counted(literal(PARAM) + param.c.key, param.c.value, count)
        yield counted.select_from(cases.join(param, true())).where(of_these).group_by(param.c.key, param.c.value)


async def facets(session: AsyncSession, choice: SeriesChoice) -> Facets:
    """Counts of series by the values of each dimension under a choice, in one statement.

    Series are counted twice and read once: by their case, of which workload, device, dtype and parameters are, and by what
    they are besides. Each count leaves out the choice of the dimensions that it is for. Values are found of these few
    hundred or thousand counts and not of every series.

    Reads series and cases and no points. Index: ix_series_project_id.
    """
    where = await conditions(session, choice)
    always = [where.pop(name) for name in ("project", "case", "branch", "text") if name in where]
    fits = {name: condition.label(f"fits_{place}") for place, (name, condition) in enumerate(where.items())}
    known = (
        select(Series.case_id, *(column.label(name) for name, column in _OF_SERIES.items()), *fits.values())
        .select_from(Series)
        # Of one project, or a planner reads the cases of all.
        .join(Case, and_(Case.id == Series.case_id, Case.project_id == Series.project_id))
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Series.project_id)
        .where(*always)
        .cte("known")
    )

    chosen = [name for name in fits if name.startswith(PARAM)]
    without = {name: f"without_{place}" for place, name in enumerate(("", *DIMENSIONS, *chosen))}

    def leaving_out(name: str) -> ColumnElement[int]:
        others = (known.c[label.name] for other, label in fits.items() if other != name)
        return func.count().filter(and_(true(), *others)).label(without[name])

    by_case = (
        select(known.c.case_id, *map(leaving_out, ("", *_OF_CASE, *chosen))).group_by(known.c.case_id).cte("by_case")
    )
    others = [known.c[name] for name in _OF_SERIES]
    by_rest = select(*others, *map(leaving_out, _OF_SERIES)).group_by(*others).cte("by_rest")
    cases = by_case.join(Case, Case.id == by_case.c.case_id).join(Project, Project.id == Case.project_id)
    every = union_all(
        _counted(literal(""), literal(""), by_case.c[without[""]]).select_from(by_case),
        *(
            _counted(literal(name), column, by_case.c[without[name]]).select_from(cases).group_by(column)
            for name, column in _OF_CASE.items()
        ),
        *(
            _counted(literal(name), by_rest.c[name], by_rest.c[without[name]]).group_by(by_rest.c[name])
            for name in _OF_SERIES
        ),
        *_parameters(cases, {name: by_case.c[without[name]] for name in ("", *chosen)}),
    ).subquery("every")
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
