"""The content of the settings pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from pullback_dashboards import links
from pullback_service.caller import LOCAL, Caller, Scope
from pullback_service.jobs.leases import ATTEMPTS
from pullback_service.machines.noise import PROVISIONAL_FLOOR
from pullback_service.models.audit import Audit
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.notifications.queries import StoredChannel, StoredDelivery
from pullback_service.notifications.schemas import ChannelSummary
from pullback_service.rows_to_models import filled
from pullback_service.settings import Settings
from pullback_service.tokens.queries import StoredToken
from pullback_service.uploaded_claims import LEAST_CLAIM, USUAL_MARGIN

# Addresses and secrets are nobody's business, not even an administrator's in a browser.
_UNITS = {"s": "s", "hours": "h"}
_UNSAID = frozenset({"database_url", "database_url_file", "token_file", "smtp_url", "smtp_url_file"})

ALLOWED: dict[Scope, str] = {
    "read": "lists, pages and exports; own boards",
    "upload": "reports and commits; jobs and backfills; boards of projects",
    "agent": "enrol, claim jobs, send heartbeats, logs and results",
    "admin": "all of these, and settings",
}


@dataclass(frozen=True)
class Reader:
    """The reader of the page, and the reader's permissions."""

    name: str
    scopes: tuple[str, ...]
    of_all_projects: bool
    may_change: bool
    may_make_projects: bool
    is_local: bool
    """True if the service asks nobody for a token, so that this is whoever reaches it."""


@dataclass(frozen=True)
class ProjectRow:
    """A project as its settings are."""

    name: str
    public_read: bool
    raw_days: int | None
    body_days: int | None
    backfill: str
    mirror: bool
    href: str


@dataclass(frozen=True)
class MachineRow:
    """A machine and the lowest trust a job may have to be run there."""

    id: int
    name: str
    fingerprint: str
    accepts_forks: bool
    last_seen_at: datetime


@dataclass(frozen=True)
class Rule:
    """One rule of this service: its name, what it is set to, what it means, and what sets it."""

    name: str
    value: str
    meaning: str
    set_by: str


@dataclass(frozen=True)
class SettingsView:
    """The first page."""

    reader: Reader
    projects: tuple[ProjectRow, ...]
    machines: tuple[MachineRow, ...]
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Backfill:
    """A standing backfill, field by field as a form has it."""

    suite: str = ""
    branch: str = "main"
    order: str = "newest"
    limit: int = 20
    requires: str = ""


@dataclass(frozen=True)
class MessageRow:
    """A message to a channel, and what the other side answered."""

    created_at: datetime
    event: str
    title: str
    state: str
    answer: str


@dataclass(frozen=True)
class ChannelRow:
    """A channel of notifications with its newest messages."""

    name: str
    kind: str
    target: str
    events: str
    state: str
    since: datetime | None
    because: str
    messages: tuple[MessageRow, ...]


@dataclass(frozen=True)
class ProjectView:
    """The settings of one project, and how much it keeps."""

    reader: Reader
    project: ProjectRow
    reports: int
    commits: int
    points: int
    last_report_at: datetime | None
    mirror: str | None
    repository: str | None
    """The repository that agents fetch commits from; None: each from its own clone."""
    backfill: Backfill
    machines_for_forks: tuple[str, ...]
    channels: tuple[ChannelRow, ...] = ()


@dataclass(frozen=True)
class TokenRow:
    """A token, without its secret."""

    id: int
    name: str
    prefix: str
    scopes: tuple[str, ...]
    project: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    state: str


@dataclass(frozen=True)
class Secret:
    """A secret that was just made, and is shown this once."""

    kind: str
    name: str
    secret: str
    expires_at: datetime | None
    command: str


@dataclass(frozen=True)
class TokensView:
    """All tokens that the reader may end, and what a new one may be."""

    reader: Reader
    tokens: tuple[TokenRow, ...]
    projects: tuple[str, ...]
    next_href: str | None
    allowed: dict[Scope, str]
    made: Secret | None = None


@dataclass(frozen=True)
class AuditRow:
    """A write."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    project: str | None
    address: str | None
    details: str


@dataclass(frozen=True)
class AuditView:
    """The audit log's writes with their callers, newest first."""

    project: str | None
    projects: tuple[str, ...]
    lines: tuple[AuditRow, ...]
    next_href: str | None


