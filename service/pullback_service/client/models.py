"""Models of requests and answers. Made by `make api` from the description of the API: change the service, not this file."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field, JsonValue

from pullback_service.client.answers import Answer, PageOf, Statement

Event = Literal["confirmed", "culprit", "grown", "resolved", "withdrawn", "likely", "wrong_gradient", "missing"]
Outcome = Literal[
    "failed",
    "slower",
    "more",
    "likely_slower",
    "ambiguous",
    "likely_faster",
    "faster",
    "less",
    "same",
    "equal",
    "not_comparable",
]


class AccuracyPart(Answer):
    """Announced incidents of one `part`: `all`, or those of an `evidence` (`confirmed` or `likely`), a `machine` or a `workload`."""

    part: Literal["all", "evidence", "machine", "workload"]
    name: str
    """The evidence, machine or workload; empty of `all`."""
    said: int
    """Incidents that were confirmed or likely, improvements left out."""
    right: int
    """Those that people called real, expected or fixed."""
    noise: int
    """Those that people called noise."""
    withdrawn: int
    """Those whose announcement was withdrawn."""
    precision: float | None
    """The share of right ones among those that people judged; null while nobody judged."""
    interval: list[Any] | None
    """Its 95 % interval."""


class NoticedStep(Answer):
    """The smallest step that would be noticed within three commits in the series of a machine and metric, as natural log."""

    machine: str
    metric: str
    series: int
    half: float
    """In half of the series."""
    most: float
    """In 90 % of the series."""


class Accuracy(Answer):
    """The accuracy of incidents of a project, as people judged them, and the smallest steps that would be noticed."""

    project: str
    whole: AccuracyPart
    parts: list[AccuracyPart]
    noticed: list[NoticedStep]


class SpoolStatement(Statement):
    """Results that an agent has measured and not yet delivered."""

    waiting: int
    """Reports and failures the service has not taken yet."""
    bytes: int
    """Size of all of them together."""


class AgentSummary(Answer):
    """An agent, and what it is doing."""

    id: int
    name: str
    machine_id: int
    machine: str
    labels: dict[str, Any]
    enrolled_at: datetime
    last_seen_at: datetime
    present: bool
    """True if it was heard of in the last five minutes."""
    job_id: int | None
    job_since: datetime | None
    """The time at which it was given the job."""
    phase: str | None
    progress: dict[str, Any] | None
    spool: SpoolStatement | None
    """Results it has not delivered yet; null if it never reported any."""
    refuses: str | None
    """The agent's own reason for taking no jobs at present."""


class AssigneeRequest(Statement):
    """The person in charge of an incident; null for nobody."""

    assignee: str | None


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


class BackfilledCommit(Answer):
    """A commit that gets a job, or would get one (`job_id` is null)."""

    commit: str
    title: str | None
    position: int
    """Place among the first parents of the branch, from 0."""
    job_id: int | None


class BackfillAnswer(Answer):
    """The commits that a backfill found missing and the jobs it made, in the order in which commits were chosen.

    Of `looked_at` commits, `missing` had neither a result nor a job; `under_way` jobs of this backfill waited or ran
    already.
    """

    project: str
    branch: str
    suite: str
    dry_run: bool
    looked_at: int
    missing: int
    under_way: int
    jobs: list[BackfilledCommit]


class BackfillPolicy(Statement):
    """The policy of a backfill: which commits of a branch are to be measured, and how many at a time.

    `newest` goes backwards from the newest commit; `bisect` takes the middle of the widest gap first.
    """

    branch: str
    suite: str
    requires: dict[str, str | float | bool | list[str | float | bool | None] | None] | None = None
    """Labels of the agents, as in jobs: without `device`, those of the CPU."""
    order: Literal["newest", "bisect"] | None = None
    limit: int | None = None
    """Limit on the jobs of this backfill that wait or run at once; a repeated request only fills up to it.

    Commits newer than all that were measured or asked for come besides, with a priority higher by 100.
    """
    depth: int | None = None
    """Number of commits of the branch to consider, from the newest one backwards."""
    priority: int | None = None
    """Higher ones are given out first, among equals older ones; above 0 only before jobs of the same project."""
    timeout_s: float | None = None
    """Time limit in seconds, after which the work is ended."""


class BackfillRequest(BackfillPolicy):
    """A backfill that somebody asks for."""

    project: str
    dry_run: bool | None = None
    """Make no job; answer which would be made."""


class BisectionSummary(Answer):
    """The bisection of an incident.

    `undecided`: `culprit` is not confirmed, or is the last of several possible commits.
    """

    state: Literal["running", "found", "undecided"]
    culprit: str | None
    share: float | None
    """The share of the change that the commit explains, compared with its parent; 1 is all of it."""
    job_id: int | None
    """Its newest job."""
    jobs: int
    started_at: datetime


class BoardChange(Statement):
    """Another name for a board."""

    name: str


class ChartSummary(Answer):
    """A pinned chart. `place` is its place on the board, from 1."""

    id: int
    kind: Literal["explore", "workload", "compare"]
    project: str
    workload: str | None
    query: dict[str, list[str]]
    title: str | None
    place: int


