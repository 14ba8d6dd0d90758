"""What calls send and return. Made by `make api` from the description of the API: change the service, not this file."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue

from pullback_service.client.answers import Answer, Statement


class AgentSummary(Answer):
    """An agent, and what it is doing."""

    id: int
    name: str
    machine_id: int
    machine: str
    labels: dict[str, Any]
    enrolled_at: datetime
    last_seen_at: datetime
    job_id: int | None
    phase: str | None


class AttemptSummary(Answer):
    """One agent's try at a job."""

    number: int
    state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
    agent_id: int
    machine_id: int
    phase: str | None
    progress: dict[str, Any] | None
    log_bytes: int
    failure_kind: Literal["infra", "build", "workload", "timeout", "cancelled"] | None
    failure_message: str | None
    leased_at: datetime
    heartbeat_at: datetime | None
    ended_at: datetime | None


class AuditLine(Answer):
    """A write: who, when, from where, what about. `action` is the operation's name in the API's description."""

    id: int
    at: datetime
    actor: str
    token_id: int | None
    action: str
    subject: str
    project: str | None
    address: str | None
    request_id: str | None
    details: dict[str, Any]


class BranchSummary(Answer):
    """A branch.

    `gaps` counts places where what lies between two commits is not known. `forced_at` and `forced_from` are when it
    last stopped holding its newest commit, and which one that was.
    """

    name: str
    head: str | None
    commits: int
    gaps: int
    updated_at: datetime
    forced_at: datetime | None
    forced_from: str | None


class BranchReceipt(Answer):
    """What a log told."""

    new_commits: int
    branch: BranchSummary


class CaseSummary(Answer):
    """A case, structured and as its label."""

    label: str
    workload: str
    params: dict[str, Any]
    dtype: str | None
    device: str | None


class CommitSummary(Answer):
    """A commit. `ordered_at` is its place in history; `authored_at` is null until somebody tells."""

    sha: str
    parents: list[str]
    branch: str | None
    author: str | None
    title: str | None
    authored_at: datetime | None
    ordered_at: datetime
    position: int | None = None
    """Place among the first parents of the branch that was asked for."""
    after_gap: bool | None = None
    """On that branch: what lies right before it is not known."""
    unknown_parents: list[str] = Field(default_factory=list)
    """Parents nobody told about, in lists of commits."""


class ClaimedJob(Answer):
    """What is to be done."""

    id: int
    project: str
    commit: CommitSummary
    suite: str
    kind: str
    timeout_s: float


class Claim(Answer):
    """A job and the time-limited right to do it: every call about it brings the lease token."""

    job: ClaimedJob
    attempt: int
    lease_token: UUID
    lease_s: float
    heartbeat_s: float


class ClaimRequest(Statement):
    """An agent asks for work, and is willing to wait for it."""

    wait_s: float | None = None
    labels: dict[str, JsonValue] | None = None
    """Left out, those of the enrolment hold."""


class CodeRequest(Statement):
    """An enrolment code to be made."""

    project: str | None = None
    """Left out, the agent takes jobs of all projects."""
    expires_in_minutes: float | None = None


class CommitStatement(Statement):
    """A commit as a caller describes it."""

    sha: str
    parents: list[str] | None = None
    branch: str | None = None
    author: str | None = None
    authored_at: datetime | None = None
    title: str | None = None


class Enrolled(Answer):
    """Who the agent is from now on. `secret` is its own token, where it came with an enrolment code."""

    agent_id: int
    machine_id: int
    heartbeat_s: float
    lease_s: float
    secret: str | None = None


class MachineStatement(Statement):
    """A machine as an agent describes it."""

    fingerprint: str
    name: str
    facts: dict[str, JsonValue] | None = None


class Enrolment(Statement):
    """An agent introduces itself."""

    name: str
    labels: dict[str, JsonValue] | None = None
    machine: MachineStatement


class FailureAnswer(Answer):
    """What became of the job; `lost` when the lease was gone before."""

    answer: Literal["failed", "cancelled", "queued", "lost"]
    job_state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]