def reader_of(caller: Caller) -> Reader:
    """The reader of a request."""
    return Reader(
        name=caller.name,
        scopes=tuple(sorted(caller.scopes)),
        of_all_projects=caller.projects is None,
        may_change=caller.has("admin"),
        may_make_projects=caller.has("admin") and caller.projects is None,
        is_local=caller == LOCAL,
    )


def project_row(project: Project) -> ProjectRow:
    """A project in the list."""
    policy = project.backfill or {}
    return filled(
        ProjectRow,
        project,
        backfill=f"{policy.get('suite')} on {policy.get('branch')}" if policy else "",
        mirror=project.mirror is not None,
        href=links.settings("projects", project.name),
    )


def project_view(
    project: Project, machines: Sequence[Machine], caller: Caller, channels: Sequence[ChannelRow] = ()
) -> ProjectView:
    """The settings of one project. Where its clone lies is told to who may change it."""
    policy = project.backfill or {}
    requires = policy.get("requires") or {}
    return filled(
        ProjectView,
        project,
        reader=reader_of(caller),
        project=project_row(project),
        mirror=project.mirror if caller.has("admin") else None,
        backfill=Backfill(
            suite=policy.get("suite", ""),
            branch=policy.get("branch", "main"),
            order=policy.get("order", "newest"),
            limit=policy.get("limit", 20),
            requires=orjson.dumps(requires).decode() if requires else "",
        ),
        machines_for_forks=tuple(machine.name for machine in machines if machine.accepts == "untrusted"),
        channels=tuple(channels),
    )


def channel_row(stored: StoredChannel, newest: Mapping[int, Sequence[StoredDelivery]]) -> ChannelRow:
    """A channel in the list, without its secrets."""
    summary = ChannelSummary.of(stored)
    return filled(
        ChannelRow,
        summary,
        events="usual" if summary.events is None else ", ".join(summary.events),
        since=summary.switched_off_at or summary.failing_since,
        because=summary.switched_off_because or "",
        messages=tuple(
            MessageRow(
                each.delivery.created_at, each.event, each.title or "", each.delivery.state, each.delivery.answer or ""
            )
            for each in newest.get(summary.id, ())
        ),
    )


def machine_row(machine: Machine) -> MachineRow:
    """A machine in the list."""
    return filled(MachineRow, machine, accepts_forks=machine.accepts == "untrusted")


def token_row(stored: StoredToken, now: datetime) -> TokenRow:
    """A token in the list."""
    token = stored.token
    expired = token.expires_at is not None and token.expires_at <= now
    state = "revoked" if token.revoked_at is not None else "expired" if expired else "valid"
    return filled(TokenRow, stored, token, scopes=tuple(token.scopes), state=state)


def audit_row(line: Audit) -> AuditRow:
    """A write in words: what was said of it as name and value."""
    parts = (f"{name}: {_short(value)}" for name, value in line.details.items())
    return filled(AuditRow, line, details=", ".join(parts))


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    """The rules of this service: limits of claims first, then limits of requests."""
    claims = (
        ("least claim", _percent(LEAST_CLAIM), "Smaller changes are never called faster or slower."),
        ("margin", _percent(USUAL_MARGIN), "Called the same only if the whole interval lies within it."),
        ("provisional floor", _percent(PROVISIONAL_FLOOR), "Noise floor of a machine without enough A/A comparisons."),
        ("attempts", str(ATTEMPTS), "Attempts of a job whose lease is lost."),
    )
    limits = (
        (
            _spoken(name),
            _written(name, getattr(settings, name)),
            (field.description or "").replace("`", ""),
            _variable(name),
        )
        for name, field in Settings.model_fields.items()
        if name not in _UNSAID
    )
    return (*(Rule(*one, "built in") for one in claims), *(Rule(*one) for one in limits))


def _percent(value: float) -> str:
    return f"{value * 100:g} %"


def _spoken(name: str) -> str:
    """The name without its unit, which stands behind the value."""
    stem, _, last = name.rpartition("_")
    return (stem if last in _UNITS or last == "bytes" else name).replace("_", " ")


def _written(name: str, value: object) -> str:
    last = name.rpartition("_")[2]
    if value is None:
        return "not set"
    if value == "":
        return "none"
    if last == "bytes" and isinstance(value, int):
        return f"{value / 2**20:g} MiB"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {_UNITS[last]}" if last in _UNITS else text


def _variable(name: str) -> str:
    return f"PULLBACK_{name.upper()}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 120 else f"{text[:119]}…"