class BoardSummary(Answer):
    """A board. `own`: it is the caller's; `may_change`: the caller may pin to it, and change it."""

    id: UUID
    name: str
    project: str | None
    """The project of the board; null for a personal one."""
    owner: str
    """The token or user that made it."""
    own: bool
    may_change: bool
    charts: int
    created_at: datetime
    changed_at: datetime


class BoardDetail(BoardSummary):
    """A board with its charts, in their order. Those of projects the caller may not read are not there."""

    pinned: list[ChartSummary]


class BoardRequest(Statement):
    """A board to be made: one's own, or with `project` that project's."""

    name: str
    project: str | None = None
    """Left out, it is the caller's own."""


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
    """The effect of a log on a branch."""

    new_commits: int
    completed_commits: int = 0
    """Known before, as from an upload, without parents, author, title or time."""
    branch: BranchSummary | None
    """The branch as it is now; null where none was named."""


class CaseSummary(Answer):
    """A case, structured and as its label."""

    label: str
    workload: str
    params: dict[str, Any]
    dtype: str | None
    device: str | None


class ChannelRequest(Statement):
    """A channel to be made."""

    project: str
    name: str
    kind: Literal["webhook", "slack", "email"]
    url: str | None = None
    """The https address of a webhook or of an incoming webhook of Slack."""
    to: list[str] | None = None
    """Recipients of e-mails."""
    events: list[Event] | None = None
    """Left out: all but `likely`, and that too while no agent can measure the project."""


class ChannelSummary(Answer):
    """A channel, without its secrets: of a webhook's address the host is shown.

    One that is `failing` is tried again, and one that failed for a day is `off`: a test that arrives switches it on.
    """

    id: int
    project: str
    name: str
    kind: Literal["webhook", "slack", "email"]
    target: str
    events: list[Event] | None
    """Null: the usual ones."""
    state: Literal["on", "failing", "off"]
    created_at: datetime
    created_by: str
    failing_since: datetime | None
    switched_off_at: datetime | None
    switched_off_because: str | None
    last_sent_at: datetime | None
    waiting: int
    """Messages that are not sent yet."""


class ChartChange(Statement):
    """Changes to a pinned chart; what is left out stays, and a title of `null` is none."""

    title: str | None = None
    place: int | None = None
    """From 1; the charts from there on move back."""


class ChartRequest(Statement):
    """A chart to pin: a page of the dashboard, by its kind and the names and values in its address."""

    kind: Literal["explore", "workload", "compare"]
    project: str
    workload: str | None = None
    """The name of the workload, for the kind `workload`."""
    query: dict[str, Any] | None = None
    title: str | None = None
    """If left out, the dashboard generates one."""


class CheckedCommit(Answer):
    """The commit that is checked, or the one it is compared with. `branch` is the one that was named for it."""

    sha: str
    title: str | None
    author: str | None
    authored_at: datetime | None
    branch: str | None
    series: int
    """Number of series with results."""


class CheckCounts(Answer):
    """Counts of findings of each kind, those that are left out of the list included, and of series."""

    wrong_gradient: int
    regression: int
    missing: int
    likely: int
    ambiguous: int
    budget: int = 0
    better: int
    likely_better: int
    unchanged: int
    compared: int
    """Series that both commits have and that compare, or that an upload compares."""


class ElsewhereSummary(Answer):
    """The same case, variant and metric on another machine, with another outcome."""

    machine: str
    outcome: Outcome
    evidence: Literal["paired", "exact", "ratios", "values"] | None


class CheckFinding(Answer):
    """A change of a series, or a failed or missing variant of a case.

    `missing` is a variant of a case that the base has and the head has not: it failed there, or the same suite ran on
    the same device of the machine without it. `budget` is over the budget of a rule and was not at the base.
    `ambiguous` was counted or measured in turns and stayed undecided. Outcome, evidence, ratio (natural log head/base),
    interval and reason are those of `GET /comparisons`. Without a metric it is about all of them, without a variant
    about all variants of the case.
    """

    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    kind: Literal["wrong-gradient", "regression", "missing", "likely", "ambiguous", "budget", "better", "likely-better"]
    case: str
    workload: str
    variant: str | None
    variant_kind: str | None
    machine: str
    device: str | None = None
    metric: str | None
    unit: str | None
    direction: Literal["smaller", "bigger"] | None
    outcome: Outcome | None
    evidence: Literal["paired", "exact", "ratios", "values"] | None
    base: float | None
    head: float | None
    provisional: bool
    reason: str | None
    elsewhere: list[ElsewhereSummary]


class CheckJob(Answer):
    """A job that measures both commits in turns."""

    id: int
    url: str
    suite: str
    cases: list[str]
    """The cases to which its suite is narrowed; none: all of it."""
    variants: list[str]
    device: str = "cpu"
    state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
    awaits_approval: bool
    failure_message: str | None


