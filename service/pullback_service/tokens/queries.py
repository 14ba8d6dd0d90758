"""Making, finding and revoking tokens; making and redeeming enrolment codes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.caller import Caller, Scope
from pullback_service.database import is_read_only
from pullback_service.errors import AuthenticationError, ConflictError, ForbiddenError, NotFoundError
from pullback_service.ids import AgentId, ProjectId, TokenId
from pullback_service.models.projects import Project
from pullback_service.models.tokens import EnrolmentCode, Token
from pullback_service.name_characters import in_one_form
from pullback_service.tokens.secrets import digest_of, make_code, make_token, prefix_of

USED_AGAIN_AFTER = timedelta(minutes=1)
MOST_TOKENS = 1_000


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token and the name of the project it is limited to."""

    token: Token
    project: str | None


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A secret that was just made, and when it ends; nothing can show it again."""

    secret: str
    expires_at: datetime | None


async def create_token(
    session: AsyncSession,
    *,
    name: str,
    scopes: Collection[Scope],
    created_by: str,
    project_id: ProjectId | None = None,
    agent_id: AgentId | None = None,
    lifetime: timedelta | None = None,
) -> tuple[StoredToken, NewSecret]:
    """Make a token. Index: uq_token_name_valid keeps names of valid tokens apart."""
    secret = make_token()
    row = Token(
        name=name,
        digest=digest_of(secret),
        prefix=prefix_of(secret),
        scopes=sorted(set(scopes)),
        project_id=project_id,
        agent_id=agent_id,
        created_by=created_by,
        expires_at=await _from_now(session, lifetime) if lifetime is not None else None,
    )
    try:
        async with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise ConflictError(
            f"A valid token {name!r} exists already: revoke it first, or choose another name."
        ) from error
    await session.refresh(row)
    return await token_by_id(session, TokenId(row.id)), NewSecret(secret, row.expires_at)


async def token_by_id(session: AsyncSession, token_id: TokenId) -> StoredToken:
    """A token. Index: pk_token."""
    row = (
        await session.execute(
            select(Token, Project.name)
            .join(Project, Project.id == Token.project_id, isouter=True)
            .where(Token.id == token_id)
        )
    ).one_or_none()
    if row is None:
        raise _no_token(token_id)
    return StoredToken(*row)


async def token_by_digest(session: AsyncSession, digest: bytes) -> Token | None:
    """The token with this digest, whether it is still valid or not. Index: uq_token_digest."""
    return await session.scalar(select(Token).where(Token.digest == digest))


async def refuse_ended(session: AsyncSession, caller: Caller) -> None:
    """Raise where a caller's token has ended since the request was let in: while it waited. Index: pk_token."""
    if caller.token_id is None:
        return
    valid = and_(Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > func.now()))
    if not await session.scalar(select(valid).where(Token.id == caller.token_id)):
        raise AuthenticationError(
            f"{caller.name[:1].upper()}{caller.name[1:]} was revoked or expired while the request waited: use a new one."
        )


async def valid_token_by_name(session: AsyncSession, name: str) -> StoredToken:
    """The token of this name that is not revoked, however its letters were typed. Index: uq_token_name_valid."""
    token_id = await session.scalar(
        select(Token.id)
        .where(func.normalize(Token.name) == in_one_form(name), Token.revoked_at.is_(None))
        .order_by((Token.name == name).desc())
        .limit(1)
    )
    if token_id is None:
        raise NotFoundError(f"There is no valid token {name!r}: `pullback token list` shows them.")
    return await token_by_id(session, TokenId(token_id))


def refuse_wider(caller: Caller, project_id: ProjectId | None, *, what: str) -> None:
    """Refuse rights beyond the caller's own: an administrator of one project gives rights in that project."""
    if caller.projects is not None and project_id not in caller.projects:
        raise ForbiddenError(
            f"{caller.name[:1].upper()}{caller.name[1:]} is limited to one project, and so is every {what} created with it: "
            "name that project, or use a token for all projects."
        )


