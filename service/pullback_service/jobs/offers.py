"""What waits in the queue, and for whom: so that a ring wakes who can take a job and lets the others sleep.

A first sieve only. Whoever is called claims by `leases.claim`, which alone decides; what it refuses goes to the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.jobs.models import CLAIMABLE

_WAITING: LiteralString = f"SELECT requires FROM job WHERE {CLAIMABLE} ORDER BY priority DESC, attempts, id LIMIT 100"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Offer:
    """A job that waits."""

    requires: Mapping[str, Any]

    def fits(self, labels: Mapping[str, Any]) -> bool:
        """Whether an agent with these labels may be able to take it."""
        return contains(labels, self.requires)


async def waiting_offers(session: AsyncSession) -> list[Offer]:
    """The best jobs that wait. Index: ix_job_queue."""
    return [Offer(requires) for (requires,) in await statements.rows(session, _WAITING, {})]


def contains(whole: object, part: object) -> bool:
    """Whether one JSON value contains another, as Postgres' `@>` has it for jsonb.

    https://www.postgresql.org/docs/current/datatype-json.html#JSON-CONTAINMENT; of its one exception (an array contains
    a bare value) nothing is needed here, where both are objects.
    """
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(name in whole and contains(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contains(one, wanted) for one in whole) for wanted in part)
    # True is 1 in Python and not in JSON.
    return isinstance(whole, bool) == isinstance(part, bool) and whole == part