class CheckAnswer(Answer):
    """A commit against its merge base.

    `base` is null where that is not known. `lacks` says why there are no or too few data for a verdict, with the
    remedy; it is empty if there are enough. `not_in_turns` counts series that agents could measure in turns and nobody
    has; a job of the kind `compare` of `suite`, `head` against `base`, would do that, and `wants_job` says that an
    agent can do it and nobody has asked for it: on the devices of `wants_job_on`, each of which takes a job of its own.
    """

    project: str
    against: str
    """The base as named in the request, or the default branch."""
    head: CheckedCommit
    base: CheckedCommit | None
    equal_code: bool
    """The measured files of both commits are equal: no difference is due to the commit."""
    counts: CheckCounts
    findings: list[CheckFinding]
    """The gravest first, 500 at most."""
    lacks: list[str]
    not_in_turns: int
    can_measure: bool
    """An agent is available that can measure commits of this project."""
    suite: str
    wants_job: bool
    wants_job_on: list[str] = Field(default_factory=list)
    jobs: list[CheckJob]
    """Jobs that compare the two, newest first."""
    notes: list[str]


class ChoreStatus(Answer):
    """Chores of one kind. Ages are in seconds, of the oldest that waits or runs and of the newest that failed."""

    task: str
    waiting: int
    waiting_s: float | None
    running: int
    running_s: float | None
    running_chore: int | None
    """The one that runs the longest, by its number in the worker's log."""
    failed: int
    """Number within the last seven days."""
    failed_s: float | None
    failed_chore: int | None


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
    """Place among the first parents of the requested branch."""
    after_gap: bool | None = None
    """On that branch: the commit before it is not known."""
    unknown_parents: list[str] = Field(default_factory=list)
    """Parents that no upload or log has named, in lists of commits."""


class ClaimedJob(Answer):
    """The job that an agent claimed."""

    id: int
    project: str
    repository: str | None = None
    """The repository that the commit is fetched from; null: from the clone that the agent was given."""
    commit: CommitSummary
    suite: str
    cases: list[str] = Field(default_factory=list)
    """Names of cases, or globs over them, that narrow the suite further."""
    variants: list[str] = Field(default_factory=list)
    """Variants to measure; none: those that the project measures."""
    kind: str
    requires: dict[str, Any] = Field(default_factory=dict)
    """Labels that the job requires of an agent. `device`, always there, is where to measure."""
    timeout_s: float
    effort: int = 1
    """For the kind `compare`: multiple of the usual duration."""
    reference: CommitSummary | None = None
    """The commit to compare with, for the kind `compare`."""
    trust: Literal["trusted", "untrusted"] = "trusted"
    """Whose code it runs; an agent runs that of forks (`untrusted`) in a sandbox alone."""


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
    labels: dict[str, str | float | bool | list[str | float | bool | None] | None] | None = None
    """Default: those of the enrolment."""
    kinds: list[str] | None = None
    """Kinds of jobs the agent knows how to do; it is given no others."""
    spool: SpoolStatement | None = None
    refuses: str | None = None
    """The reason, for people, why the agent takes no job at present; it gets none."""


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


class ComparedCommit(Answer):
    """One of the two commits.

    `branch` is the one that was named for it, `series` how many it has of those compared. Where two machines are
    compared with each other, `machine` is the one whose results these are.
    """

    sha: str
    title: str | None
    author: str | None
    authored_at: datetime | None
    ordered_at: datetime
    branch: str | None
    series: int
    machine: str | None
    machine_fingerprint: str | None


class SpanSummary(Answer):
    """The extent of claims: the mean of their log ratios, whose factor is the geometric mean, the smallest and the largest.

    Changes from and to zero are counted and have no ratio.
    """

    count: int
    mean: float | None
    smallest: float | None
    largest: float | None


class ComparedMetric(Answer):
    """One metric over all compared series. Metrics have no common mean: seconds and bytes do not add up."""

    metric: str
    outcomes: dict[str, int]
    worse: SpanSummary
    better: SpanSummary


class Spread(Answer):
    """Five numbers about per-process values."""

    n: int
    low: float
    q25: float
    median: float
    q75: float
    high: float


class MeasuredSummary(Answer):
    """The measured code behind a number; null for facts that its reports do not state.

    Where two differ in text or harness, so do levels.
    """

    workload: str | None
    """Digest of the workload's text."""
    subject: str | None
    """Digest of the files that make two commits differ."""
    harness: str | None
    """Release of the harness."""


class ComparedSide(Answer):
    """A series at one of the commits, its reports pooled, with its ratio to the baseline (natural log) at that commit."""

    log_ratio: float | None
    low: float | None
    high: float | None
    value: float
    spread: Spread | None
    baseline: str | None
    quality: str
    dirty: bool
    program_hash: str | None
    measured: MeasuredSummary
    report_ids: list[UUID]


