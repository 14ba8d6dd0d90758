"""The service as the agent sees it: a handful of calls, every one safe to repeat.

Errors come out in the agent's two kinds: no answer, 408, 425, 429 and 5xx are transient, other refusals permanent. The
client repeats nothing by itself here: each loop of the agent has its own patience.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from uuid import UUID

from pullback_runners.agent.claims import Claim, Job, Lease, Seconds
from pullback_runners.agent.errors import PermanentError, RefusedError, TransientError
from pullback_runners.agent.storable_text import storable_text
from pullback_runners.progress import Progress
from pullback_runners.suites import narrowed_suite
from pullback_service.client import Client, ClientError, ProblemError, models

if TYPE_CHECKING:
    import httpx

EnrolmentAnswer = models.EnrolmentAnswer
SpoolStatement = models.SpoolStatement
HeartbeatAnswer = Literal["continue", "cancel", "lost"]

CLAIM_WAIT_S = 30  # the longest wait the service allows
KINDS = ("run", "compare")
"""The kinds of jobs this agent knows how to do; a service of a newer release keeps others from it."""
_TIMEOUT_S = 60.0  # a report is large, and a line may be slow
_COMMIT_FIELDS = {"sha", "parents", "branch", "author", "authored_at", "title"}  # those of a report
_LEASE_HEADER = "Pullback-Lease"
_LEASE_GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.GONE})


class ServiceClient:
    """One service; thread-safe, because the loops of an agent share it. `answered` is touched whenever the service did what it was asked."""

    def __init__(
        self,
        server: str,
        *,
        token: str | None = None,
        transport: "httpx.BaseTransport | None" = None,
        answered: Path | None = None,
    ) -> None:
        self._answered = answered
        self._client = Client(server, token=token, timeout_s=_TIMEOUT_S, attempts=1, transport=transport)
        self.server = self._client.server

    def use_token(self, token: str) -> None:
        """Authenticate every later call with this secret."""
        self._client.use_token(token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def enroll(self, *, name: str, labels: Mapping[str, str], machine: Mapping[str, Any]) -> EnrolmentAnswer:
        """Introduce this machine; the same name and fingerprint again is the same agent."""
        enrolment = models.Enrolment.model_validate({"name": name, "labels": labels, "machine": machine})
        with self._translated("enrolling"):
            return self._client.enroll_agent(enrolment)

    def claim(
        self,
        agent_id: int,
        *,
        labels: Mapping[str, str],
        waiting: SpoolStatement | None = None,
        wait_s: int = CLAIM_WAIT_S,
        kinds: Sequence[str] = KINDS,
    ) -> Claim | None:
        """Wait for a job; None when there was none in `wait_s` seconds."""
        request = models.ClaimRequest(wait_s=wait_s, labels=dict(labels), kinds=list(kinds), spool=waiting)
        with self._translated("claiming"):
            claim = self._client.claim_job(agent_id, request)
        if claim is None:
            return None
        job = claim.job
        suite, globs = narrowed_suite(job.suite)
        return Claim(
            Job(
                project=job.project,
                commit=_of_report(job.commit),
                suite=suite,
                cases=(*globs, *(job.cases or ())),
                variants=tuple(job.variants or ()),
                timeout_s=job.timeout_s,
                effort=job.effort or 1,
                reference=_of_report(job.reference) if job.reference is not None else None,
                device=job.requires.get("device"),
                repository=job.repository,
                is_trusted=job.trust == "trusted",
            ),
            Lease(
                job_id=str(job.id), attempt=claim.attempt, token=str(claim.lease_token), heartbeat_s=claim.heartbeat_s
            ),
        )

    def decline(self, agent_id: int, *, labels: Mapping[str, str], waiting: SpoolStatement, reason: str) -> None:
        """Say that this agent is here and why it takes no job; it is given none."""
        request = models.ClaimRequest(wait_s=0, labels=dict(labels), kinds=[], spool=waiting, refuses=reason)
        with self._translated("declining"):
            self._client.claim_job(agent_id, request)

    def heartbeat(
        self, lease: Lease, progress: Progress, waiting: SpoolStatement | None = None
    ) -> tuple[HeartbeatAnswer, Seconds]:
        """Renew the lease; the answer carries a cancellation back, and the interval to the next call."""
        statement = models.Heartbeat(
            lease_token=UUID(lease.token),
            phase=progress.phase,
            progress=models.Progress(done=progress.done, total=progress.total, message=storable_text(progress.message)),
            spool=waiting,
        )
        try:
            with self._translated("a heartbeat"):
                answer = self._client.heartbeat(int(lease.job_id), lease.attempt, statement)
        except RefusedError as refusal:
            if refusal.status in _LEASE_GONE:
                return "lost", lease.heartbeat_s
            raise
        return answer.answer, answer.heartbeat_s

    def append_log(self, lease: Lease, offset: int, chunk: bytes) -> int:
        """Store log bytes at an offset; returns the offset the service expects next, which may be a rewind."""
        with self._translated("a piece of log"):
            try:
                receipt = self._client.append_log(
                    int(lease.job_id), lease.attempt, chunk, offset=offset, lease=UUID(lease.token)
                )
            except ProblemError as problem:
                if problem.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                    raise
                return int(problem.members["expected_offset"])
        return receipt.size

    def deliver(self, path: str, *, body: bytes, key: str, lease_token: str | None) -> Mapping[str, Any]:
        """Hand over a report or a failure; the key makes a repetition harmless."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, _LEASE_HEADER: lease_token}
        with self._translated(path):
            return self._client.deliver(path, body, headers=headers)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Errors of the client as the agent's own."""
        try:
            yield
            if self._answered is not None:
                with suppress(OSError):  # the disk may be full
                    self._answered.touch()
        except ProblemError as problem:
            message = f"{self.server} answered {problem.status} to {what}: {problem}"
            if problem.is_transient:
                raise TransientError(message, retry_after_s=problem.retry_after_s) from problem
            raise RefusedError(problem.status, message) from problem
        except ClientError as error:
            raise (TransientError if error.is_transient else PermanentError)(str(error)) from error


def _of_report(commit: models.CommitSummary) -> Mapping[str, Any]:
    """A commit of the service as a report has it."""
    return commit.model_dump(mode="json", include=_COMMIT_FIELDS)
