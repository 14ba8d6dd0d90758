"""The agent's main loop: the story of one job after the other."""

import fcntl
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import structlog

from pullback_runners.agent.claims import Claim
from pullback_runners.agent.client import CLAIM_WAIT_S, EnrolmentAnswer, ServiceClient
from pullback_runners.agent.clones import Repositories
from pullback_runners.agent.crash_recovery import put_aside, settle
from pullback_runners.agent.deliveries import failure_delivery, report_delivery
from pullback_runners.agent.disk_space import GIB, lack_of_room
from pullback_runners.agent.errors import JobFailedError, PermanentError, RefusedError, TransientError
from pullback_runners.agent.heartbeat import Heartbeat
from pullback_runners.agent.job_folder import JobFolder
from pullback_runners.agent.job_log import JobLog
from pullback_runners.agent.measurement import measure
from pullback_runners.agent.retries import retries
from pullback_runners.agent.signals import StopAgent, StopSignals
from pullback_runners.agent.spool import Delivery, Spool
from pullback_runners.agent.stored_token import read_own_token, store_token
from pullback_runners.agent.upload import UploadLoop
from pullback_runners.machine import HOST_VARIABLE, cpu_to_pin, describe_machine
from pullback_runners.progress import Progress
from pullback_runners.sandbox.isolation import Isolation, Level, isolated
from pullback_runners.sandbox.proxy import BuildNetwork
from pullback_runners.sandbox.store import remove_tree

if TYPE_CHECKING:
    from pullback_runners.agent.device import AgentDevice, JobDevice

_log = structlog.get_logger()

_STOPS = {"cancel": "cancelled by the service", "lost": "the lease was lost: another agent may have the job"}
"""The reasons to stop a job, by the service's answers to heartbeats."""

_DELIVERY_WAIT_S = 30.0  # before the next job is claimed; a service that is away longer gets its report later
_TROUBLE_CHECK_S = 30.0


@dataclass(frozen=True)
class AgentOptions:
    """Options of an agent, fixed when it starts."""

    server: str
    data: Path
    repository: Path | None = None
    allowed: Sequence[str] = ()
    name: str | None = None
    token: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    isolation: Level = "none"  # of jobs from the agent
    builds: BuildNetwork | None = None  # for builds in a sandbox
    danger_unsandboxed: bool = False  # code of forks runs without a sandbox
    build_user: str | None = None  # as whom jobs are built and measured; None: the agent's own user
    token_file: Path | None = None  # where `token` came from, which a build user must not read
    once: bool = False  # one job, or one look for a job, then end
    least_free_bytes: float = 5 * GIB

    @property
    def device(self) -> str:
        """The device that jobs are measured on, as its label names it."""
        return self.labels.get("device", "cpu")


def run_agent(options: AgentOptions) -> None:
    """Work until told to stop; PermanentError when the service does not want this agent or the data folder is taken."""
    device = _device_named(options.device)
    signals = StopSignals()
    cpus = _keep_off_the_measured_cpu()
    folders = [
        Path(each) for each in (options.repository, *options.allowed) if each is not None and Path(each).is_dir()
    ]
    with (
        _only_agent_on(options.data),
        isolated(
            options.data,
            options.isolation,
            options.build_user,
            builds=options.builds,
            readable=folders,
            secret=[] if options.token_file is None else [options.token_file],
        ) as isolation,
        ServiceClient(options.server, token=options.token, answered=options.data / "answered") as client,
    ):
        agent = _Agent(options, client, signals, cpus, isolation, device)
        try:
            agent.work()
        except StopAgent:
            _log.info("stopped")


