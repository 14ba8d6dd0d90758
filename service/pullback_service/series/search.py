"""Finding series, and counting which other choices there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from sqlalchemy import ColumnElement, ScalarSelect, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from pullback_service.membership import among
from pullback_service.models.incidents import StoredSeriesState
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.series import Case, Series
from pullback_service.series.filters import DIMENSIONS, PARAM, SeriesChoice, conditions
from pullback_service.statements import rows, text_of, texts_of

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


_BY_CASE: Final = (Case.workload, Case.natural_label)
_WITHIN_CASE: Final = (
    *(Series.variant, Series.metric),
    *(Machine.name, Machine.fingerprint, func.coalesce(Machine.host, "")),
)


async def list_series(
    session: AsyncSession, choice: SeriesChoice, *, limit: int, after: int | None = None, since: int | None = None
) -> Sequence[StoredSeries]:
    """Series by any dimension in the order of their names, after a series or since it.

    Index: ix_case_workload and uq_series_case_id_variant_metric_machine_id within a project; pk_series, pk_series_state.
    """
    # Within a project without its name, which no index has beside the names of cases.
    by_case = _BY_CASE if choice.project is not None else (Project.name, *_BY_CASE)
    by_name = (*by_case, *_WITHIN_CASE)
    statement = (
        select(Series, Case, Machine, Project.name, StoredSeriesState.resolution)
        .select_from(Series)
        .join(Case, Case.id == Series.case_id)
        .join(Machine, Machine.id == Series.machine_id)
        .join(Project, Project.id == Case.project_id)
        .outerjoin(StoredSeriesState, StoredSeriesState.series_id == Series.id)
        .where(*(await conditions(session, choice, project_id=Case.project_id)).values())
        .order_by(*by_name)
        .limit(limit)
    )
    place = since if after is None else after
    if place is not None:
        names, named = tuple_(*by_name), _named(place, by_name)
        statement = statement.where(
            tuple_(*by_case) >= _named(place, by_case),  # which an index answers
            names >= named if after is None else names > named,
        )
    return [StoredSeries(*row) for row in await session.execute(statement)]


def _named(series_id: int, columns: Sequence[ColumnElement[str] | InstrumentedAttribute[str]]) -> ScalarSelect[str]:
    """The names of a series. Index: pk_series."""
    named = select(*columns).select_from(Series).join(Case, Case.id == Series.case_id)
    named = named.join(Machine, Machine.id == Series.machine_id).join(Project, Project.id == Series.project_id)
    return named.where(Series.id == series_id).correlate(None).scalar_subquery()


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


_COLUMNS: Final[Mapping[str, LiteralString]] = {
    name: text_of(column.expression)[0] for name, column in DIMENSIONS.items()
}
_OF_SERIES: Final = tuple(name for name, column in DIMENSIONS.items() if column.class_ in (Series, Machine))
_OF_CASE: Final = tuple(name for name in DIMENSIONS if name not in _OF_SERIES)
_FACETS: Final[LiteralString] = """
  WITH known AS (
       SELECT series.case_id, {known}
         FROM series {of_their_cases}
         JOIN machine ON machine.id = series.machine_id
         JOIN project ON project.id = series.project_id
        WHERE {always}),
       by_case AS (SELECT case_id, {of_case} FROM known GROUP BY case_id),
       by_rest AS (SELECT {names}, {of_rest} FROM known GROUP BY {names}),
       every (dimension, value, series) AS (
       SELECT dimension, value, sum(counted)::bigint
         FROM (SELECT of_case.*
                 FROM by_case JOIN "case" ON "case".id = by_case.case_id JOIN project ON project.id = "case".project_id,
                      LATERAL (VALUES ('', '', without_0), {values_of_case} UNION ALL
                               SELECT '{PARAM}' || key, value, {count_of_parameter} FROM jsonb_each_text("case".params)) of_case
                UNION ALL
               SELECT of_rest.* FROM by_rest, LATERAL (VALUES {values_of_rest}) of_rest) counts (dimension, value, counted)
        WHERE value IS NOT NULL
        GROUP BY dimension, value
       HAVING sum(counted) > 0), -- values that no series has under the choice are none
       ranked AS (
       SELECT *, row_number() OVER (PARTITION BY dimension ORDER BY series DESC, value) AS rank,
              count(*) OVER (PARTITION BY dimension) AS values_in_all
         FROM every)