class ComparedSeries(Answer):
    """A series at two commits.

    `evidence` says how they were compared: `paired` in the same groups, as an upload states it; `exact` by counts; by
    the `ratios` of both to one baseline or by their `values`, measured at different times. Only the first two make a
    claim; the others are `likely_slower` or `likely_faster` at most. `kind` is the same with `unpaired` for the last
    two. The ratio is natural-log candidate/reference, null from or to zero; from `ratios` it is the change of the ratio
    to the baseline. `threshold` is the least ratio in size that could have been claimed, or called likely,
    `provisional` that it rests on a floor nobody has measured, and `significance` how many of those the ratio is.
    `reason` says why there is no claim.
    """

    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    case: CaseSummary
    variant: str
    variant_kind: str | None
    metric: str
    unit: str | None
    direction: Literal["smaller", "bigger"]
    exact: bool
    machine: str
    machine_fingerprint: str
    series_id: int | None
    outcome: Outcome
    evidence: Literal["paired", "exact", "ratios", "values"] | None
    kind: Literal["paired", "exact", "unpaired"] | None
    threshold: float | None
    significance: float | None
    reason: str | None
    provisional: bool
    same_program: bool | None
    """True if both ran the same program; then time differs by the machine."""
    equal_code: bool
    """The measured files of both commits are equal: nothing is claimed."""
    reference: ComparedSide | None
    candidate: ComparedSide | None


class ComparisonSummary(Answer):
    """All series that were chosen, whichever page and outcomes are shown."""

    series: int
    worse: int
    """Slower, more where smaller is better, less where bigger is, and failed."""
    likely_worse: int
    likely_better: int
    better: int
    unchanged: int
    ambiguous: int
    not_comparable: int
    failed: int
    metrics: list[ComparedMetric]


class ComparisonPage(Answer):
    """Two commits, or two machines, worst series first.

    `notes` say what an answer rests on that is not what was asked for word for word.
    """

    items: list[ComparedSeries]
    next: str | None = None
    reference: ComparedCommit
    candidate: ComparedCommit
    summary: ComparisonSummary
    notes: list[str]


class DayNoise(Answer):
    """The noise of one day, by the clock of the service in UTC."""

    floor: float
    provisional: bool
    groups: int
    comparisons: int
    false_alarms: int
    last_at: datetime | None
    day: str


class DeliverySummary(Answer):
    """A message to a channel.

    What is `digested` went with the digest of that id; `answer` is that to the last attempt.
    """

    id: UUID
    channel_id: int
    event: str
    """`digest` for several notifications."""
    key: str | None
    title: str | None
    state: Literal["waiting", "sent", "failed", "digested"]
    created_at: datetime
    attempts: int
    attempted_at: datetime | None
    sent_at: datetime | None
    answer: str | None
    digest_id: UUID | None


class MachineStatement(Statement):
    """A machine as an agent describes it."""

    host: str | None = None
    """Id of the computer, unique among equal computers."""
    fingerprint: str
    """The class: equal computers share it."""
    name: str
    facts: dict[str, JsonValue] | None = None


class Enrolment(Statement):
    """An agent introduces itself."""

    name: str
    labels: dict[str, str | float | bool | list[str | float | bool | None] | None] | None = None
    """Properties that jobs can require. `device` is where the agent measures: the CPU, if left out."""
    machine: MachineStatement


class EnrolmentAnswer(Answer):
    """The agent that was enrolled. `secret` is its own token, where it came with an enrolment code."""

    agent_id: int
    machine_id: int
    heartbeat_s: float
    lease_s: float
    secret: str | None = None


class FacetValue(Answer):
    """One value of a dimension, and how many series choosing it would leave."""

    value: str
    series: int


class FacetSummary(Answer):
    """A dimension: its values under the present choice, those of most series first.

    `values_in_all` says how many there are, of which the first 100 are listed. A parameter is the dimension
    `param.NAME`.
    """

    dimension: str
    values: list[FacetValue]
    values_in_all: int


class FacetsSummary(Answer):
    """Counts of the series of a choice, and of the values that narrow it further.

    The counts of a dimension leave its own choice out: they say what choosing another of its values would give.
    """

    series: int
    facets: list[FacetSummary]


class FactsChange(Answer):
    """Facts that were told differently than before; what is missing on one side was not told there."""

    id: int
    at: datetime
    before: dict[str, Any]
    after: dict[str, Any]


class FailureAnswer(Answer):
    """The state of the job afterwards; `lost` when the lease was gone before, `done` when an earlier attempt sent its result late."""

    answer: Literal["done", "failed", "cancelled", "queued", "lost"]
    job_state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]


class FailureStatement(Statement):
    """The reason why an attempt ended without a result."""

    lease_token: UUID
    kind: Literal["infra", "build", "workload", "timeout", "cancelled"]
    message: str | None = None
    retryable: bool | None = None
    agent_ended: bool | None = None
    """The agent was killed while it worked on this: such a job is given to two agents, and no more."""


class ForeseenIncident(Answer):
    """An incident of the last 90 days: if it was told, and if it would have been by other rules.

    One that only a budget of these rules would have made has no id.
    """

    id: int | None = None
    url: str | None = None
    sentence: str
    told: bool
    would_be_told: bool


class Health(Answer):
    """All is well; otherwise the answer is a problem with status 503."""

    status: Literal["alive", "ready"]


class Progress(Statement):
    """The progress of an attempt."""

    done: int | None = None
    total: int | None = None
    message: str | None = None


