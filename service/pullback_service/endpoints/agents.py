"""Registering agents, and claiming jobs for them."""

import time

from fastapi import Request, Response
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import KnownCaller, enrolment_code_of
from pullback_service.addresses import API
from pullback_service.agents import queries
from pullback_service.agents.queries import AgentStatus, told_by
from pullback_service.agents.schemas import AgentSummary, Claim, ClaimedJob, ClaimRequest, Enrolment, EnrolmentAnswer
from pullback_service.audit.trail import note
from pullback_service.caller import Caller, database_of
from pullback_service.commits.queries import parents_of
from pullback_service.commits.schemas import CommitSummary
from pullback_service.current_settings import KnownSettings
from pullback_service.database import Database, seeing_all_projects
from pullback_service.endpoints.tables import AGENTS
from pullback_service.errors import ForbiddenError, InvalidInputError, NotFoundError
from pullback_service.fields import KnownId
from pullback_service.ids import AgentId, MachineId
from pullback_service.jobs import leases
from pullback_service.jobs.dependencies import KnownJobListener
from pullback_service.jobs.job_listener import Waiter
from pullback_service.jobs.labels import with_device
from pullback_service.jobs.queries import job_by_id, reference_of
from pullback_service.jobs.schemas import SpoolStatement
from pullback_service.listing import LISTED, KnownListing
from pullback_service.machines.registration import MachineDescription, ensure_machine
from pullback_service.models.projects import Project
from pullback_service.paging import Page, id_in, page_of
from pullback_service.problems import documented
from pullback_service.routers import api_router
from pullback_service.rows_to_models import filled
from pullback_service.sessions import KnownDatabase, WriteSession
from pullback_service.settings import Settings
from pullback_service.tokens.queries import redeem_code, refuse_ended

router = api_router(prefix=f"{API}/agents", tags=["agents"])


@router.post("/enroll", status_code=201, responses=documented(ForbiddenError, InvalidInputError))
async def enroll_agent(
    enrolment: Enrolment, request: Request, session: WriteSession, settings: KnownSettings, caller: KnownCaller
) -> EnrolmentAnswer:
    """Become an agent; the same name on the same machine is the same agent again.

    With an enrolment code instead of a token the answer holds the agent's own token, this once.
    """
    machine = enrolment.machine
    description = MachineDescription(machine.fingerprint, machine.host, machine.name, machine.facts)
    machine_id = await ensure_machine(session, description)
    agent_id = await queries.enroll(session, machine_id, enrolment.name, enrolment.labels)
    code_id = enrolment_code_of(request)
    secret = None
    if code_id is not None:
        async with seeing_all_projects(session):  # the token that ends may be for another project
            _, secret = await redeem_code(session, code_id, agent_id, agent_name=enrolment.name)
    elif caller.agent_id not in {None, agent_id}:
        raise ForbiddenError(
            f"This token is agent {caller.agent_id}'s, and {enrolment.name!r} on this machine is agent {agent_id}: "
            "enrol that one with its own code (`pullback token enroll`)."
        )
    note(session, subject=f"agent {agent_id}", name=enrolment.name, machine=machine.name)
    return EnrolmentAnswer(
        agent_id=agent_id,
        machine_id=machine_id,
        heartbeat_s=settings.heartbeat_s,
        lease_s=settings.lease_s,
        secret=secret.secret if secret else None,
    )


@router.get("", response_model=Page[AgentSummary], responses=LISTED)
async def list_agents(listing: KnownListing) -> Response:
    """Agents in the order of their enrolment, and what they are doing."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[AgentSummary]:
        rows = await queries.list_agents(session, after_id=id_in(cursor), limit=limit + 1)
        return page_of(rows, limit, item=_summary, key=lambda row: (row.agent.id,))

    return await listing.give(read, AGENTS)


@router.post(
    "/{agent_id}/claim",
    response_model=Claim,
    responses={
        204: {"description": "No work for these labels within the wait"},
        **documented(ForbiddenError, NotFoundError),
    },
)
async def claim_job(
    requested: ClaimRequest,
    request: Request,
    database: KnownDatabase,
    listener: KnownJobListener,
    settings: KnownSettings,
    agent_id: KnownId,
    caller: KnownCaller,
) -> Claim | Response:
    """Ask for a job and wait for one up to `wait_s`. No database connection is held while waiting."""
    if caller.agent_id not in {None, agent_id}:
        raise ForbiddenError(f"This token is agent {caller.agent_id}'s: it cannot claim jobs for agent {agent_id}.")
    deadline = time.monotonic() + requested.wait_s
    with listener.waiter() as waiter:
        while True:
            claimed = await _claim_once(database, settings, caller, AgentId(agent_id), requested, waiter)
            if claimed is not None:
                return claimed
            left_s = deadline - time.monotonic()
            # A caller that has disconnected takes no job: the call goes to the next waiter.
            if (
                left_s <= 0
                or not await listener.wait(waiter, left_s)
                or await request.is_disconnected()
                or listener.closed
            ):
                return Response(status_code=204)


async def _claim_once(
    database: Database, settings: Settings, caller: Caller, agent_id: AgentId, request: ClaimRequest, waiter: Waiter
) -> Claim | None:
    async with database_of(database, caller).writing.begin() as session:
        state = told_by(request.spool, request.refuses)
        work = await queries.find_work(session, agent_id, request.labels, request.kinds, state)
        abilities = waiter.abilities = work.abilities
        if not work.promising:
            return None
        await refuse_ended(session, caller)
        lease = await leases.claim(
            session,
            agent_id,
            MachineId(abilities.machine_id),
            abilities.labels,
            settings.lease_s,
            request.kinds,
        )
        if lease is None:
            return None
        stored = await job_by_id(session, lease.job_id)
        reference = await reference_of(session, stored.job)
        parents = await parents_of(session, [stored.commit.id, *([] if reference is None else [reference.id])])
        project = await session.get_one(Project, stored.job.project_id)
        return Claim(
            job=filled(
                ClaimedJob,
                stored,
                stored.job,
                repository=project.repository,
                commit=CommitSummary.of(stored.commit, parents.get(stored.commit.id, [])),
                requires=with_device(stored.job.requires),
                reference=CommitSummary.of(reference, parents.get(reference.id, [])) if reference is not None else None,
            ),
            attempt=lease.attempt,
            lease_token=lease.token,
            lease_s=settings.lease_s,
            heartbeat_s=settings.heartbeat_s,
        )


def _summary(seen: AgentStatus) -> AgentSummary:
    agent = seen.agent
    spool = None
    if agent.spool_waiting is not None:
        spool = SpoolStatement(waiting=agent.spool_waiting, bytes=agent.spool_bytes or 0)
    progress = dict(seen.progress) if seen.progress is not None else None
    return filled(AgentSummary, seen, agent, job_since=seen.since, progress=progress, spool=spool)