async def list_tokens(session: AsyncSession, *, after_id: int | None, limit: int) -> Sequence[StoredToken]:
    """Tokens, revoked ones too, in the order of their making. Index: pk_token."""
    statement = (
        select(Token, Project.name)
        .join(Project, Project.id == Token.project_id, isouter=True)
        .order_by(Token.id)
        .limit(limit)
    )
    if after_id is not None:
        statement = statement.where(Token.id > after_id)
    return [StoredToken(*row) for row in await session.execute(statement)]


async def revoke_token(session: AsyncSession, token_id: TokenId) -> StoredToken:
    """End a token at once, and the logins made with it; ending it again changes nothing. Index: pk_token."""
    await session.execute(
        update(Token).where(Token.id == token_id, Token.revoked_at.is_(None)).values(revoked_at=func.now())
    )
    session.expire_all()
    return await token_by_id(session, token_id)


async def note_used(session: AsyncSession, token_id: TokenId) -> None:
    """Write down that a token was used, at most once a minute and where the server writes. Index: pk_token."""
    stale = or_(Token.last_used_at.is_(None), Token.last_used_at < func.now() - USED_AGAIN_AFTER)
    try:
        async with session.begin_nested():
            await session.execute(update(Token).where(Token.id == token_id, stale).values(last_used_at=func.now()))
    except DBAPIError as error:
        if not is_read_only(error):  # else nobody need know, and what was asked for may be read
            raise


async def create_code(
    session: AsyncSession, *, created_by: str, lifetime: timedelta, project_id: ProjectId | None = None
) -> NewSecret:
    """Make an enrolment code."""
    secret = make_code()
    expires_at = await _from_now(session, lifetime)
    session.add(
        EnrolmentCode(digest=digest_of(secret), project_id=project_id, created_by=created_by, expires_at=expires_at)
    )
    await session.flush()
    return NewSecret(secret, expires_at)


async def unused_code(session: AsyncSession, secret: str) -> EnrolmentCode:
    """The enrolment code, if it may still be used. Index: uq_enrolment_code_digest."""
    results = (
        await session.execute(
            select(EnrolmentCode, EnrolmentCode.expires_at <= func.now()).where(
                EnrolmentCode.digest == digest_of(secret)
            )
        )
    ).one_or_none()
    remedy = "create a new one with `pullback token enroll`."
    if results is None:
        raise AuthenticationError(f"Unknown enrolment code: check that it is complete, or {remedy}")
    code, expired = results
    if code.used_at is not None:
        raise AuthenticationError(f"This enrolment code was used at {code.used_at:%Y-%m-%d %H:%M} UTC: {remedy}")
    if expired:
        raise AuthenticationError(f"This enrolment code expired at {code.expires_at:%Y-%m-%d %H:%M} UTC: {remedy}")
    return code


async def redeem_code(
    session: AsyncSession, code_id: int, agent_id: AgentId, *, agent_name: str
) -> tuple[StoredToken, NewSecret]:
    """Use up a code and give the agent a token, which ends the one it had. Index: pk_enrolment_code."""
    code = (
        await session.execute(
            update(EnrolmentCode)
            .where(EnrolmentCode.id == code_id, EnrolmentCode.used_at.is_(None))
            .values(used_at=func.now(), agent_id=agent_id)
            .returning(EnrolmentCode.project_id, EnrolmentCode.created_by)
        )
    ).one_or_none()
    if code is None:
        raise AuthenticationError(
            "This enrolment code was used a moment ago: create a new one with `pullback token enroll`."
        )
    scopes: tuple[Scope, ...] = ("agent",)
    await session.execute(
        update(Token).where(Token.agent_id == agent_id, Token.revoked_at.is_(None)).values(revoked_at=func.now())
    )
    return await create_token(
        session,
        name=f"agent {agent_id} ({agent_name})",
        scopes=scopes,
        created_by=code.created_by,
        project_id=ProjectId(code.project_id) if code.project_id is not None else None,
        agent_id=agent_id,
    )


def _no_token(token_id: TokenId) -> NotFoundError:
    return NotFoundError(f"There is no token {token_id}: GET /api/v1/tokens lists them.")


async def _from_now(session: AsyncSession, lifetime: timedelta) -> datetime:
    """The database's clock decides, as it does when the time has come."""
    rows: datetime = (await session.scalars(select(func.now() + lifetime))).one()
    return rows