class Heartbeat(Statement):
    """An agent is alive and at work."""

    lease_token: UUID
    phase: str | None = None
    progress: Progress | None = None
    spool: SpoolStatement | None = None


class HeartbeatAnswer(Answer):
    """`continue`; `cancel`: stop and say so by `fail`; `lost`: somebody else may have the job by now."""

    answer: Literal["continue", "cancel", "lost"]
    heartbeat_s: float


class IncidentChange(Answer):
    """A change of one series; or of a case or variant that gave no measurement, without a metric.

    `evidence`: `exact` or `paired` from uploads, `levels` from the detector in later uploads, `budget` for a value over
    the budget of a rule, `absence` if reports of its suite no longer have it, `anchor` from comparisons with the
    anchor, else `failure`. The ratio is the natural log of the value after over the value before.
    """

    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    case: str
    workload: str
    device: str
    machine: str
    variant: str | None
    metric: str | None
    unit: str | None
    direction: str | None
    series_id: int | None
    kind: Literal["step", "unsteady", "wrong_gradient", "failed", "missing"]
    worse: bool | None
    evidence: Literal["exact", "paired", "levels", "failure", "budget", "absence", "anchor"]
    standing: Literal["claimed", "suspected", "borne_out", "ambiguous", "refuted"]
    reference: str
    commit: str
    ended: str | None
    before: float | None
    after: float | None
    message: str | None
    detector: str | None
    """Name and version of the detector that found it."""


class IncidentCommit(Answer):
    """A commit of an incident."""

    sha: str
    title: str | None
    author: str | None


class VerdictSummary(Answer):
    """A person's judgement of an incident. The newest one that was not revoked counts."""

    verdict: Literal["real", "noise", "expected", "fixed"]
    note: str | None
    link: str | None
    by: str
    """The caller who gave it, as the audit log names callers."""
    at: datetime
    revoked_at: datetime | None
    revoked_by: str | None


class IncidentRule(Answer):
    """A rule of `pullback.toml` that changed how an incident was announced, as the rule was then."""

    number: int
    """Its number in the file, from 1 on."""
    says: str
    since: datetime | None
    """Since when it holds."""
    commit: str | None
    """The commit of the file that brought it."""


class IncidentEventSummary(Answer):
    """An event of an incident; `told`: it was announced, with these details."""

    event: str
    at: datetime
    actor: str | None
    told: bool
    details: dict[str, Any]


class IncidentSummary(Answer):
    """An incident: changes of one cause, after `reference` and up to `commit`."""

    id: int
    url: str
    project: str
    kind: Literal["worse", "better", "unsteady", "wrong_gradient", "failed", "missing"]
    state: Literal["suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged"]
    sentence: str
    reference: IncidentCommit
    """The last commit that is known to be as it was before."""
    commit: IncidentCommit
    """The first commit that is known to be changed."""
    ended: IncidentCommit | None
    """The commit at which the level was back."""
    cases: int
    machines: int
    changes: int
    seen: bool
    """True if it was found in results older than detection: it is not announced."""
    verdict: VerdictSummary | None
    assignee: str | None
    """The person in charge."""
    merged_into: int | None
    job_id: int | None
    """The newest job that measures it again."""
    found_at: datetime
    changed_at: datetime
    rules: list[IncidentRule] = Field(default_factory=list)
    """The rules that changed its announcement."""
    cause: Literal["machine", "baseline", "tier"] | None = None
    """The cause that its series show: `machine` if unrelated cases moved alike on one machine, `baseline` if all ratios of its cases moved and the baseline the other way, `tier` if one variant moved in several workloads and no other.
    """


class IncidentDetail(IncidentSummary):
    """An incident with all its changes, events and verdicts."""

    evidence: list[IncidentChange]
    events: list[IncidentEventSummary]
    verdicts: list[VerdictSummary]
    bisection: BisectionSummary | None


class JobChange(Statement):
    """Changes to a job."""

    priority: int
    """Higher ones are given out first, among equals older ones; above 0 only before jobs of the same project."""


class JobCommit(CommitStatement):
    """The commit to be measured."""

    fork: str | None = None
    """Repository that a pull request comes from, if it is not the project's own: its code is untrusted."""


class JobSummary(Answer):
    """A job. An untrusted one `awaits_approval` until an administrator approves it; no agent is given it before."""

    id: int
    url: str
    project: str
    commit: CommitSummary
    suite: str
    cases: list[str]
    variants: list[str]
    kind: str
    state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
    priority: int
    requires: dict[str, Any]
    timeout_s: float
    effort: int
    attempts: int
    max_attempts: int
    cancel_requested: bool
    failure_kind: Literal["infra", "build", "workload", "timeout", "cancelled"] | None
    failure_message: str | None
    created_at: datetime
    finished_at: datetime | None
    reference: str | None
    """The commit it is compared with, in jobs of the kind `compare`."""
    machine_id: int | None
    """The one machine that may take it."""
    origin: Literal["asked", "backfill", "idle", "confirm", "bisect", "anchor"]
    """Origin: a person, a backfill, a machine that was idle, an incident that is confirmed or bisected, or the anchor of the project.
    """
    asked_by: str | None
    """The requester, as the audit log names callers; null for jobs made by workers."""
    trust: Literal["trusted", "untrusted"]
    awaits_approval: bool
    approved_at: datetime | None
    approved_by: str | None
    not_before: datetime | None = None
    """The moment before which no agent is given it: while it pauses because an attempt failed, or waits for a day that has time for it.
    """


