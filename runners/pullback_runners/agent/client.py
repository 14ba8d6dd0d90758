"""The service as the agent sees it: a handful of HTTP calls, every one safe to repeat.

Errors come out in the agent's two kinds: no answer, 408, 425, 429 and 5xx are transient, other refusals permanent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import httpx

from pullback_runners.agent.errors import PermanentError, RefusedError, TransientError
from pullback_runners.progress import Progress
from pullback_runners.suites import narrowed_suite

Seconds = float
HeartbeatAnswer = Literal["continue", "cancel", "lost"]

CLAIM_WAIT_S = 30  # the longest wait the service allows
KINDS = ("run", "compare")
"""The kinds of jobs this agent knows how to do; a service of a newer release keeps others from it."""
_TRANSIENT_STATUSES = frozenset({408, 425, 429})
_COMMIT_FIELDS = ("sha", "parents", "branch", "author", "authored_at", "title")  # those of a report
_LEASE_HEADER = "Pullback-Lease"


@dataclass(frozen=True)
class Enrolment:
    """The service's name for this agent and the rhythm it asks for."""

    agent_id: str
    heartbeat_s: Seconds
    lease_s: Seconds
    secret: str | None


@dataclass(frozen=True)
class Lease:
    """The right to work on one attempt of one job."""

    job_id: str
    attempt: int
    token: str
    heartbeat_s: Seconds

    @property
    def path(self) -> str:
        """Where the service keeps this attempt."""
        return f"/api/v1/jobs/{self.job_id}/attempts/{self.attempt}"


@dataclass(frozen=True)
class Job:
    """What to measure."""

    project: str
    commit: Mapping[str, Any]
    suite: str
    cases: tuple[str, ...]  # globs over case names; none means the whole suite
    timeout_s: Seconds
    reference: Mapping[str, Any] | None = None
    """The commit to compare with; the same one is A/A, which shows the noise of the machine."""

    @property
    def sha(self) -> str:
        """The commit whose engine is measured."""
        return str(self.commit["sha"])


@dataclass(frozen=True)
class Claim:
    """A job and the lease on it."""

    job: Job
    lease: Lease


