"""Opening, finding and closing logins."""

from dataclasses import dataclass
from datetime import timedelta
from secrets import token_urlsafe

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.ids import TokenId
from pullback_service.models.logins import Login
from pullback_service.models.tokens import Token
from pullback_service.tokens.secrets import digest_of

LIFETIME = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class OpenLogin:
    """A login that has not ended: its token, or None for one with the bootstrap token of this digest."""

    token: Token | None
    bootstrap_digest: bytes | None


async def open_login(session: AsyncSession, *, token_id: TokenId | None, bootstrap_digest: bytes | None) -> str:
    """Begin a login and return the secret of its cookie; what has expired is swept away meanwhile."""
    await session.execute(delete(Login).where(Login.expires_at < func.now()))
    secret = token_urlsafe(24)
    session.add(
        Login(
            digest=digest_of(secret),
            token_id=token_id,
            bootstrap_digest=bootstrap_digest,
            expires_at=func.now() + LIFETIME,
        )
    )
    await session.flush()
    return secret


async def login_by_secret(session: AsyncSession, secret: str) -> OpenLogin | None:
    """The login of a cookie, if it has not ended. Index: uq_login_digest, pk_token."""
    row = (
        await session.execute(
            select(Login.bootstrap_digest, Token)
            .join(Token, Token.id == Login.token_id, isouter=True)
            .where(Login.digest == digest_of(secret), Login.expires_at > func.now())
        )
    ).one_or_none()
    return OpenLogin(row[1], row[0]) if row is not None else None


async def close_login(session: AsyncSession, secret: str) -> None:
    """End a login. Index: uq_login_digest."""
    await session.execute(delete(Login).where(Login.digest == digest_of(secret)))