class FailureStatement(Statement):
    """Why an attempt ended without a result."""

    lease_token: UUID
    kind: Literal["infra", "build", "workload", "timeout", "cancelled"]
    message: str | None = None
    retryable: bool | None = None


class Health(Answer):
    """All is well; otherwise the answer is a problem with status 503."""

    status: Literal["alive", "ready"]


class Progress(Statement):
    """How far an attempt is."""

    done: int | None = None
    total: int | None = None
    message: str | None = None


class Heartbeat(Statement):
    """An agent is alive and at work."""

    lease_token: UUID
    phase: str | None = None
    progress: Progress | None = None


class HeartbeatAnswer(Answer):
    """`continue`; `cancel`: stop and say so by `fail`; `lost`: somebody else may have the job by now."""

    answer: Literal["continue", "cancel", "lost"]
    heartbeat_s: float


class JobDetail(Answer):
    """A job with its attempts and its accepted result."""

    id: int
    url: str
    project: str
    commit: CommitSummary
    suite: str
    kind: str
    state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
    priority: int
    requires: dict[str, Any]
    timeout_s: float
    attempts: int
    max_attempts: int
    cancel_requested: bool
    failure_kind: Literal["infra", "build", "workload", "timeout", "cancelled"] | None
    failure_message: str | None
    created_at: datetime
    finished_at: datetime | None
    history: list[AttemptSummary]
    report_id: UUID | None


class JobReceipt(Answer):
    """What became of the result of a job."""

    id: UUID
    url: str
    project: str
    commit: str
    status: Literal["accepted", "late"]
    cases: int
    points: int
    failures: int
    format: str
    job_state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]


class JobRequest(Statement):
    """Work to be done. `requires` is matched with the labels of agents: each entry must be among them."""

    project: str
    commit: CommitStatement
    suite: str
    kind: str | None = None
    priority: int | None = None
    requires: dict[str, JsonValue] | None = None
    timeout_s: float | None = None


class JobSummary(Answer):
    """A job."""

    id: int
    url: str
    project: str
    commit: CommitSummary
    suite: str
    kind: str
    state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
    priority: int
    requires: dict[str, Any]
    timeout_s: float
    attempts: int
    max_attempts: int
    cancel_requested: bool
    failure_kind: Literal["infra", "build", "workload", "timeout", "cancelled"] | None
    failure_message: str | None
    created_at: datetime
    finished_at: datetime | None


class LogReceipt(Answer):
    """How long the stored log is."""

    size: int


class LogStatement(Statement):
    """What `git log --first-parent` says of a branch, newest commit first, as far back as one cares to tell."""

    project: str
    branch: str
    commits: list[CommitStatement]


class MachineSummary(Answer):
    """A machine."""

    id: int
    name: str
    fingerprint: str
    facts: dict[str, Any]
    first_seen_at: datetime
    last_seen_at: datetime


class MergeBaseAnswer(Answer):
    """The newest commit that two commits both descend from, null where none is known.

    Behind commits whose parents nobody told (`parents_unknown`) there may be a newer one: then it is not `certain`.
    """

    merge_base: str | None
    certain: bool
    parents_unknown: list[str]


class NewCode(Answer):
    """An enrolment code, shown this once. It enrols one agent."""

    code: str
    expires_at: datetime


