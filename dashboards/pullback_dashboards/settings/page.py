"""`/settings`: projects, machines, rules; tokens; the audit log. What changes them are forms, so that they work without a script.

Whoever may read sees how things are set; who may change them has the forms. What each address needs is said in
`access/scopes.py`, and what a form may say by the schemas of the API.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.current_project import ComingFrom, coming_from, onward
from pullback_dashboards.forms import SEE_OTHER, Form, checked
from pullback_dashboards.rendering import csv_response, page, page_at
from pullback_dashboards.routers import page_router
from pullback_dashboards.routing import RawNamesRoute
from pullback_dashboards.settings.view import (
    ALLOWED,
    AuditView,
    ProjectView,
    Secret,
    SettingsView,
    TokensView,
    audit_row,
    channel_row,
    machine_row,
    project_row,
    project_view,
    reader_of,
    rules_of,
    token_row,
)
from pullback_service.access.authentication import KnownCaller
from pullback_service.audit.queries import list_lines
from pullback_service.audit.trail import note
from pullback_service.caller import SCOPES
from pullback_service.current_settings import KnownSettings, base_of
from pullback_service.errors import refuse
from pullback_service.fields import KnownId, Name
from pullback_service.ids import MachineId, TokenId
from pullback_service.machines.queries import change_accepts, list_machines
from pullback_service.machines.schemas import MachineChange
from pullback_service.notifications.queries import MOST_CHANNELS, list_channels, newest_deliveries
from pullback_service.projects import queries as projects
from pullback_service.projects.schemas import ProjectChange, ProjectRequest
from pullback_service.sessions import ReadSession, WriteSession
from pullback_service.tokens import issuance
from pullback_service.tokens import queries as tokens
from pullback_service.tokens.schemas import CodeRequest, TokenRequest

router = page_router(route_class=RawNamesRoute)

_MOST_MACHINES = 200
_MESSAGES = 3  # of a channel
_TOKENS = 100  # a page
_LINES = 100  # as above
COLUMNS = ("id", "at", "actor", "action", "subject", "project", "address", "details")
TOKEN_COLUMNS = (
    "id", "name", "prefix", "scopes", "project", "created_at", "created_by", "expires_at", "last_used_at", "revoked_at", "state",
)  # fmt: skip
_NO_STORE = {"cache-control": "no-store"}


async def _read_settings(session: ReadSession, caller: KnownCaller, settings: KnownSettings) -> SettingsView:
    machines = await list_machines(session, after_id=None, limit=_MOST_MACHINES)
    return SettingsView(
        reader=reader_of(caller),
        projects=tuple(project_row(project) for project in await projects.list_projects(session)),
        machines=tuple(machine_row(machine) for machine in machines),
        rules=rules_of(settings),
    )


RequestedSettings = Annotated[SettingsView, Depends(_read_settings)]


async def _read_project(project: str, session: ReadSession, caller: KnownCaller) -> ProjectView:
    known = await projects.project_by_name(session, project)
    machines = await list_machines(session, after_id=None, limit=_MOST_MACHINES)
    if not caller.has("admin"):
        return project_view(known, machines, caller)
    channels = await list_channels(session, project=known.name, limit=MOST_CHANNELS)
    newest = await newest_deliveries(session, [stored.channel.id for stored in channels], each=_MESSAGES)
    return project_view(known, machines, caller, [channel_row(each, newest) for each in channels])


RequestedProject = Annotated[ProjectView, Depends(_read_project)]


async def _read_tokens(
    session: ReadSession, caller: KnownCaller, after: Annotated[KnownId | None, Query()] = None
) -> TokensView:
    return await _tokens(session, caller, after)


RequestedTokens = Annotated[TokensView, Depends(_read_tokens)]


async def _read_audit(
    session: ReadSession, project: Name | None = None, before: Annotated[KnownId | None, Query()] = None
) -> AuditView:
    listed = await list_lines(session, project=project, before_id=before, limit=_LINES + 1)
    lines = tuple(audit_row(line) for line in listed[:_LINES])
    more = links.settings("audit", project=project, before=str(lines[-1].id)) if len(listed) > _LINES else None
    return AuditView(project, tuple(known.name for known in await projects.list_projects(session)), lines, more)


RequestedAudit = Annotated[AuditView, Depends(_read_audit)]


@page_at(router, "/settings", RequestedSettings)
async def settings_page(request: Request, view: RequestedSettings, kept: ComingFrom) -> Response:
    """The first page."""
    return page(request, "settings.html", title="Settings", view=view, coming_from=kept, formats=("json", "md"))


@router.post("/settings/projects")
async def make_project(request: Request, session: WriteSession) -> Response:
    """Make a project before its first upload."""
    form = await Form.of(request)
    requested = checked(ProjectRequest, {"name": form.text("name"), "public_read": form.ticked("public_read")})
    await projects.create_project(session, requested.name, public_read=requested.public_read)
    note(session, subject=f"project {requested.name}", project=requested.name, public_read=requested.public_read)
    return RedirectResponse(links.settings("projects", requested.name), status_code=SEE_OTHER)


@page_at(router, "/settings/projects/{project:path}", RequestedProject, also=(".html",))
async def project_page(request: Request, view: RequestedProject, saved: bool = False) -> Response:  # noqa: FBT001, FBT002 - a parameter of the address
    """The settings of a project."""
    name = view.project.name
    return page(
        request,
        "settings_project.html",
        title=f"Settings of {name}",
        project=name,
        view=view,
        saved=saved,
        formats=("json", "md"),
    )


@router.post("/settings/projects/{project:path}")
@router.post("/settings/projects/{project:path}.html")
async def change_project_settings(project: str, request: Request, session: WriteSession) -> Response:
    """Change the settings of a project."""
    form = await Form.of(request)
    form.needs("raw_days", "body_days", "suite")
    fields: dict[str, Any] = {
        "public_read": form.ticked("public_read"),
        "raw_days": form.number("raw_days"),
        "body_days": form.number("body_days"),
        "backfill": _backfill(form) if form.text("suite") else None,
    }
    known = await projects.project_by_name(session, project)
    if fields["backfill"] is not None and known.backfill is not None:
        fields["backfill"] = known.backfill | fields["backfill"]  # what the form does not ask for stays
    _, changed = await projects.change_project(session, project, checked(ProjectChange, fields))
    note(session, subject=f"project {project}", project=project, **changed)
    return RedirectResponse(links.settings("projects", project, saved="true"), status_code=SEE_OTHER)


@router.post("/settings/machines/{machine_id}")
async def change_machine_settings(machine_id: KnownId, request: Request, session: WriteSession) -> Response:
    """Say whether approved jobs of forks may run on a machine."""
    form = await Form.of(request)
    change = checked(MachineChange, {"accepts": form.text("accepts")})
    _, is_news = await change_accepts(session, MachineId(machine_id), change.accepts)
    note(session, changed=is_news, subject=f"machine {machine_id}", accepts=change.accepts)
    return RedirectResponse(onward(request, f"{links.settings()}#machines"), status_code=SEE_OTHER)


def _tokens_csv(view: TokensView) -> Response:
    rows = ({**asdict(row), "scopes": " ".join(row.scopes)} for row in view.tokens)
    return csv_response("tokens", rows, TOKEN_COLUMNS)


@page_at(router, "/settings/tokens", RequestedTokens, csv=_tokens_csv)
async def tokens_page(request: Request, view: RequestedTokens, kept: ComingFrom) -> Response:
    """Tokens, and a form for another."""
    formats = ("json", "csv", "md")
    return page(request, "settings_tokens.html", title="Tokens", view=view, coming_from=kept, formats=formats)


@router.post("/settings/tokens")
async def make_token(request: Request, session: WriteSession, caller: KnownCaller) -> Response:
    """Make a token, and show its secret in the answer to the form: nothing can show it again."""
    form = await Form.of(request)
    requested = checked(
        TokenRequest,
        {
            "name": form.text("name"),
            "scopes": [scope for scope in SCOPES if form.ticked(f"scope_{scope}")],
            "project": form.text("project") or None,
            "expires_in_days": form.number("days"),
        },
    )
    _, secret = await issuance.make_token(session, caller, requested)
    made = Secret("token", requested.name, secret.secret, secret.expires_at, f"Authorization: Bearer {secret.secret}")
    return await _shown_once(request, session, caller, made)


@router.post("/settings/tokens/{token_id}/revoke")
async def end_token(request: Request, token_id: KnownId, session: WriteSession) -> Response:
    """End a token at once, and the logins made with it."""
    await issuance.end_token(session, TokenId(token_id))
    return RedirectResponse(onward(request, links.settings("tokens")), status_code=SEE_OTHER)


@router.post("/settings/enrolments")
async def make_code(request: Request, session: WriteSession, caller: KnownCaller) -> Response:
    """Make a code with which one agent introduces itself once, and show it this once."""
    form = await Form.of(request)
    told = {"project": form.text("project") or None, "expires_in_minutes": form.number("minutes")}
    requested = checked(CodeRequest, {name: value for name, value in told.items() if value is not None})
    secret = await issuance.make_code(session, caller, requested)
    base = base_of(request)
    command = f"pullback agent --server {base} --token-file code"
    return await _shown_once(
        request, session, caller, Secret("code", "one agent", secret.secret, secret.expires_at, command)
    )


@page_at(router, "/settings/audit", RequestedAudit, csv=lambda view: csv_response("audit", _table(view), COLUMNS))
async def audit_page(request: Request, view: RequestedAudit, kept: ComingFrom) -> Response:
    """The page of the audit log: writes with their callers."""
    formats = ("json", "csv", "md")
    return page(request, "settings_audit.html", title="Audit log", view=view, coming_from=kept, formats=formats)


async def _tokens(session: AsyncSession, caller: KnownCaller, after: int | None) -> TokensView:
    listed = await tokens.list_tokens(session, after_id=after, limit=_TOKENS + 1)
    now = datetime.now(UTC)
    return TokensView(
        reader=reader_of(caller),
        tokens=tuple(token_row(stored, now) for stored in listed[:_TOKENS]),
        projects=tuple(project.name for project in await projects.list_projects(session)),
        next_href=links.settings("tokens", after=str(listed[_TOKENS - 1].token.id)) if len(listed) > _TOKENS else None,
        allowed=ALLOWED,
    )


async def _shown_once(request: Request, session: AsyncSession, caller: KnownCaller, made: Secret) -> Response:
    view = replace(await _tokens(session, caller, None), made=made)
    kept = await coming_from(session, request)
    answer = page(request, "settings_tokens.html", title="Tokens", view=view, coming_from=kept, scripts=("copy.js",))
    answer.headers.update(_NO_STORE)
    return answer


def _backfill(form: Form) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "suite": form.text("suite"),
        "branch": form.text("branch") or "main",
        "order": form.text("order") or "newest",
        "limit": form.number("limit") or 20,
    }
    text = form.text("requires")
    try:
        return fields | {"requires": orjson.loads(text) if text else {}}
    except orjson.JSONDecodeError:
        refuse("requires", 'The required labels are not JSON: write them like {"device": "cpu"}.')


def _table(view: AuditView) -> Iterator[dict[str, Any]]:
    for line in view.lines:
        yield {**asdict(line), "at": line.at.isoformat()}
