"""Offers of the queue: what waits and for whom, so that a notification wakes those who can take a job and lets the others sleep.

A first sieve only. Whoever is called claims by `leases.claim`, which alone decides; what it refuses goes to the next one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.jobs.labels import contains_strangers, suits
from pullback_service.jobs.trust import TrustLevel
from pullback_service.models.jobs import CLAIMABLE, DUE

# Of the best jobs only, those alike together: a thousand for a machine that is away must not hide one for somebody who waits.
_WAITING: LiteralString = f"""
  WITH best AS (
       SELECT requires, kind, trust, project_id, machine_id, row_number() OVER () AS place
         FROM (SELECT * FROM job WHERE {CLAIMABLE} AND {DUE} ORDER BY priority DESC, attempts, id LIMIT 2000) queued)
SELECT requires, kind, trust, project_id, machine_id, count(*)
  FROM best
 GROUP BY requires, kind, trust, project_id, machine_id
 ORDER BY min(place)
 LIMIT 200
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Abilities:
    """The jobs an agent can take: those whose required labels are among its own, of kinds it knows, that its machine accepts.

    `projects` are those its token is limited to; None is all.
    """

    labels: Mapping[str, Any]
    kinds: Collection[str]
    machine_id: int
    accepts: TrustLevel
    projects: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A number of waiting jobs that are interchangeable."""

    requires: Mapping[str, Any]
    kind: str = "run"
    trust: TrustLevel = "trusted"
    project_id: int = 0
    machine_id: int | None = None
    """The one machine that may take them."""
    jobs: int = 1

    def fits(self, agent: Abilities) -> bool:
        """True if an agent may be able to take one."""
        return (
            self.kind in agent.kinds
            and self.machine_id in {None, agent.machine_id}
            and (self.trust == "trusted" or (agent.accepts == "untrusted" and contains_strangers(agent.labels)))
            and (agent.projects is None or self.project_id in agent.projects)
            and suits(agent.labels, self.requires)
        )


async def waiting_offers(session: AsyncSession) -> list[Offer]:
    """The waiting offers, best first. Index: ix_job_queue."""
    return [Offer(*row) for row in await statements.rows(session, _WAITING, {})]