class JobDetail(JobSummary):
    """A job with its attempts and its accepted result."""

    history: list[AttemptSummary]
    report_id: UUID | None


class JobReceipt(Answer):
    """The effect of a job's result."""

    id: UUID
    project: str
    commit: str
    cases: int
    points: int
    failures: int
    format: str
    url: str
    status: Literal["accepted", "late", "withdrawn"]
    job_state: Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]


class JobRequest(Statement):
    """Work to be done.

    `requires` is matched with the labels of agents: each entry must be among them. `compare` measures the commit and
    `reference` taking turns; a commit against itself is A/A and shows the noise.
    """

    project: str
    commit: JobCommit
    suite: str
    cases: list[str] | None = None
    """Names of cases, or globs over them, that narrow the suite; none: all of it."""
    variants: list[str] | None = None
    """Variants to measure; none: those that the project measures."""
    kind: Literal["run", "compare"] | None = None
    reference: CommitStatement | None = None
    """The older of the two commits, for the kind `compare`."""
    priority: int | None = None
    """Higher ones are given out first, among equals older ones; above 0 only before jobs of the same project."""
    requires: dict[str, str | float | bool | list[str | float | bool | None] | None] | None = None
    """A job that names no `device` is for the CPU."""
    timeout_s: float | None = None
    """Time limit in seconds, after which the work is ended."""
    effort: int | None = None
    """For the kind `compare`: multiple of the usual duration and number of groups."""
    machine_id: int | None = None
    """The one machine that may take it."""


class LogReceipt(Answer):
    """The length of the stored log."""

    size: int


class LogStatement(Statement):
    """The output of `git log --first-parent`, newest commit first, as far back as the client sends it.

    Without a branch the commits become known, and are on none by this.
    """

    project: str
    branch: str | None = None
    commits: list[CommitStatement]


class MachineChange(Statement):
    """Changes to a machine."""

    accepts: Literal["trusted", "untrusted"]
    """`untrusted` lets approved jobs of forks run there, in addition to the project's own."""


class WorkloadNoise(Answer):
    """The noise of one workload on the machine."""

    floor: float
    provisional: bool
    groups: int
    comparisons: int
    false_alarms: int
    last_at: datetime | None
    workload: str


class MetricNoise(Answer):
    """Counts of a metric's comparisons with itself, and of those that claimed a difference."""

    metric: str
    comparisons: int
    differing: int
    last_at: datetime


class MachineNoise(Answer):
    """The noise of a machine: of all its workloads, of each, and how it changed.

    `truncated` says that there were more comparisons in the window than are looked at; the newest are. `metrics` lists
    all that were compared: a count that differs from itself is not repeatable, and shows as `differing`.
    """

    floor: float
    provisional: bool
    groups: int
    comparisons: int
    false_alarms: int
    last_at: datetime | None
    machine: str
    metric: str
    days: int
    truncated: bool
    workloads: list[WorkloadNoise]
    history: list[DayNoise]
    metrics: list[MetricNoise]


class MachineSummary(Answer):
    """A machine. `accepts` is the lowest trust a job may have to be run there."""

    id: int
    name: str
    host: str | None
    """The computer itself; null where none was reported."""
    fingerprint: str
    """The class: equal computers share it."""
    facts: dict[str, Any]
    first_seen_at: datetime
    last_seen_at: datetime
    accepts: Literal["trusted", "untrusted"]


class MatrixCommit(Answer):
    """The commit of a row."""

    sha: str
    title: str | None
    author: str | None
    authored_at: datetime | None
    ordered_at: datetime


class MatrixCell(Answer):
    """The newest result of one variant for one metric, its reports pooled; the ratio is natural-log variant/baseline."""

    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    series_id: int
    variant: str
    kind: str
    metric: str
    unit: str
    direction: Literal["smaller", "bigger"]
    exact: bool
    value: float
    spread: Spread | None
    baseline: str | None
    outcome: str | None
    quality: str
    dirty: bool
    method: str | None
    program_hash: str | None
    report_ids: list[UUID]


class MatrixFailure(Answer):
    """The failure of a case, or of one of its variants, at a commit."""

    variant: str | None
    kind: str
    message: str
    commit: str
    report_id: UUID


class MatrixCase(Answer):
    """A case on a machine, at the newest commit that has measurements of it; null if none has.

    `failures` are those at that commit or since, newest first.
    """

    case: CaseSummary
    machine: str
    machine_fingerprint: str
    commit: MatrixCommit | None
    cells: list[MatrixCell]
    failures: list[MatrixFailure]


