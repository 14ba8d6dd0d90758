"""Making, listing and revoking tokens; making enrolment codes; asking who one is."""

from fastapi import Response
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import KnownCaller
from pullback_service.addresses import API
from pullback_service.endpoints.tables import TOKENS
from pullback_service.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from pullback_service.fields import KnownId
from pullback_service.ids import TokenId
from pullback_service.listing import LISTED, KnownListing
from pullback_service.models.projects import Project
from pullback_service.paging import Page, id_in, page_of
from pullback_service.problems import documented
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession, WriteSession
from pullback_service.tokens import issuance, queries
from pullback_service.tokens.schemas import CodeRequest, NewCode, NewToken, TokenRequest, TokenSummary, Whoami

router = api_router(prefix=API, tags=["tokens"])


@router.post(
    "/tokens", status_code=201, responses=documented(ForbiddenError, NotFoundError, ConflictError, InvalidInputError)
)
async def create_token(
    request: TokenRequest, response: Response, session: WriteSession, caller: KnownCaller
) -> NewToken:
    """Make a token. The answer is the only place its secret is ever shown."""
    stored, secret = await issuance.make_token(session, caller, request)
    response.headers["Cache-Control"] = "no-store"
    return NewToken(**TokenSummary.of(stored).model_dump(), token=secret.secret)


@router.get("/tokens", response_model=Page[TokenSummary], responses=LISTED)
async def list_tokens(listing: KnownListing) -> Response:
    """Tokens without their secrets, oldest first, revoked ones too; with a token of one project those of that project."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[TokenSummary]:
        rows = await queries.list_tokens(session, after_id=id_in(cursor), limit=limit + 1)
        return page_of(rows, limit, item=TokenSummary.of, key=lambda row: (row.token.id,))

    return await listing.give(read, TOKENS)


@router.post("/tokens/{token_id}/revoke", responses=documented(NotFoundError))
async def revoke_token(session: WriteSession, token_id: KnownId) -> TokenSummary:
    """End a token at once, and all logins made with it. Ending it again changes nothing."""
    return TokenSummary.of(await issuance.end_token(session, TokenId(token_id)))


@router.post("/enrolments", status_code=201, responses=documented(ForbiddenError, NotFoundError, InvalidInputError))
async def create_enrolment_code(
    request: CodeRequest, response: Response, session: WriteSession, caller: KnownCaller
) -> NewCode:
    """Make a code with which one agent introduces itself once. It then has a token of its own."""
    secret = await issuance.make_code(session, caller, request)
    response.headers["Cache-Control"] = "no-store"
    assert secret.expires_at is not None  # noqa: S101 - a code always ends
    return NewCode(code=secret.secret, expires_at=secret.expires_at)


@router.get("/whoami")
async def tell_who_asks(session: ReadSession, caller: KnownCaller) -> Whoami:
    """Describe the token of the request: to try out a token, and to see its scopes."""
    projects = None
    if caller.projects is not None:
        projects = sorted((await session.scalars(select(Project.name).where(Project.id.in_(caller.projects)))).all())
    return Whoami(name=caller.name, scopes=sorted(caller.scopes), projects=projects)
