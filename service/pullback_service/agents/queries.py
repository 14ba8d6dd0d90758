"""Finding and making agents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, LiteralString, NamedTuple

import orjson
from sqlalchemy import Select, and_, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.caller import Caller, caller_of
from pullback_service.database import seeing_all_projects
from pullback_service.errors import ForbiddenError, NotFoundError
from pullback_service.ids import AgentId, MachineId, TokenId
from pullback_service.jobs.labels import CONTAINS_STRANGERS_SQL, UNSAID_SQL
from pullback_service.jobs.offers import Abilities
from pullback_service.jobs.schemas import SpoolStatement
from pullback_service.machines.registration import SEEN_AGAIN_AFTER_S
from pullback_service.models.agents import SILENT_AFTER_S, Agent
from pullback_service.models.jobs import CLAIMABLE, DUE, Attempt
from pullback_service.models.machines import Machine
from pullback_service.statements import Query


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """An agent with its machine's name, whether it was heard of lately, and what it is doing."""

    agent: Agent
    machine: str
    present: bool
    job_id: int | None
    since: datetime | None
    phase: str | None
    progress: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state an agent reports besides its labels. A `spool` of None reports nothing about it, and nothing is changed."""

    waiting: int | None = None
    bytes: int | None = None
    refuses: str | None = None


def told_by(spool: SpoolStatement | None, refuses: str | None = None) -> AgentState:
    """The state reported by a claim or a heartbeat."""
    return AgentState(refuses=refuses) if spool is None else AgentState(spool.waiting, spool.bytes, refuses)


async def enroll(session: AsyncSession, machine_id: MachineId, name: str, labels: Mapping[str, Any]) -> AgentId:
    """The agent of this name on this machine, made or brought up to date; it serves the projects of the caller.

    A caller limited to a project enrols nothing on a machine where agents of others have tokens: a job keeps the machine from them. An agent that comes
    with its own token from an equal machine is that agent, moved: its computer has become known as a machine of its own.
    Index: uq_agent_machine_id_name, pk_agent.
    """
    caller = caller_of(session)
    limited_to = None if caller is None or caller.projects is None else next(iter(caller.projects), None)
    values = {
        "machine": machine_id,
        "name": name,
        "project": limited_to,
        "labels": orjson.dumps(labels).decode(),
        "own": None if caller is None else caller.agent_id,
        "token": _token_of(caller),
    }
    async with seeing_all_projects(session):  # agents and tokens of other projects as well
        await statements.run(session, _LOCK_MACHINE, values)
        await statements.run(session, _MOVE, values)
        row = await statements.row(session, _ENROLL, values)
    if row is None:
        raise ForbiddenError(
            f"This machine has agents of other projects, or agent {name!r} here has another token that is valid: enrol with a code for "
            "all projects (`pullback token enroll` without --project), or revoke their tokens first (`pullback token revoke`)."
        )
    return AgentId(row[0])


def _token_of(caller: Caller | None) -> TokenId | None:
    """The token that speaks only for the agents that it enrolled: administrators speak for all, and an agent's own for that agent."""
    return None if caller is None or caller.has("admin") or caller.agent_id is not None else caller.token_id


_LOCK_MACHINE: LiteralString = (
    "SELECT FROM machine WHERE id = %(machine)s FOR NO KEY UPDATE"  # of two at once one is first
)
GONE_AFTER_DAYS: LiteralString = "30"
"""An agent of which no token is known, as of releases before 0.2, is gone when nothing was heard of it for so long."""
_ENDED: LiteralString = """(
SELECT bool_and(revoked_at IS NOT NULL OR coalesce(expires_at <= now(), false))
  FROM token WHERE agent_id = {0}.id OR id = {0}.token_id)"""  # null: it never had one
