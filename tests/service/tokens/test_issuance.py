"""Tokens and enrolment codes within the rights of who asks for them, noted for the audit log."""

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from pullback_service.audit.trail import write_line
from pullback_service.caller import Caller
from pullback_service.errors import ForbiddenError, NotFoundError
from pullback_service.ids import ProjectId, TokenId
from pullback_service.models import Audit, EnrolmentCode, Token
from pullback_service.projects.queries import ensure_project
from pullback_service.tokens.issuance import end_token, make_code, make_token
from pullback_service.tokens.schemas import CodeRequest, TokenRequest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def caller(session):
    """An administrator of one project of two."""
    await ensure_project(session, "other")
    mine = ProjectId((await ensure_project(session, "demo")).id)
    return Caller("token chief", frozenset({"admin"}), frozenset({mine}))


async def audited(session, caller):
    await write_line(session, caller, action="POST", path="/", address=None)
    return await session.scalar(select(Audit).order_by(Audit.id.desc()).limit(1))


async def test_a_token_has_what_was_asked_for_its_maker_and_its_line(session, caller):
    asked = TokenRequest(name="ci", scopes=["upload", "read"], project="demo", expires_in_days=2)
    stored, secret = await make_token(session, caller, asked)
    assert (stored.project, stored.token.created_by, stored.token.scopes) == ("demo", "token chief", ["read", "upload"])
    assert secret.expires_at - await session.scalar(select(func.now())) == timedelta(days=2)
    line = await audited(session, caller)
    assert (line.subject, line.project, line.details) == (
        f"token {stored.token.id}",
        "demo",
        {"name": "ci", "scopes": ["upload", "read"]},
    )
    assert secret.secret not in str(line.details)


async def test_a_token_without_an_end_ends_when_it_is_revoked_and_that_has_its_line(session, caller):
    stored, secret = await make_token(session, caller, TokenRequest(name="ci", scopes=["read"], project="demo"))
    assert secret.expires_at is None
    ended = await end_token(session, TokenId(stored.token.id))
    assert ended.token.revoked_at is not None
    line = await audited(session, caller)
    assert (line.subject, line.project, line.details) == (f"token {ended.token.id}", "demo", {"name": "ci"})


@pytest.mark.parametrize("project", [None, "other"])
async def test_nobody_gives_rights_beyond_the_own_projects_and_nothing_is_stored(session, caller, project):
    with pytest.raises(ForbiddenError, match="every token created with it"):
        await make_token(session, caller, TokenRequest(name="ci", scopes=["read"], project=project))
    with pytest.raises(ForbiddenError, match="every code created with it"):
        await make_code(session, caller, CodeRequest(project=project))
    for table in (Token, EnrolmentCode):
        assert await session.scalar(select(func.count()).select_from(table)) == 0


async def test_a_project_that_is_not_there_is_named(session, caller):
    with pytest.raises(NotFoundError, match="elsewhere"):
        await make_token(session, caller, TokenRequest(name="ci", scopes=["read"], project="elsewhere"))


async def test_a_code_is_of_its_project_for_the_minutes_asked_for(session, caller):
    secret = await make_code(session, caller, CodeRequest(project="demo", expires_in_minutes=5))
    (code,) = await session.scalars(select(EnrolmentCode))
    assert secret.expires_at == code.expires_at
    assert code.expires_at - await session.scalar(select(func.now())) == timedelta(minutes=5)
    assert ({code.project_id}, code.created_by) == (caller.projects, caller.name)
    line = await audited(session, caller)
    assert (line.subject, line.project) == ("enrolment code", "demo")