SELECT dimension, value, series, values_in_all FROM ranked WHERE rank <= %(most)s ORDER BY dimension, rank
"""

# Found by its key and joined in no other way: without statistics of tables that a first large upload just filled, a planner compares
# each of 80,000 series with each of 20,000 cases, for half a minute.
_OF_THEIR_CASES: Final[LiteralString] = (
    'CROSS JOIN LATERAL (SELECT * FROM "case" WHERE id = series.case_id OFFSET 0) "case"'
)


async def facets(session: AsyncSession, choice: SeriesChoice) -> Facets:
    """Counts of series by the values of each dimension under a choice, in one statement.

    Series are counted twice and read once: by their case, of which workload, device, dtype and parameters are, and by what
    they are besides. Each count leaves out the choice of the dimensions that it is for. Values are found of these few
    hundred or thousand counts and not of every series.

    Reads series and cases and no points. Index: ix_series_project_id, pk_case.
    """
    conditions_of, values = texts_of(await conditions(session, choice))
    always = [conditions_of.pop(name) for name in ("project", "case", "branch", "text") if name in conditions_of]
    reads_cases = any('"case".' in condition for condition in (*always, *conditions_of.values()))
    fits = {name: f"fits_{place}" for place, name in enumerate(conditions_of)}
    chosen = [name for name in fits if name.startswith(PARAM)]
    without = {name: f"without_{place}" for place, name in enumerate(("", *DIMENSIONS, *chosen))}

    def counts(*names: str) -> LiteralString:
        """The count of each name, which leaves out what is chosen of it."""
        return ", ".join(
            f"count(*) FILTER (WHERE {' AND '.join(fit for other, fit in fits.items() if other != name) or 'true'}) AS {without[name]}"
            for name in names
        )

    named = {f"param_{place}": name.removeprefix(PARAM) for place, name in enumerate(chosen)}
    own = " ".join(f"WHEN %({place})s THEN {without[PARAM + name]}" for place, name in named.items())
    statement = _FACETS.format(
        known=", ".join(
            [f"{_COLUMNS[name]} AS {name}" for name in _OF_SERIES]
            + [f"({condition}) AS {fits[name]}" for name, condition in conditions_of.items()]
        ),
        of_their_cases=_OF_THEIR_CASES if reads_cases else "",
        always=" AND ".join(always) or "true",
        of_case=counts("", *_OF_CASE, *chosen),
        names=", ".join(_OF_SERIES),
        of_rest=counts(*_OF_SERIES),
        values_of_case=", ".join(f"('{name}', {_COLUMNS[name]}, {without[name]})" for name in _OF_CASE),
        values_of_rest=", ".join(f"('{name}', {name}, {without[name]})" for name in _OF_SERIES),
        count_of_parameter=f"CASE key {own} ELSE without_0 END" if own else "without_0",
        PARAM=PARAM,
    )
    parameters = {**values, **named, "most": MOST_FACET_VALUES}
    results: dict[str, list[tuple[str, int]]] = {name: [] for name in DIMENSIONS}
    sizes: dict[str, int] = {}
    series = 0
    for dimension, value, count, values_in_all in await rows(session, statement, parameters):
        if not dimension:
            series = count
            continue
        results.setdefault(dimension, []).append((value, count))
        sizes[dimension] = values_in_all
    return Facets(series, [Facet(name, listed, sizes.get(name, 0)) for name, listed in results.items()])