_OF_OTHERS: LiteralString = f"""
SELECT FROM agent there
 WHERE there.machine_id = %(machine)s AND there.project_id IS DISTINCT FROM %(project)s::bigint
   AND there.id IS DISTINCT FROM %(own)s::bigint
   AND NOT coalesce({_ENDED.format("there")}, there.last_seen_at < now() - interval '{GONE_AFTER_DAYS} days')
"""  # noqa: S608 - our own words
_ENROLL: LiteralString = f"""
INSERT INTO agent (machine_id, name, project_id, labels, token_id)
SELECT %(machine)s, %(name)s, %(project)s::bigint, %(labels)s::jsonb, %(token)s::bigint
 WHERE %(project)s::bigint IS NULL OR NOT EXISTS ({_OF_OTHERS})
       OR EXISTS (SELECT FROM agent here
                   WHERE here.machine_id = %(machine)s AND here.name = %(name)s
                     AND (here.id = %(own)s::bigint
                          OR here.project_id = %(project)s::bigint AND {_ENDED.format("here")} IS NOT TRUE))
    ON CONFLICT (machine_id, name) DO UPDATE
   SET labels = excluded.labels, project_id = excluded.project_id, token_id = excluded.token_id, last_seen_at = now()
 WHERE agent.id = %(own)s::bigint
       OR ((excluded.project_id IS NULL OR agent.project_id = excluded.project_id OR {_ENDED.format("agent")})
           AND (excluded.token_id IS NULL OR agent.token_id = excluded.token_id OR {_ENDED.format("agent")} IS NOT FALSE))
RETURNING id
"""  # noqa: S608 - our own words
_MOVE: LiteralString = f"""
UPDATE agent SET machine_id = %(machine)s
  FROM machine own, machine other
 WHERE agent.id = %(own)s::bigint AND agent.name = %(name)s AND own.id = agent.machine_id AND other.id = %(machine)s
   AND other.fingerprint = own.fingerprint
   AND NOT EXISTS (SELECT FROM agent there WHERE there.machine_id = %(machine)s AND there.name = %(name)s)
   AND (%(project)s::bigint IS NULL OR NOT EXISTS ({_OF_OTHERS}))
"""  # noqa: S608 - our own words


# Agents ask often and rarely have news: their row is written when they have, or were not written for a while.
_NOTE: LiteralString = """
UPDATE agent SET last_seen_at = now(), refuses = %(refuses)s::text,
       spool_waiting = coalesce(%(waiting)s::bigint, spool_waiting), spool_bytes = coalesce(%(bytes)s::bigint, spool_bytes)
 WHERE id = %(agent)s
   AND (%(projects)s::bigint[] IS NULL OR project_id = ANY (%(projects)s::bigint[]))
   AND (%(token)s::bigint IS NULL OR token_id = %(token)s::bigint)
   AND (last_seen_at < now() - make_interval(secs => %(seen_again_after_s)s)
        OR refuses IS DISTINCT FROM %(refuses)s::text
        OR spool_waiting IS DISTINCT FROM coalesce(%(waiting)s::bigint, spool_waiting)
        OR spool_bytes IS DISTINCT FROM coalesce(%(bytes)s::bigint, spool_bytes))
"""
_LOOK: LiteralString = f"""
  WITH seen AS ({_NOTE})
SELECT told.labels, a.machine_id, m.accepts,
       EXISTS (SELECT FROM attempt t WHERE t.machine_id = a.machine_id AND t.state IN ('leased', 'running'))
       OR EXISTS (SELECT FROM job j
                   WHERE {CLAIMABLE} AND {DUE} AND j.kind = ANY(%(kinds)s)
                     AND ({UNSAID_SQL} || j.requires) <@ ({UNSAID_SQL} || told.labels)
                     AND (j.machine_id IS NULL OR j.machine_id = a.machine_id)
                     AND (j.trust = 'trusted' OR (m.accepts = 'untrusted' AND {CONTAINS_STRANGERS_SQL})))
  FROM agent a
 CROSS JOIN LATERAL (SELECT coalesce(%(labels)s::jsonb, a.labels) AS labels) told
  JOIN machine m ON m.id = a.machine_id
 WHERE a.id = %(agent)s AND (%(projects)s::bigint[] IS NULL OR a.project_id = ANY (%(projects)s::bigint[]))
   AND (%(token)s::bigint IS NULL OR a.token_id = %(token)s::bigint)
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class AgentWork:
    """The abilities of an agent, and whether anything waits that makes a claim worthwhile."""

    abilities: Abilities
    promising: bool


async def find_work(
    session: AsyncSession,
    agent_id: AgentId,
    labels: Mapping[str, Any] | None,
    kinds: Sequence[str],
    state: AgentState = AgentState(),
) -> AgentWork:
    """See whether there may be work for an agent, and write down now and then that it asked, and what it says of itself.

    Locks nothing that others wait for, so that an agent which finds nothing costs one statement.
    Index: pk_agent, pk_machine, uq_attempt_machine_active, ix_job_queue.
    """
    offered = None if labels is None else orjson.dumps(labels).decode()
    values = {**_note_values(session, agent_id, state), "labels": offered, "kinds": list(kinds)}
    row = await statements.row(session, _LOOK, values)
    if row is None:
        raise _unknown(agent_id)
    known, machine_id, accepts, promising = row
    caller = caller_of(session)
    projects = None if caller is None else caller.projects
    abilities = Abilities(known, frozenset(kinds), machine_id, accepts, projects)
    return AgentWork(abilities, promising and state.refuses is None)


async def note_at_work(session: AsyncSession, agent_id: AgentId, state: AgentState) -> None:
    """Write down now and then that an agent is at work, and what it has not delivered. Index: pk_agent."""
    await statements.run(session, _NOTE, _note_values(session, agent_id, state))


def _note_values(session: AsyncSession, agent_id: AgentId, state: AgentState) -> dict[str, Any]:
    """An agent's own token speaks for it, an administrator's for the agents of its projects, others for those that they enrolled."""
    caller = caller_of(session)
    projects = None if caller is None or caller.agent_id is not None else caller.projects
    return {
        "projects": None if projects is None else list(projects),
        "token": _token_of(caller),
        "agent": agent_id,
        "waiting": state.waiting,
        "bytes": state.bytes,
        "refuses": state.refuses,
        "seen_again_after_s": SEEN_AGAIN_AFTER_S,
    }


def _unknown(agent_id: AgentId) -> NotFoundError:
    return NotFoundError(f"There is no agent {agent_id}: enrol it with POST /api/v1/agents/enroll.")


async def list_agents(session: AsyncSession, *, after_id: int | None, limit: int) -> Sequence[AgentStatus]:
    """Agents in the order of their enrolment. Index: pk_agent, uq_attempt_machine_active."""
    statement = _seen().limit(limit)
    if after_id is not None:
        statement = statement.where(Agent.id > after_id)
    return [AgentStatus(*row) for row in await session.execute(statement)]


class FleetCounts(NamedTuple):
    """Counts of agents: all, those heard of lately or at work, and when any last was; and of the jobs."""

    agents: int
    present: int
    last_seen_at: datetime | None
    queued: int
    active: int


_COUNTS: LiteralString = """
SELECT count(*), count(*) FILTER (WHERE agent.last_seen_at > now() - make_interval(secs => %(silent_after_s)s)
                                     OR attempt.id IS NOT NULL),
       max(agent.last_seen_at),
       (SELECT count(*) FROM job WHERE state = 'queued'), (SELECT count(*) FROM job WHERE state IN ('leased', 'running'))
  FROM agent
  LEFT JOIN attempt ON attempt.agent_id = agent.id AND attempt.state IN ('leased', 'running')
