"""Queries of the fleet page: machines, agents and jobs as lines."""

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.fleet.view import (
    AgentLine,
    Fleet,
    JobLine,
    MachineLine,
    NoiseLine,
    Progress,
    failure_in_words,
    hardware_in_words,
    noise_line,
    progress_of,
    quality_of,
    spool_in_words,
    state_of,
)
from pullback_dashboards.history import case_order
from pullback_service import statements
from pullback_service.agents.queries import AgentStatus, FleetCounts, count_fleet, list_agents
from pullback_service.ids import MachineId
from pullback_service.jobs.forecast import labels_in_words
from pullback_service.jobs.queries import ACTIVE, JobChoice, StoredJob, list_jobs, newest_attempts
from pullback_service.machines.noise_cache import NoiseMemory, WindowNoise
from pullback_service.machines.queries import list_machines, machine_names
from pullback_service.models.jobs import Attempt
from pullback_service.models.machines import Machine
from pullback_service.reports.queries import newest_of_machines
from pullback_service.rows_to_models import filled

MOST_MACHINES = 200
_MOST_AGENTS = 500
_MOST_RUNNING = 100
NOISE_DAYS = 90
RESULTS = 12
"""The number of its last uploads that say how well a machine does."""


async def fleet_now(session: AsyncSession) -> Fleet:
    """Agents in numbers, what runs and how much waits."""
    return await fleet_of(session, await statements.answer(session, count_fleet()))


async def fleet_of(session: AsyncSession, counts: FleetCounts) -> Fleet:
    """The same where it is counted already."""
    running: Sequence[StoredJob] = ()
    if counts.active:
        running = await list_jobs(session, before_id=None, limit=_MOST_RUNNING, choice=JobChoice(states=ACTIVE))
    lines = await job_lines(session, sorted(running, key=lambda stored: stored.job.id))
    return Fleet(counts.agents, counts.present, counts.last_seen_at, lines, counts.queued)


async def job_lines(session: AsyncSession, jobs: Sequence[StoredJob]) -> tuple[JobLine, ...]:
    """Jobs with where their last attempts are, or the machine they wait for."""
    begun = [stored.job.id for stored in jobs if stored.job.attempts]
    newest = await newest_attempts(session, begun) if begun else {}
    wanted = {attempt.machine_id for attempt in newest.values()} | {stored.job.machine_id for stored in jobs}
    names = await machine_names(session, [MachineId(each) for each in wanted if each is not None])
    return tuple(_job_line(stored, newest.get(stored.job.id), names) for stored in jobs)


def _job_line(stored: StoredJob, newest: Attempt | None, names: Mapping[MachineId, str]) -> JobLine:
    job, commit = stored.job, stored.commit
    failure = job.failure_message or (newest.failure_message if newest and job.state == "failed" else None)
    kind = job.failure_kind or (newest.failure_kind if newest else None)
    active = job.state in ACTIVE
    machine_id = newest.machine_id if newest and job.state != "queued" else job.machine_id
    return filled(
        JobLine,
        stored,
        job,
        commit,
        machine_id=machine_id,
        phase=newest.phase if newest and active else None,
        progress=progress_of(newest.progress) if newest else None,
        failure=failure_in_words(kind, failure) if failure else None,
        machine=names.get(MachineId(machine_id)) if machine_id is not None else None,
        since=newest.leased_at if newest else None,
        ended_at=newest.ended_at if newest else None,
        requires=labels_in_words(job.requires),
        cancel_requested=job.cancel_requested_at is not None,
    )


def agent_line(seen: AgentStatus) -> AgentLine:
    """An agent as pages show it. One that is at work speaks by its heartbeats and counts as present."""
    agent = seen.agent
    return filled(
        AgentLine,
        seen,
        agent,
        present=seen.present or seen.job_id is not None,
        progress=_progress(seen),
        spool=spool_in_words(agent.spool_waiting, agent.spool_bytes),
        labels=labels_in_words(agent.labels),
    )


def _progress(seen: AgentStatus) -> Progress | None:
    return progress_of(seen.progress) if seen.job_id is not None else None


async def machine_lines(session: AsyncSession, memory: NoiseMemory) -> tuple[MachineLine, ...]:
    """Machines in the order of their names: those with agents, and behind them those that only sent reports."""
    machines = await list_machines(session, after_id=None, limit=MOST_MACHINES)
    agents: dict[int, list[AgentLine]] = {}
    for seen in await list_agents(session, after_id=None, limit=_MOST_AGENTS):
        line = agent_line(seen)
        agents.setdefault(line.machine_id, []).append(line)
    ids = [MachineId(machine.id) for machine in machines]
    noise = await memory.of(session, ids, days=NOISE_DAYS)
    results = await newest_of_machines(session, ids, limit=RESULTS)
    lines = [
        machine_line(
            machine,
            agents.get(id_, ()),
            noise[id_],
            [(each.report.quality, each.report.failures) for each in results.get(id_, ())],
        )
        for id_, machine in zip(ids, machines, strict=True)
    ]
    return tuple(sorted(lines, key=lambda line: (not line.agents, case_order(line.name), line.id)))


def machine_line(
    machine: Machine, agents: Sequence[AgentLine], noise: WindowNoise, results: Sequence[tuple[str, int]]
) -> MachineLine:
    """A machine out of what was asked of it."""
    return MachineLine(
        id=machine.id,
        name=machine.name,
        hardware=hardware_in_words(machine.facts),
        href=links.machine(machine.id),
        state=state_of(agents),
        agents=tuple(agents),
        noise=noise_of_machine(noise),
        quality=quality_of(results),
        accepts_untrusted=machine.accepts == "untrusted",
        last_seen_at=max([machine.last_seen_at, *(agent.last_seen_at for agent in agents)]),
    )


def noise_of_machine(noise: WindowNoise) -> NoiseLine:
    """The noise of a machine in one metric."""
    figures = noise.noise.all
    return noise_line(
        figures.floor,
        provisional=figures.provisional,
        comparisons=figures.comparisons,
        false_alarms=figures.false_alarms,
        history=[(day, each.floor, each.provisional) for day, each in noise.noise.history],
    )
