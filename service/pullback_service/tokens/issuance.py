"""Issuing and revoking tokens and enrolment codes on request: within the rights of the caller, and in the audit log."""

from datetime import timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.audit.trail import note
from pullback_service.caller import Caller
from pullback_service.ids import ProjectId, TokenId
from pullback_service.projects.queries import project_by_name
from pullback_service.tokens import queries
from pullback_service.tokens.queries import NewSecret, StoredToken
from pullback_service.tokens.schemas import CodeRequest, TokenRequest


async def make_token(session: AsyncSession, caller: Caller, request: TokenRequest) -> tuple[StoredToken, NewSecret]:
    """A token with no more rights than its maker."""
    project_id = await _project_id(session, request.project)
    queries.refuse_wider(caller, project_id, what="token")
    stored, secret = await queries.create_token(
        session,
        name=request.name,
        scopes=request.scopes,
        created_by=caller.name,
        project_id=project_id,
        lifetime=timedelta(days=request.expires_in_days) if request.expires_in_days is not None else None,
    )
    note(session, subject=f"token {stored.token.id}", project=stored.project, name=request.name, scopes=request.scopes)
    return stored, secret


async def end_token(session: AsyncSession, token_id: TokenId) -> StoredToken:
    """A token that ends at once, and all logins made with it."""
    stored = await queries.revoke_token(session, token_id)
    note(session, subject=f"token {token_id}", project=stored.project, name=stored.token.name)
    return stored


async def make_code(session: AsyncSession, caller: Caller, request: CodeRequest) -> NewSecret:
    """A code for one agent, which then has a token of its own."""
    project_id = await _project_id(session, request.project)
    queries.refuse_wider(caller, project_id, what="code")
    secret = await queries.create_code(
        session, created_by=caller.name, lifetime=timedelta(minutes=request.expires_in_minutes), project_id=project_id
    )
    note(session, subject="enrolment code", project=request.project)
    return secret


async def _project_id(session: AsyncSession, name: str | None) -> ProjectId | None:
    return ProjectId((await project_by_name(session, name)).id) if name is not None else None