class _Agent:
    def __init__(
        self,
        options: AgentOptions,
        client: ServiceClient,
        signals: StopSignals,
        cpus: frozenset[int],
        isolation: Isolation,
        device: "AgentDevice | None" = None,
    ) -> None:
        self._options = options
        self._client = client
        self._signals = signals
        self._cpus = cpus
        self._isolation = isolation
        self._device = device
        self._jobs = options.data / "jobs"
        self._jobs.mkdir(parents=True, exist_ok=True)
        self._spool = Spool(options.data / "spool")
        self._uploads = UploadLoop(client, self._spool)
        self._repositories = Repositories(
            options.data / "mirrors", options.repository, options.allowed, isolation.limits
        )
        # Hardware decides what an agent can measure; a job names what it needs.
        self._labels = {**options.labels, "device": options.device, **isolation.labels()}
        if options.danger_unsandboxed:
            self._labels["danger"] = "unsandboxed"

    def work(self) -> None:
        """Enrol, settle what a predecessor left, then take jobs until told to stop."""
        with self._signals.waiting():
            enrolment = self._enroll()
        _log.info(
            "enrolled",
            agent=enrolment.agent_id,
            server=self._options.server,
            isolation=self._isolation.level,
            builds_as=self._isolation.runs_as,
        )
        if self._options.danger_unsandboxed:
            _log.warning("danger: commits of forks run without a sandbox", remedy="--isolation sandbox")
        self._settle_leftovers()
        self._uploads.start()
        while True:
            with self._signals.waiting():
                self._wait_until_ready(enrolment)
                try:
                    claim = self._claim(enrolment)
                except RefusedError as refusal:
                    if refusal.status != httpx.codes.NOT_FOUND:
                        raise
                    enrolment = self._enroll()  # the service has a new database
                    continue
            if claim is not None:
                self._do(claim)
            if self._options.once:
                return

    def _enroll(self) -> EnrolmentAnswer:
        device = None if self._device is None else self._device.device
        machine = describe_machine(beside=self._options.data, device=device)
        os.environ[HOST_VARIABLE] = machine["host"] or ""  # for the measuring processes, whatever else they are told
        name = self._options.name or str(machine["name"])
        stored = read_own_token(self._options.data)
        if stored is not None:
            self._client.use_token(stored)
        try:
            enrolment = self._enroll_as(name, machine)
        except RefusedError as refusal:
            if stored is None or self._options.token is None or refusal.status != httpx.codes.UNAUTHORIZED:
                raise
            self._client.use_token(self._options.token)  # ours was revoked, and there may be a new code for us
            enrolment = self._enroll_as(name, machine)
        if enrolment.secret is not None:
            store_token(self._options.data, enrolment.secret)
            self._client.use_token(enrolment.secret)
        return enrolment

    def _enroll_as(self, name: str, machine: Mapping[str, Any]) -> EnrolmentAnswer:
        for attempt in retries():
            with attempt:
                enrolment = self._client.enroll(name=name, labels=self._labels, machine=machine)
        return enrolment

    def _settle_leftovers(self) -> None:
        for path in sorted(self._jobs.iterdir()):
            folder = JobFolder(path)
            try:
                delivery = settle(folder, self._isolation.user)
            except Exception as error:  # noqa: BLE001 - whatever a job has made of it must not end every later start
                delivery = put_aside(folder, self._options.data / "aside", error)
            if delivery is None:
                folder.remove()
            else:
                self._spooled(delivery, folder)

    def _trouble(self) -> str | None:
        """The reason to claim no job, or None."""
        lack = lack_of_room(self._options.data, self._spool, least_free_bytes=self._options.least_free_bytes)
        user = self._isolation.user
        if lack is None and user is not None and not user.end_all():
            return f"processes of the build user {user.name} do not end; end them by hand"
        return lack or (None if self._device is None else self._device.trouble())

    def _wait_until_ready(self, enrolment: EnrolmentAnswer) -> None:
        while reason := self._trouble():
            if self._options.once:
                raise PermanentError(reason)
            _log.warning("not claiming jobs", reason=reason)
            # For people who look at the fleet: an agent that says nothing would seem to have gone.
            with suppress(TransientError, RefusedError):
                self._client.decline(enrolment.agent_id, labels=self._labels, waiting=self._spool.held(), reason=reason)
            time.sleep(_TROUBLE_CHECK_S)

    def _claim(self, enrolment: EnrolmentAnswer) -> Claim | None:
        for attempt in retries():
            with attempt:
                claim = self._client.claim(
                    enrolment.agent_id,
                    labels=self._labels,
                    waiting=self._spool.held(),
                    wait_s=CLAIM_WAIT_S,
                )
        return claim

    def _do(self, claim: Claim) -> None:
        """One job: prepare, measure, package, spool; the heartbeat goes on until the service has the outcome."""
        key = str(uuid.uuid4())  # made before the run, so that no retry of any kind can count it twice
        folder = JobFolder.create(self._jobs, claim.lease, key, self._isolation.user)
        _log.info(
            "job",
            id=claim.lease.job_id,
            attempt=claim.lease.attempt,
            commit=claim.job.sha,
            suite=claim.job.suite_as_asked,
        )
        with Heartbeat(self._client, claim.lease, self._spool.held) as heartbeat:
            try:
                delivery = self._measured(claim, folder, key, heartbeat)
            except JobFailedError as failure:
                _log.warning("job failed", id=claim.lease.job_id, kind=failure.kind, reason=str(failure))
                delivery = failure_delivery(claim.lease, failure.kind, str(failure), retryable=failure.retryable)
            except Exception as error:  # noqa: BLE001 - whatever a job makes of it must not end the agent, which others need
                _log.exception("the agent failed at a job", id=claim.lease.job_id)
                message = f"The agent failed at this job ({type(error).__name__}): look at its log."
                delivery = failure_delivery(claim.lease, "infra", message, retryable=True)
            except StopAgent:
                self._deliver(
                    failure_delivery(claim.lease, "infra", "The agent was stopped.", retryable=True), folder, wait_s=3
                )
                raise
            heartbeat.report(Progress("upload", 1, 1, "sending the report"))
            self._deliver(delivery, folder, wait_s=_DELIVERY_WAIT_S)

    def _measured(self, claim: Claim, folder: JobFolder, key: str, heartbeat: Heartbeat) -> Delivery:
        if not (claim.job.is_trusted or self._isolation.level == "sandbox" or self._options.danger_unsandboxed):
            raise JobFailedError(
                "infra",
                "start the agent with --isolation sandbox: commits of forks run in a sandbox (or, on a machine that has nothing to lose, with "
                "--danger-unsandboxed)",
                retryable=True,
            )
        compared = claim.job.reference
        shas = [claim.job.sha, *([] if compared is None else [str(compared["sha"])])]
        repository = self._repositories.with_commits(claim.job.repository, shas)
        with self._held_device() as of_job, JobLog(self._client, claim.lease, folder.log):

            def stops() -> str | None:
                return _STOPS.get(heartbeat.answer)

            report = measure(
                claim,
                repository,
                folder,
                key,
                cache=self._isolation.cache(self._options.data, claim.job.project, trusted=claim.job.is_trusted),
                device=claim.job.device or self._options.device,
                nodes=of_job.nodes() if of_job is not None and self._isolation.level == "sandbox" else (),
                cpus=self._cpus,
                tell=heartbeat.report,
                stops=stops if of_job is None else of_job.watching(stops),
                isolation=self._isolation,
            )
        if of_job is not None:
            report = of_job.marked(report)
        return report_delivery(claim.lease, key, report)

    def _held_device(self) -> "AbstractContextManager[JobDevice | None]":
        return nullcontext() if self._device is None else self._device.held()

    def _deliver(self, delivery: Delivery, folder: JobFolder, *, wait_s: float) -> None:
        spooled = self._spooled(delivery, folder)
        if spooled is not None and not self._uploads.wait_for(spooled, wait_s):
            _log.warning("the service has not accepted it yet; it stays in the spool", file=spooled.name)

    def _spooled(self, delivery: Delivery, folder: JobFolder) -> Path | None:
        """Put a delivery into the spool and remove the folder of its job; None if the disk is full all the same."""
        try:
            try:
                spooled = self._uploads.put(delivery)
            except OSError:
                remove_tree(folder.work)  # the job may have filled the disk
                spooled = self._uploads.put(delivery)
        except OSError as error:
            _log.error("the spool cannot be written", job=folder.path.name, reason=str(error))
            return None  # the folder says at the next start that the job has no result
        folder.remove()
        return spooled


def _device_named(name: str) -> "AgentDevice | None":
    """The device that a label names, None of the CPU; a look at a GPU imports what an agent else does not need."""
    if name == "cpu":
        return None
    from pullback_runners.agent.device import AgentDevice  # noqa: PLC0415

    return AgentDevice.found(name)


@contextmanager
def _only_agent_on(data: Path) -> Iterator[None]:
    """Hold the data folder: two agents in one folder would clean up after each other."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / "agent.lock").open("a")
    except OSError as error:
        raise PermanentError(
            f"the data folder {data} cannot be written ({error.strerror}); give another --data"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PermanentError(f"another agent works in {data}; stop it or give another --data") from error
        yield


def _keep_off_the_measured_cpu() -> frozenset[int]:
    """Move this process to the other CPUs, so that heartbeats do not disturb what they report; returns all CPUs."""
    if not hasattr(os, "sched_getaffinity"):
        return frozenset()
    cpus = frozenset(os.sched_getaffinity(0))
    measured = cpu_to_pin(sorted(cpus))
    if len(cpus) > 1 and measured is not None:
        os.sched_setaffinity(0, cpus - {measured})
    return cpus
