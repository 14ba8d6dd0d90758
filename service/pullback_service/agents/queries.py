"""Finding and making agents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import orjson
from sqlalchemy import and_, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.access.visibility import own_projects
from pullback_service.agents.models import Agent
from pullback_service.errors import NotFoundError
from pullback_service.ids import AgentId, MachineId
from pullback_service.jobs.models import CLAIMABLE, Attempt
from pullback_service.jobs.offers import Abilities
from pullback_service.jobs.queries import ACTIVE
from pullback_service.machines.models import Machine
from pullback_service.machines.queries import SEEN_AGAIN_AFTER_S


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """An agent with its machine's name and what it is doing."""

    agent: Agent
    machine: str
    job_id: int | None
    phase: str | None


async def enroll(session: AsyncSession, machine_id: MachineId, name: str, labels: Mapping[str, Any]) -> AgentId:
    """The agent of this name on this machine, made or brought up to date. Index: uq_agent_machine_id_name."""
    statement = insert(Agent).values(machine_id=machine_id, name=name, labels=dict(labels))
    return AgentId(
        (
            await session.scalars(
                statement.on_conflict_do_update(
                    constraint="uq_agent_machine_id_name",
                    set_={"labels": statement.excluded.labels, "last_seen_at": func.now()},
                ).returning(Agent.id)
            )
        ).one()
    )


_LOOK: LiteralString = f"""
  WITH seen AS (
       UPDATE agent SET last_seen_at = now()
        WHERE id = %(agent)s AND last_seen_at < now() - make_interval(secs => %(seen_again_after_s)s))
SELECT coalesce(%(labels)s::jsonb, a.labels), a.machine_id, m.accepts,
       EXISTS (SELECT FROM attempt t WHERE t.machine_id = a.machine_id AND t.state IN ('leased', 'running'))
       OR EXISTS (SELECT FROM job j
                   WHERE {CLAIMABLE} AND j.requires <@ coalesce(%(labels)s::jsonb, a.labels) AND j.kind = ANY(%(kinds)s)
                     AND (j.machine_id IS NULL OR j.machine_id = a.machine_id)
                     AND (j.trust = 'trusted' OR m.accepts = 'untrusted')
                     AND (%(projects)s::bigint[] IS NULL OR j.project_id = ANY(%(projects)s)))
  FROM agent a
  JOIN machine m ON m.id = a.machine_id
 WHERE a.id = %(agent)s
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Look:
    """What an agent can take, and whether anything waits for which it is worth to claim."""

    abilities: Abilities
    promising: bool


async def look_for_work(
    session: AsyncSession, agent_id: AgentId, labels: Mapping[str, Any] | None, kinds: Sequence[str]
) -> Look:
    """See whether there may be work for an agent, and write down now and then that it asked.

    Locks nothing that others wait for, so that an agent which finds nothing costs one statement.
    Index: pk_agent, pk_machine, uq_attempt_machine_active, ix_job_queue.
    """
    told = None if labels is None else orjson.dumps(labels).decode()
    projects = own_projects(session)
    values = {
        "agent": agent_id,
        "labels": told,
        "kinds": list(kinds),
        "projects": projects,
        "seen_again_after_s": SEEN_AGAIN_AFTER_S,
    }
    found = await statements.row(session, _LOOK, values)
    if found is None:
        raise _unknown(agent_id)
    known, machine_id, accepts, promising = found
    return Look(Abilities(known, frozenset(kinds), machine_id, accepts, projects), promising)


def _unknown(agent_id: AgentId) -> NotFoundError:
    return NotFoundError(f"There is no agent {agent_id}: enroll it with POST /api/v1/agents/enroll.")


async def list_agents(session: AsyncSession, *, after_id: int | None, limit: int) -> Sequence[SeenAgent]:
    """Agents in the order of their enrolment. Index: pk_agent, uq_attempt_machine_active."""
    statement = (
        select(Agent, Machine.name, Attempt.job_id, Attempt.phase)
        .join(Machine, Machine.id == Agent.machine_id)
        .join(Attempt, and_(Attempt.agent_id == Agent.id, Attempt.state.in_(ACTIVE)), isouter=True)
        .order_by(Agent.id)
        .limit(limit)
    )
    if after_id is not None:
        statement = statement.where(Agent.id > after_id)
    return [SeenAgent(*row) for row in await session.execute(statement)]