"""


def count_fleet() -> Query[FleetCounts]:
    """Agents and jobs in numbers. Index: uq_attempt_machine_active, ix_job_state."""
    return Query(_COUNTS, {"silent_after_s": SILENT_AFTER_S}, lambda rows: FleetCounts(*next(iter(rows))))


async def agent_names(session: AsyncSession, agent_ids: Collection[AgentId]) -> Mapping[AgentId, str]:
    """The names of some agents. Index: pk_agent."""
    if not agent_ids:
        return {}
    rows = await session.execute(select(Agent.id, Agent.name).where(Agent.id.in_(agent_ids)))
    return {AgentId(row.id): row.name for row in rows}


async def agents_on(session: AsyncSession, machine_id: MachineId) -> Sequence[AgentStatus]:
    """The agents of one machine. Index: uq_agent_machine_id_name."""
    return [AgentStatus(*row) for row in await session.execute(_seen().where(Agent.machine_id == machine_id))]


def _seen() -> Select[Agent, str, bool, int | None, datetime | None, str | None, dict[str, Any] | None]:
    return (
        select(
            Agent,
            Machine.name,
            Agent.last_seen_at > func.now() - timedelta(seconds=SILENT_AFTER_S),
            Attempt.job_id,
            Attempt.leased_at,
            Attempt.phase,
            Attempt.progress,
        )
        .join(Machine, Machine.id == Agent.machine_id)
        # Written out: of parameters the plan for all values cannot tell that a partial index has these states.
        .join(Attempt, and_(Attempt.agent_id == Agent.id, text("attempt.state IN ('leased', 'running')")), isouter=True)
        .order_by(Agent.id)
    )