class MergeBaseAnswer(Answer):
    """The newest commit that two commits both descend from, null where none is known.

    Behind commits whose parents nobody told (`parents_unknown`) there may be a newer one: then it is not `certain`.
    """

    merge_base: str | None
    certain: bool
    parents_unknown: list[str]


class NewChannel(ChannelSummary):
    """A channel that was just made. Nothing shows the secret again."""

    secret: str | None
    """The key of a webhook's signatures."""


class NewCode(Answer):
    """An enrolment code, shown this once. It enrols one agent."""

    code: str
    expires_at: datetime


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


class NewToken(TokenSummary):
    """A token that was just made. `token` is the secret, shown this once."""

    token: str


PageOfAgentSummary = PageOf[AgentSummary]


PageOfAuditLine = PageOf[AuditLine]


PageOfBoardSummary = PageOf[BoardSummary]


PageOfBranchSummary = PageOf[BranchSummary]


PageOfChannelSummary = PageOf[ChannelSummary]


PageOfCommitSummary = PageOf[CommitSummary]


PageOfDeliverySummary = PageOf[DeliverySummary]


PageOfFactsChange = PageOf[FactsChange]


PageOfIncidentSummary = PageOf[IncidentSummary]


PageOfJobSummary = PageOf[JobSummary]


PageOfMachineSummary = PageOf[MachineSummary]


class ProjectSummary(Answer):
    """A project. The counts follow an upload within moments, when a worker runs."""

    name: str
    reports: int
    commits: int
    points: int
    last_report_at: datetime | None
    created_at: datetime
    public_read: bool
    raw_days: int | None
    """Days to keep process values before only their spread is kept; null: for ever."""
    body_days: int | None
    """Days to keep uploaded files; null: for ever."""
    backfill: BackfillPolicy | None
    """Commits that are measured automatically."""
    repository: str | None = None
    """The repository that agents fetch commits from; null: each from its own clone."""
    trunk: str | None = None
    """The branch that is watched for changes; null: that of the backfill, or else main."""


PageOfProjectSummary = PageOf[ProjectSummary]


class ReportSummary(Answer):
    """A report in a list."""

    id: UUID
    project: str
    commit: str
    cases: int
    points: int
    failures: int
    format: str
    url: str
    status: Literal["accepted", "late", "withdrawn"]
    machine: str
    suite: str | None
    quality: str
    dirty: bool
    job_id: int | None
    attempt: int | None
    body_bytes: int
    started_at: datetime
    duration_s: float | None
    received_at: datetime


PageOfReportSummary = PageOf[ReportSummary]


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
    resolution: float | None = None
    """The smallest step (natural log) that would be noticed within three commits: 0 of counts, null while there are too few results of the trunk, or none at its end.
    """


class RawPointSummary(Answer):
    """The measurement of one report at a commit.

    `process_values` is null for exact metrics, and after the time for which the project keeps them.
    """

    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    report_id: UUID
    value: float
    process_values: list[float] | None
    quality: str
    dirty: bool
    outcome: str | None


class PointSummary(Answer):
    """A series at a commit, all its reports pooled.

    `value` is in the unit of the series; `spread` is over processes and null for exact metrics. The ratio (natural log,
    variant/baseline) is null where nothing was paired. `position` and `after_gap` are of the branch that was asked for.
    """

    log_ratio: float | None
    low: float | None
    high: float | None
    n: int | None
    commit: str
    title: str | None
    ordered_at: datetime
    position: int | None = None
    """Place among the first parents of the requested branch."""
    after_gap: bool | None = None
    """On that branch: the commit before it is not known."""
    value: float
    spread: Spread | None
    baseline: str | None
    outcome: str | None
    quality: str
    dirty: bool
    method: str | None
    program_hash: str | None
    measured: MeasuredSummary
    report_ids: list[UUID]
    """Reports behind the point, oldest first."""
    raw: list[RawPointSummary] | None = None
    """The measurement of each report, with `raw=true`."""


class SeriesPoint(Answer):
    """A point and the series it is of."""

    series: SeriesSummary
    point: PointSummary


PageOfSeriesPoint = PageOf[SeriesPoint]


PageOfSeriesSummary = PageOf[SeriesSummary]


PageOfTokenSummary = PageOf[TokenSummary]


class WorkloadSummary(Answer):
    """A workload and its cases."""

    workload: str
    cases: list[MatrixCase]


PageOfWorkloadSummary = PageOf[WorkloadSummary]


class PinReceipt(Answer):
    """A chart that is on a board now, or was there already."""

    board_id: UUID
    chart: ChartSummary


class PointPage(Answer):
    """A page of points. `thinned_from` is how many there are in the window when only some are shown as marks."""

    items: list[PointSummary]
    next: str | None = None
    thinned_from: int | None = None


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
    """Changes to a project; what is left out stays.

    `null` keeps values and files for ever, ends a backfill, and leaves agents to their own clones. A shorter time holds
    from the worker's next round on, and what was rolled up or dropped does not come back.
    """

    public_read: bool | None = None
    raw_days: int | None = None
    body_days: int | None = None
    backfill: BackfillPolicy | None = None
    repository: str | None = None
    """Public https or ssh address without a password. Agents build it where their operators allow it."""
    trunk: str | None = None
    """The branch that is watched for changes; null: that of the backfill, or else main.

    What is found when a trunk is chosen later is not announced.
    """


