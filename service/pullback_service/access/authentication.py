"""Authentication and authorization of requests, and the caller that their work is charged to.

Local mode (no PULLBACK_AUTH) needs no token; one that is sent must still be valid, so that a wrong one is noticed early.
With PULLBACK_AUTH=token a request shows `Authorization: Bearer TOKEN` or a login's cookie, or is nobody's and reads
public projects. The secret of PULLBACK_TOKEN_FILE is the bootstrap token: it has every right and makes the others.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import Depends, Request
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import caller as callers
from pullback_service.access.budgets import Budgets
from pullback_service.access.recent_keys import RecentKeys
from pullback_service.access.scopes import OPEN, Need, need_of
from pullback_service.caller import Caller
from pullback_service.client_network import network_of
from pullback_service.cross_site_requests import SAFE_METHODS
from pullback_service.database import seeing_all_projects
from pullback_service.errors import AuthenticationError, ForbiddenError, NotSignedInError
from pullback_service.ids import AgentId, ProjectId, TokenId
from pullback_service.logins.cookies import COOKIE, has_csrf_token
from pullback_service.logins.queries import login_by_secret, open_login
from pullback_service.models.projects import Project
from pullback_service.models.tokens import Token
from pullback_service.request_work import current
from pullback_service.runtime import instance_of
from pullback_service.tokens.queries import USED_AGAIN_AFTER, note_used, token_by_digest, unused_code
from pullback_service.tokens.secrets import CODE_MARK, TOKEN_MARK, digest_of

MAKE_ONE = "create one with `pullback token create` on the service's machine"

ENROL_ONE = (
    "create a code with `pullback token enroll` on the service's machine and pass it to `pullback agent --token-file`"
)


UNKNOWN_S: Final = 10.0
"""An unknown token is looked up again after so many seconds: a CI whose token was deleted goes on sending it."""
REFUSED_AGAIN_S: Final = 60.0
"""A repeated refusal of a caller gets another line in the audit log after so many seconds."""
KNOWN_S: Final = 3600.0
"""Seconds for which credentials that named a caller are not taken for a guess."""
MOST_REMEMBERED: Final = 1_000


class Authenticator:
    """The authentication of requests. Of the bootstrap token only a digest stays in memory."""

    def __init__(self, *, required: bool, bootstrap: str | None, of_tokens: Budgets, of_addresses: Budgets) -> None:
        self.required = required
        self.bootstrap_digest = digest_of(bootstrap) if bootstrap is not None else None
        self._of_tokens = of_tokens
        self._of_addresses = of_addresses
        self._unknown = RecentKeys(UNKNOWN_S, MOST_REMEMBERED)
        self._known = RecentKeys(KNOWN_S, MOST_REMEMBERED)
        self.told_of = RecentKeys(REFUSED_AGAIN_S, MOST_REMEMBERED)
        """Callers and operations of refusals that the audit log has."""

    async def admit(self, request: Request, session: AsyncSession) -> Caller:
        """The caller of a request that may be served, or an error that says why it may not."""
        route = request.scope.get("route")
        need = need_of(request.method, getattr(route, "path", ""))
        if need is OPEN:  # whoever asks is told the same, and nobody looks who it is
            return callers.NOBODY
        if need.limited or (need.scope is not None and not _says_who(request)) or self._is_one_guess_too_many(request):
            self._admit_address(request)
        try:
            if need.scope is None:
                return await self._whoever(request, session)
            caller = await self._identify(request, session, need)
        except AuthenticationError:
            if _says_who(request):
                self._admit_address(request)
            raise
        if _says_who(request) and not caller.anonymous:
            self._known.note(_shown(dict(request.scope["headers"])))
        if self.required and not caller.anonymous:
            self._of_tokens.admit(caller.name, current())
        elif _says_who(request):
            self._admit_address(request)
        if not caller.has(need.scope):
            request.state.caller = caller
            raise ForbiddenError(
                f"{_capital(caller.name)} has scope {' and '.join(sorted(caller.scopes))}, and {request.method} "
                f"{request.url.path} needs {need.scope}: use a token with that scope; "
                + (f"{ENROL_ONE}." if need.scope == "agent" else f"{MAKE_ONE} (--scope {need.scope}).")
            )
        return caller

    async def caller_of_token(self, session: AsyncSession, secret: str) -> Caller:
        """The rights of a token, or an error that says what is wrong with it."""
        digest = digest_of(secret)
        # Digests have one length, so the comparison tells nothing about the secret, not even how long it is.
        if self.bootstrap_digest is not None and hmac.compare_digest(digest, self.bootstrap_digest):
            return callers.BOOTSTRAP
        if not secret.startswith(TOKEN_MARK):
            raise AuthenticationError(
                f"This is not a token of this service: tokens begin with {TOKEN_MARK} ({MAKE_ONE}); "
                "the bootstrap token is in the file PULLBACK_TOKEN_FILE of the service."
            )
        token = await self._looked_up(session, digest)
        if token is None:
            raise AuthenticationError(
                f"Unknown token: check the address of the service and that the token is complete, or use a new one; "
                f"{MAKE_ONE}."
            )
        return await self._of_row(session, token)

    async def sign_in(self, session: AsyncSession, secret: str) -> tuple[str, str]:
        """Begin a login with a token: the secret of its cookie, and whose it is."""
        if not secret:
            raise AuthenticationError("No token given: paste one into the field.")
        async with seeing_all_projects(session):  # whose session this is to be is not known yet
            caller = await self.caller_of_token(session, secret)
        if not caller.has("read"):
            raise ForbiddenError(
                f"{_capital(caller.name)} has no read access: sign in with a token with the scope read."
            )
        bootstrap = self.bootstrap_digest if caller.token_id is None else None
        return await open_login(session, token_id=caller.token_id, bootstrap_digest=bootstrap), caller.name

    def known(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """The credentials of a request, as a digest, if they named a caller within the last hour."""
        credential = _shown(headers)
        return credential if credential in self._known else None

    def _is_one_guess_too_many(self, request: Request) -> bool:
        """True if it takes a look into the database to know the caller, and the address has none left."""
        return (
            self.required
            and _says_who(request)
            and self.known(dict(request.scope["headers"])) is None
            and self._of_addresses.is_spent(_network_of(request))
        )

    def _admit_address(self, request: Request) -> None:
        if self.required:
            self._of_addresses.admit(_network_of(request), current())

    async def _looked_up(self, session: AsyncSession, digest: bytes) -> Token | None:
        """The token; one that the database did not have a moment ago it does not have now: nobody is given one that was guessed."""
        if digest in self._unknown:
            return None
        token = await token_by_digest(session, digest)
        if token is None:
            self._unknown.note(digest)
        return token

    async def _whoever(self, request: Request, session: AsyncSession) -> Caller:
        """The caller of an endpoint open to everybody: a token may still name one; an expired login is nobody."""
        if not self.required and "authorization" not in request.headers:
            return callers.LOCAL
        if _bearer(request) is None:
            login = await self._by_cookie(request, session)
            return login or callers.anonymous(frozenset())
        return await self._identify(request, session, Need(None))

    async def _identify(self, request: Request, session: AsyncSession, need: Need) -> Caller:
        secret = _bearer(request)
        if secret is not None:
            if secret.startswith(CODE_MARK):
                return await self._by_code(request, session, secret)
            return await self.caller_of_token(session, secret)
        if not self.required:
            return callers.LOCAL
        login = await self._by_cookie(request, session)
        if login is not None:
            if request.method not in SAFE_METHODS and not await has_csrf_token(request, request.cookies[COOKIE]):
                raise ForbiddenError(
                    "Requests authenticated by cookie need the page's CSRF token (the form field `csrf` or the header "
                    "X-CSRF-Token): load the page again and repeat, or send a token."
                )
            return login
        if need.public and request.method in SAFE_METHODS:
            public = await _public_projects(session)
            if public:
                return callers.anonymous(public)
        raise _stranger(need)

    async def _by_code(self, request: Request, session: AsyncSession, secret: str) -> Caller:
        code = await unused_code(session, secret)
        if not request.url.path.endswith("/agents/enroll"):
            raise ForbiddenError(
                "An enrolment code can only enrol an agent: pass it to `pullback agent --token-file`, "
                "which then receives a token."
            )
        projects = frozenset({ProjectId(code.project_id)}) if code.project_id is not None else None
        request.state.enrolment_code_id = code.id
        return Caller(f"enrolment code {code.id}", frozenset({"agent"}), projects)

    async def _by_cookie(self, request: Request, session: AsyncSession) -> Caller | None:
        secret = request.cookies.get(COOKIE)
        login = await login_by_secret(session, secret) if secret else None
        if secret is None or login is None:
            return None
        if login.token is None:
            digest = login.bootstrap_digest
            if (
                digest is None
                or self.bootstrap_digest is None
                or not hmac.compare_digest(digest, self.bootstrap_digest)
            ):
                return None
            caller = callers.BOOTSTRAP
        else:
            try:
                caller = await self._of_row(session, login.token)
            except AuthenticationError:
                return None  # revoked or expired meanwhile: as if signed out
        return caller

    async def _of_row(self, session: AsyncSession, token: Token) -> Caller:
        now = (await session.scalars(select(func.now()))).one()
        for ended, how in ((token.revoked_at, "was revoked"), (token.expires_at, "expired")):
            if ended is not None and ended <= now:
                remedy = MAKE_ONE if token.agent_id is None else f"to enrol the agent again, {ENROL_ONE}"
                raise AuthenticationError(f"Token {token.name!r} {how} at {ended:%Y-%m-%d %H:%M} UTC: {remedy}.")
        if token.last_used_at is None or token.last_used_at < now - USED_AGAIN_AFTER:
            await note_used(session, TokenId(token.id))
        return Caller(
            name=f"token {token.name!r}",
            scopes=frozenset(scope for scope in callers.SCOPES if scope in token.scopes),
            projects=frozenset({ProjectId(token.project_id)}) if token.project_id is not None else None,
            token_id=TokenId(token.id),
            agent_id=AgentId(token.agent_id) if token.agent_id is not None else None,
            may_make_projects="admin" in token.scopes,
        )


async def _caller(request: Request) -> Caller:
    caller = request.state.caller
    assert isinstance(caller, Caller)  # noqa: S101 - the application's first dependency puts it there
    return caller


KnownCaller = Annotated[Caller, Depends(_caller)]
KnownGate = Annotated[Authenticator, instance_of(Authenticator)]


def enrolment_code_of(request: Request) -> int | None:
    """The id of the enrolment code a request came with instead of a token."""
    result = getattr(request.state, "enrolment_code_id", None)
    return result if isinstance(result, int) else None


def address_of(request: Request) -> str | None:
    """The address of a request's client; behind a proxy the server must be told to trust it (FORWARDED_ALLOW_IPS)."""
    return request.client.host if request.client is not None else None


def _network_of(request: Request) -> str:
    return network_of(address_of(request) or "")


def _stranger(need: Need) -> AuthenticationError:
    """The error for a request without credentials."""
    if need.scope == "agent":
        return AuthenticationError(f"Agents must be enrolled with this service: {ENROL_ONE}.")
    return NotSignedInError(
        f"This service requires a token: send it as `Authorization: Bearer TOKEN`; {MAKE_ONE}. Browsers sign in at /login."
    )


async def _public_projects(session: AsyncSession) -> frozenset[ProjectId]:
    rows = await session.scalars(select(Project.id).where(Project.public_read))
    return frozenset(ProjectId(project_id) for project_id in rows)


def _bearer(request: Request) -> str | None:
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "bearer":
        raise AuthenticationError("Send the token as `Authorization: Bearer TOKEN`.")
    return value.strip()


def _says_who(request: Request) -> bool:
    """True if a request brings what may name its caller."""
    return "authorization" in request.headers or COOKIE in request.cookies


def _shown(headers: Mapping[bytes, bytes]) -> bytes:
    """A digest of what may name the caller: secrets do not stay in memory."""
    return hashlib.sha256(headers.get(b"authorization") or headers.get(b"cookie", b"")).digest()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
