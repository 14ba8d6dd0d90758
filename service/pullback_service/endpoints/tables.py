"""Lists of the API as tables to export: a row an item, without secrets."""

from pullback_service.agents.schemas import AgentSummary
from pullback_service.audit.schemas import AuditLine
from pullback_service.boards.schemas import BoardSummary
from pullback_service.commits.schemas import BranchSummary, CommitSummary
from pullback_service.exports.tables import Column, Table, table_of
from pullback_service.incidents.schemas import IncidentSummary
from pullback_service.jobs.schemas import JobSummary
from pullback_service.machines.schemas import FactsChange, MachineSummary
from pullback_service.models.machines import Machine
from pullback_service.notifications.schemas import ChannelSummary, DeliverySummary
from pullback_service.projects.schemas import ProjectSummary
from pullback_service.reports.schemas import ReportSummary
from pullback_service.tokens.schemas import TokenSummary

AGENTS = table_of(
    "agents", AgentSummary,
    "agent_id=id", "agent=name", "machine_id", "machine", "labels", "enrolled_at", "last_seen_at", "present", "job_id", "job_since",
    "phase", "progress", "spool_waiting=spool.waiting", "spool_bytes=spool.bytes", "refuses",
)  # fmt: skip
AUDIT = table_of(
    "audit", AuditLine,
    "line_id=id", "at", "actor", "token_id", "action", "subject", "project", "address", "request_id", "details",
)  # fmt: skip
BOARDS = table_of(
    "boards", BoardSummary,
    "board_id=id", "board=name", "project", "owner", "own", "may_change", "charts", "created_at", "changed_at",
)  # fmt: skip
CHANNELS = table_of(
    "channels", ChannelSummary,
    "channel_id=id", "project", "channel=name", "kind", "target",
    Column("events", "text", lambda row: None if row.events is None else " ".join(row.events)),
    "state", "created_at", "created_by", "failing_since", "switched_off_at", "switched_off_because", "last_sent_at", "waiting",
)  # fmt: skip
DELIVERIES = table_of(
    "deliveries", DeliverySummary,
    "delivery_id=id", "channel_id", "event", "key", "title", "state", "created_at", "attempts", "attempted_at", "sent_at", "answer",
    "digest_id",
)  # fmt: skip
INCIDENTS = table_of(
    "incidents", IncidentSummary,
    "incident_id=id", "project", "kind", "state", "sentence", "reference=reference.sha", "commit=commit.sha", "title=commit.title",
    "ended=ended.sha", "cases", "machines", "changes", "seen", "verdict=verdict.verdict", "assignee", "merged_into", "job_id",
    "found_at", "changed_at", "cause",
)  # fmt: skip
JOBS = table_of(
    "jobs", JobSummary,
    "job_id=id", "project", "commit=commit.sha", "title=commit.title", "branch=commit.branch", "reference", "suite", "kind", "state",
    "priority", "requires", "machine_id", "timeout_s", "attempts", "max_attempts", "cancel_requested", "failure_kind",
    "failure_message", "origin", "asked_by", "trust", "awaits_approval", "approved_at", "approved_by", "created_at", "finished_at",
    "not_before", "cases", "variants", "effort",
)  # fmt: skip
MACHINES = table_of(
    "machines", MachineSummary,
    "machine_id=id", "machine=name", "machine_fingerprint=fingerprint", "accepts", "first_seen_at", "last_seen_at", "facts",
    "machine_host=host",
)  # fmt: skip
PROJECTS = table_of(
    "projects", ProjectSummary,
    "project=name", "reports", "commits", "points", "last_report_at", "created_at", "public_read", "raw_days", "body_days",
    "repository", "backfill", "trunk",
)  # fmt: skip
REPORTS = table_of(
    "reports", ReportSummary,
    "report_id=id", "project", "commit", "machine", "format", "suite", "status", "quality", "dirty", "cases", "points", "failures",
    "job_id", "attempt", "body_bytes", "started_at", "duration_s", "received_at",
)  # fmt: skip
TOKENS = table_of(
    "tokens", TokenSummary,
    "token_id=id", "token=name", "prefix", Column("scopes", "text", lambda row: " ".join(row.scopes)), "project", "agent_id",
    "created_at", "created_by", "expires_at", "last_used_at", "revoked_at",
)  # fmt: skip


def branches_of(project: str) -> Table[BranchSummary]:
    """Branches of a project."""
    return table_of(
        "branches", BranchSummary,
        Column("project", "text", lambda _: project), "branch=name", "head", "commits", "gaps", "updated_at", "forced_at",
        "forced_from",
    )  # fmt: skip


def commits_of(project: str) -> Table[CommitSummary]:
    """Commits of a project; hashes of several parents with a space between them."""
    return table_of(
        "commits", CommitSummary,
        Column("project", "text", lambda _: project),
        "commit=sha", Column("parents", "text", lambda row: " ".join(row.parents)), "branch", "author", "title", "authored_at",
        "ordered_at", "position", "after_gap",
        Column("unknown_parents", "text", lambda row: " ".join(row.unknown_parents)),
    )  # fmt: skip


def facts_of(machine: Machine) -> Table[FactsChange]:
    """The changes of one machine's facts."""
    return table_of(
        "facts", FactsChange,
        Column("machine_id", "integer", lambda _: machine.id),
        Column("machine", "text", lambda _: machine.name),
        Column("machine_fingerprint", "text", lambda _: machine.fingerprint),
        "change_id=id", "at", "before", "after",
    )  # fmt: skip