class ProjectRequest(Statement):
    """A project to be made."""

    name: str
    public_read: bool | None = None


class QueueStatus(Answer):
    """Jobs by state, the age of the oldest waiting one, and the jobs that no agent can take now."""

    by_state: dict[str, int]
    waiting_s: float | None
    awaiting_approval: int
    unservable: int
    """Waiting for labels or a trust that no agent of the last hour offers."""
    lost: list[int]
    """Newest jobs that were lost in the last seven days, at most ten."""
    lost_because: str | None = None
    """Message of the newest of them, shortened."""


class ReportDetail(ReportSummary):
    """A report with its document."""

    document: dict[str, Any]


class RuleStatement(Statement):
    """A rule of `pullback.toml`.

    It is about the series that match all its globs (`*`, `?`); what is left out matches all. For each of `at_least`,
    `budget`, `watch` and `tell` the last rule decides that matches and says it.
    """

    workload: str | None = None
    case: str | None = None
    variant: str | None = None
    metric: str | None = None
    machine: str | None = None
    at_least: float | None = None
    """The least change that is announced, as a share: 0.02 is 2 %. Smaller ones are stored and not announced."""
    budget: float | None = None
    """The most that the metric may be; of `time` the most that it may be as a share of the baseline's."""
    watch: bool | None = None
    """False: changes of these series are no incidents."""
    tell: list[str] | None = None
    """Names of the channels it is announced on; left out: all."""


class RuleSummary(Answer):
    """A rule that holds, since when, and the commit of the file that brought it where that was said."""

    number: int
    """Its number in the file, from 1 on."""
    workload: str | None
    case: str | None
    variant: str | None
    metric: str | None
    machine: str | None
    at_least: float | None
    budget: float | None
    watch: bool | None
    tell: list[str] | None
    since: datetime | None
    commit: str | None


class RulesAnswer(Answer):
    """The rules of a project that hold.

    After a dry run: those that would, and what the last 90 days would have told by them.
    """

    project: str
    trunk: str
    """The branch that is watched."""
    file_trunk: str | None
    """`[detection] trunk` of the file; what `pullback project set` says comes first."""
    anchor: str | None
    """The tag that the newest commit is compared with once a week."""
    anchor_sha: str | None
    """The commit of that tag, once a clone that has it sent it."""
    commit: str | None
    """The commit of the file that was sent last."""
    rules: list[RuleSummary]
    changed: bool = False
    """True if the request changed anything, or would."""
    older: bool = False
    """The rules in force are of a later commit, so nothing was changed."""
    last_90_days: list[ForeseenIncident] | None = None


class RulesStatement(Statement):
    """All rules of a project's `pullback.toml`; they take the place of those that held."""

    trunk: str | None = None
    """`[detection] trunk` of the file."""
    anchor: str | None = None
    """`[detection] anchor` of the file: the tag that the newest commit is compared with once a week."""
    anchor_sha: str | None = None
    """The commit of that tag. Omitted if the clone does not have it: the commit sent before stays."""
    rules: list[RuleStatement] | None = None
    commit: str | None = None
    """The commit of the file. Where the rules in force are of a later commit of the trunk, nothing is changed."""
    branch: str | None = None
    """The branch that is checked out. Where that is not the trunk of the project, nothing is changed."""


class Status(Answer):
    """The state of the service. Each finding is a sentence with a remedy; without one all is well."""

    status: Literal["well", "attention"]
    findings: list[str]
    workers: int
    agents: int
    """Agents that were heard of in the last five minutes."""
    chores: list[ChoreStatus]
    jobs: QueueStatus
    unfollowed_reports: int
    """Uploads that wait longer than two minutes to be followed up."""
    overdue_leases: int
    """Leases that ran out more than a minute ago and were not taken back."""


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

    `branch` is what the upload or its file says. `notes` say what was left out of another tool's file and what looks
    doubtful about it. A dry run shows the first points that would have been stored; its `status` is `would be accepted`
    and its `url` null, for there is no report.
    """

    id: UUID
    project: str
    commit: str
    cases: int
    points: int
    failures: int
    format: str
    url: str | None
    status: Literal["accepted", "late", "withdrawn", "would be accepted"]
    branch: str | None = None
    notes: list[str] = Field(default_factory=list)
    dry_run: bool = False
    preview: list[PointPreview] | None = None


class VerdictRequest(Statement):
    """A person's judgement of an incident; it takes the place of an earlier one.

    `expected` accepts the new level, and `fixed` states that it was fixed: both resolve the incident. `noise` refutes
    it, and later suspicions of its series must be twice as large. `real` is stored and changes no state.
    """

    verdict: Literal["real", "noise", "expected", "fixed"]
    note: str | None = None
    link: str | None = None
    """Address of a discussion."""


class Whoami(Answer):
    """The caller, by the credentials of the request."""

    name: str
    scopes: list[str]
    projects: list[str] | None
    """Null is all of them."""
