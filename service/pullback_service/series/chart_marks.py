"""The newest readings of many series, as charts draw them.

Postgres sends their numbers as bytes, and only what is drawn is made into marks: of twenty series at four hundred commits that takes
a quarter of the time of rows.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, LiteralString, TypeAlias, TypeVar

import numpy as np
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import SeriesId
from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Mark
from pullback_service.series.thinning import thin_marks
from pullback_service.statements import Query, numbers_sent

T = TypeVar("T")
_COLUMNS: Final[LiteralString] = """
int8send(commit_id) || float8send(value) || float8send(coalesce(log_ratio, 'NaN')) || float8send(coalesce(low, 'NaN'))
       || float8send(coalesce(high, 'NaN'))
"""
_SENT: Final = np.dtype([("commit", ">i8"), *((name, ">f8") for name in ("value", "log_ratio", "low", "high"))])
_NEWEST: Final[LiteralString] = f"""
SELECT wanted.id, found.*
  FROM unnest(%(series)s::bigint[]) wanted (id), LATERAL (
       SELECT array_agg(commit_id) AS commits, string_agg({_COLUMNS}, '') AS marks, string_agg(coalesce(outcome, ''), ',') AS outcomes
         FROM (SELECT commit_id, value, log_ratio, low, high, outcome
                 FROM reading
                WHERE series_id = wanted.id
                ORDER BY ordered_at DESC, commit_id DESC
                LIMIT %(last)s) newest
       HAVING count(*) > 0) found
"""  # noqa: S608 - our own words
_COMMITS: LiteralString = """
SELECT id, sha, ordered_at FROM commit WHERE id = ANY (ARRAY (SELECT DISTINCT unnest(commits) FROM newest))
"""


DrawnPoint: TypeAlias = tuple[Mark, str]
"""A reading that is drawn, and the hash of its commit."""


async def drawn_points(
    session: AsyncSession, series: Sequence[SeriesId], *, last: int, at_most: int, beside: Query[T]
) -> tuple[Mapping[SeriesId, Sequence[DrawnPoint]], T]:
    """Each series at its newest `last` commits, oldest first, thinned to `at_most` marks as `marks_in` does it.

    The second is the answer of the query `beside`, which goes with these in one statement.
    Whoever has the ids of series has found them where the rule of what callers see is applied.
    Index: ix_reading_series_history, pk_commit.
    """
    newest = Query(_NEWEST, {"series": statements.array_of(series), "last": last}, list)
    async with statements.together(session, newest=newest) as ask:
        sent = ask(Query("SELECT id, marks, outcomes FROM newest", {}, list, width=3))
        commits = ask(Query(_COMMITS, {}, lambda rows: {row[0]: row[1:] for row in rows}, width=3))
        other = ask(beside)
    draw = partial(_drawn, at_most=at_most, commits=commits.value)
    points = {id_: draw(id_, marks, outcomes) for id_, marks, outcomes in sent.value}
    return {id_: points.get(id_, []) for id_ in series}, other.value


def _drawn(
    series_id: SeriesId, marks: bytes, outcomes: str, *, at_most: int, commits: Mapping[int, tuple[str, datetime]]
) -> Sequence[DrawnPoint]:
    """A series that was sent, newest commit first, as it is drawn."""
    rows, said = np.frombuffer(marks, _SENT)[::-1], outcomes.split(",")[::-1]
    places = thin_marks(rows["value"].tolist(), numbers_sent(rows["log_ratio"]), at_most)
    drawn = rows[places]
    ids, values = drawn["commit"].tolist(), drawn["value"].tolist()
    ratios = map(Ratio, *(numbers_sent(drawn[name]) for name in ("log_ratio", "low", "high")))
    return [
        (Mark(series_id, ordered_at, id_, value, ratio, said[place] or None), sha)
        for place, id_, value, ratio, (sha, ordered_at) in zip(
            places, ids, values, ratios, map(commits.__getitem__, ids), strict=True
        )
    ]