class ServiceClient:
    """One service; thread-safe, because the loops of an agent share it."""

    def __init__(self, server: str, *, token: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        self.server = server.rstrip("/")
        self._http = httpx.Client(
            base_url=self.server,
            timeout=httpx.Timeout(15, connect=5),
            headers={"User-Agent": "pullback-agent"},
            transport=transport,
        )
        if token is not None:
            self.use_token(token)

    def use_token(self, token: str) -> None:
        """Authenticate every later call with this secret."""
        self._http.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def enroll(self, *, name: str, labels: Mapping[str, str], machine: Mapping[str, Any]) -> Enrolment:
        """Introduce this machine; the same name and fingerprint again is the same agent."""
        answer = self._json("POST", "/api/v1/agents/enroll", {"name": name, "labels": labels, "machine": machine})
        return Enrolment(
            agent_id=str(self._part(answer, "agent_id")),
            heartbeat_s=float(self._part(answer, "heartbeat_s")),
            lease_s=float(self._part(answer, "lease_s")),
            secret=answer.get("secret"),
        )

    def claim(self, agent_id: str, *, labels: Mapping[str, str], wait_s: int = CLAIM_WAIT_S) -> Claim | None:
        """Wait for a job; None when there was none in `wait_s` seconds."""
        response = self._send(
            "POST",
            f"/api/v1/agents/{agent_id}/claim",
            json={"wait_s": wait_s, "labels": labels, "kinds": KINDS},
            timeout=httpx.Timeout(wait_s + 15, connect=5),
        )
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        answer = self._object(response)
        job = self._part(answer, "job")
        suite, globs = narrowed_suite(str(self._part(job, "suite")))
        lease = Lease(
            job_id=str(self._part(job, "id")),
            attempt=int(self._part(answer, "attempt")),
            token=str(self._part(answer, "lease_token")),
            heartbeat_s=float(self._part(answer, "heartbeat_s")),
        )
        return Claim(
            Job(
                project=str(self._part(job, "project")),
                commit=_of_report(self._part(job, "commit")),
                suite=suite,
                cases=tuple(globs),
                timeout_s=float(self._part(job, "timeout_s")),
                reference=_of_report(job["reference"]) if job.get("reference") is not None else None,
            ),
            lease,
        )

    def heartbeat(self, lease: Lease, progress: Progress) -> tuple[HeartbeatAnswer, Seconds]:
        """Renew the lease; the answer carries a cancellation back, and the interval to the next call."""
        try:
            answer = self._json(
                "POST",
                f"{lease.path}/heartbeat",
                {
                    "lease_token": lease.token,
                    "phase": progress.phase,
                    "progress": {"done": progress.done, "total": progress.total, "message": progress.message},
                },
            )
        except RefusedError as refusal:
            if refusal.status in {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT, httpx.codes.GONE}:
                return "lost", lease.heartbeat_s
            raise
        return self._part(answer, "answer"), float(answer.get("heartbeat_s", lease.heartbeat_s))

    def append_log(self, lease: Lease, offset: int, chunk: bytes) -> int:
        """Store log bytes at an offset; returns the offset the service expects next, which may be a rewind."""
        response = self._http_call(
            "PUT",
            f"{lease.path}/log",
            params={"offset": offset},
            content=chunk,
            headers={_LEASE_HEADER: lease.token, "Content-Type": "application/octet-stream"},
        )
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return int(self._part(self._object(response), "expected_offset"))
        self._check(response)
        return int(self._part(self._object(response), "size"))

    def deliver(self, path: str, *, body: bytes, key: str, lease_token: str | None) -> Mapping[str, Any]:
        """Hand over a report or a failure; the key makes a repetition harmless."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        if lease_token is not None:
            headers[_LEASE_HEADER] = lease_token
        response = self._send("POST", path, content=body, headers=headers, timeout=httpx.Timeout(60, connect=5))
        return self._object(response) if response.content else {}

    def _json(self, method: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._object(self._send(method, path, json=body))

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._http_call(method, path, **options)
        self._check(response)
        return response

    def _http_call(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise TransientError(f"{self.server} does not answer {method} {path}: {error!r}") from error

    def _check(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        status = response.status_code
        message = (
            f"{response.request.method} {response.request.url.path} at {self.server} answered {status}: "
            + _detail(response)
        )
        if status in _TRANSIENT_STATUSES or response.is_server_error:
            raise TransientError(message)
        raise RefusedError(status, message)

    def _object(self, response: httpx.Response) -> Mapping[str, Any]:
        try:
            body = response.json()
        except ValueError as error:
            raise PermanentError(
                f"{response.request.url} did not answer with JSON; is it a Pullback service?"
            ) from error
        if not isinstance(body, dict):
            raise PermanentError(f"{response.request.url} did not answer with a JSON object; is it a Pullback service?")
        return body

    def _part(self, answer: Mapping[str, Any], key: str) -> Any:
        try:
            return answer[key]
        except KeyError as error:
            raise PermanentError(
                f"an answer of {self.server} lacks {key!r}; the service and this agent are of different versions"
            ) from error


def _of_report(commit: Mapping[str, Any]) -> Mapping[str, Any]:
    """A commit of the service as a report has it."""
    return {name: commit.get(name) for name in _COMMIT_FIELDS}


def _detail(response: httpx.Response) -> str:
    """The sentence of a problem document, or the start of whatever came instead."""
    try:
        problem = response.json()
    except ValueError:
        return response.text[:200] or response.reason_phrase
    if isinstance(problem, dict):
        return str(problem.get("detail") or problem.get("title") or problem)[:500]
    return str(problem)[:200]