class NewToken(Answer):
    """A token that was just made. `token` is the secret, shown this once."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    project: str | None
    agent_id: int | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    token: str


class PageOfAgentSummary(Answer):
    """One page of a list."""

    items: list[AgentSummary]
    next: str | None = None


class PageOfAuditLine(Answer):
    """One page of a list."""

    items: list[AuditLine]
    next: str | None = None


class PageOfBranchSummary(Answer):
    """One page of a list."""

    items: list[BranchSummary]
    next: str | None = None


class PageOfCommitSummary(Answer):
    """One page of a list."""

    items: list[CommitSummary]
    next: str | None = None


class PageOfJobSummary(Answer):
    """One page of a list."""

    items: list[JobSummary]
    next: str | None = None


class PageOfMachineSummary(Answer):
    """One page of a list."""

    items: list[MachineSummary]
    next: str | None = None


class Spread(Answer):
    """Five numbers about per-process values."""

    n: int
    low: float
    q25: float
    median: float
    q75: float
    high: float


class PointSummary(Answer):
    """A series at a commit, as one report measured it.

    `spread` and `process_values` are null for exact metrics; the ratio (natural log, variant/baseline) is null where
    nothing was paired.
    """

    commit: str
    ordered_at: datetime
    report_id: UUID
    value: float
    spread: Spread | None
    process_values: list[float] | None
    baseline: str | None
    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    outcome: str | None
    quality: str
    method: str | None
    program_hash: str | None


class PageOfPointSummary(Answer):
    """One page of a list."""

    items: list[PointSummary]
    next: str | None = None


class ProjectSummary(Answer):
    """A project. The counts follow an upload within moments, when a worker runs."""

    name: str
    reports: int
    commits: int
    points: int
    last_report_at: datetime | None
    created_at: datetime
    public_read: bool


class PageOfProjectSummary(Answer):
    """One page of a list."""

    items: list[ProjectSummary]
    next: str | None = None


class ReportSummary(Answer):
    """A report in a list."""

    id: UUID
    url: str
    project: str
    commit: str
    status: Literal["accepted", "late"]
    cases: int
    points: int
    failures: int
    format: str
    machine: str
    suite: str | None
    quality: Literal["clean", "contaminated"]
    dirty: bool
    job_id: int | None
    attempt: int | None
    body_bytes: int
    started_at: datetime
    duration_s: float | None
    received_at: datetime


class PageOfReportSummary(Answer):
    """One page of a list."""

    items: list[ReportSummary]
    next: str | None = None


class SeriesSummary(Answer):
    """A series: a metric of one variant of a case on one machine."""

    id: int
    project: str
    case: CaseSummary
    variant: str
    kind: str
    metric: str
    unit: str
    direction: Literal["smaller", "bigger"]
    exact: bool
    machine: str
    machine_fingerprint: str


class PageOfSeriesSummary(Answer):
    """One page of a list."""

    items: list[SeriesSummary]
    next: str | None = None


class TokenSummary(Answer):
    """A token, without its secret. `last_used_at` is right to a minute."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    project: str | None
    agent_id: int | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class PageOfTokenSummary(Answer):
    """One page of a list."""

    items: list[TokenSummary]
    next: str | None = None


class PointPreview(Answer):
    """A point that an upload would store."""

    case: str
    variant: str
    metric: str
    value: float
    unit: str
    direction: Literal["smaller", "bigger"]
    method: str | None


class ProjectChange(Statement):
    """What is to be different about a project; what is left out stays."""

    public_read: bool | None = None


class ProjectRequest(Statement):
    """A project to be made."""

    name: str
    public_read: bool | None = None


class ReportDetail(Answer):
    """A report with its document."""

    id: UUID
    url: str
    project: str
    commit: str
    status: Literal["accepted", "late"]
    cases: int
    points: int
    failures: int
    format: str
    machine: str
    suite: str | None
    quality: Literal["clean", "contaminated"]
    dirty: bool
    job_id: int | None
    attempt: int | None
    body_bytes: int
    started_at: datetime
    duration_s: float | None
    received_at: datetime
    document: dict[str, Any]


class TokenRequest(Statement):
    """A token to be made."""

    name: str
    scopes: list[Literal["read", "upload", "agent", "admin"]]
    project: str | None = None
    """Left out, the token is for all projects."""
    expires_in_days: float | None = None
    """Left out, the token ends when it is revoked."""


class UploadReceipt(Answer):
    """The answer to an upload.

    `notes` say what was left out of another tool's file and what looks doubtful about it; a dry run shows the first
    points that would have been stored.
    """

    id: UUID
    url: str
    project: str
    commit: str
    status: Literal["accepted", "late"]
    cases: int
    points: int
    failures: int
    format: str
    notes: list[str] = Field(default_factory=list)
    dry_run: bool = False
    preview: list[PointPreview] | None = None


class Whoami(Answer):
    """Who asks, by what was sent along."""

    name: str
    scopes: list[str]
    projects: list[str] | None
    """Null is all of them."""
