"""Finding and making agents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.agents.models import Agent
from pullback_service.errors import NotFoundError
from pullback_service.ids import AgentId, MachineId
from pullback_service.jobs.models import Attempt
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


async def agent_by_id(session: AsyncSession, agent_id: AgentId) -> Agent:
    """An agent. Index: pk_agent."""
    found = await session.get(Agent, agent_id)
    if found is None:
        raise NotFoundError(f"There is no agent {agent_id}: enroll it with POST /api/v1/agents/enroll.")
    return found


async def note_seen(session: AsyncSession, agent_id: AgentId) -> None:
    """Write down that an agent asked for work, at most once in a while. Index: pk_agent."""
    stale = Agent.last_seen_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, SEEN_AGAIN_AFTER_S)
    await session.execute(update(Agent).where(Agent.id == agent_id, stale).values(last_seen_at=func.now()))


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
