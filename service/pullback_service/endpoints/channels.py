"""Making, listing, testing and removing channels of notifications; what was delivered on them."""

from typing import Annotated
from uuid import UUID

from fastapi import Query, Response
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.access.authentication import KnownCaller
from pullback_service.addresses import API
from pullback_service.audit.trail import note
from pullback_service.current_settings import KnownSettings
from pullback_service.endpoints.tables import CHANNELS, DELIVERIES
from pullback_service.errors import (
    ConflictError,
    FieldError,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    TooManyRequestsError,
)
from pullback_service.fields import KnownId, Name, Time
from pullback_service.listing import LISTED, KnownListing
from pullback_service.notifications import queries
from pullback_service.notifications.schemas import ChannelRequest, ChannelSummary, DeliverySummary, NewChannel
from pullback_service.notifications.secrets import make_secret
from pullback_service.notifications.targets import InvalidTargetError, fit_webhook
from pullback_service.paging import Page, id_in, page_of, read_cursor
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.routers import api_router
from pullback_service.sessions import ReadSession, WriteSession
from pullback_service.settings import Settings

router = api_router(prefix=f"{API}/channels", tags=["channels"])

DeliveryPlace = TypeAdapter(tuple[Time, UUID])


@router.get("", response_model=Page[ChannelSummary], responses=LISTED)
async def list_channels(listing: KnownListing, project: Annotated[Name | None, Query()] = None) -> Response:
    """Channels in the order of their making, without their secrets."""

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[ChannelSummary]:
        rows = await queries.list_channels(session, project=project, after_id=id_in(cursor), limit=limit + 1)
        return page_of(rows, limit, item=ChannelSummary.of, key=lambda row: (row.channel.id,))

    return await listing.give(read, CHANNELS)


@router.post("", status_code=201, responses=documented(ForbiddenError, NotFoundError, ConflictError, InvalidInputError))
async def create_channel(
    request: ChannelRequest, response: Response, session: WriteSession, caller: KnownCaller, settings: KnownSettings
) -> NewChannel:
    """Make a channel. The answer is the only place where the secret of a webhook is ever shown."""
    target = " ".join(request.to) if request.to is not None else _fit(request.url or "", settings)
    secret = make_secret() if request.kind == "webhook" else None
    stored = await queries.create_channel(
        session,
        await project_by_name(session, request.project),
        name=request.name,
        kind=request.kind,
        target=target,
        secret=secret,
        events=request.events,
        created_by=caller.name,
    )
    summary = ChannelSummary.of(stored)
    note(session, subject=f"channel {summary.id}", project=stored.project, **summary.model_dump(include=_AUDITED))
    response.headers["Cache-Control"] = "no-store"
    return NewChannel(**summary.model_dump(), secret=secret)


@router.delete("/{channel_id}", responses=documented(NotFoundError))
async def remove_channel(session: WriteSession, channel_id: KnownId) -> ChannelSummary:
    """Remove a channel, with what is known of its deliveries; what it was is the answer."""
    summary = ChannelSummary.of(await queries.remove_channel(session, channel_id))
    note(session, subject=f"channel {channel_id}", project=summary.project, **summary.model_dump(include=_AUDITED))
    return summary


@router.post("/{channel_id}/test", status_code=202, responses=documented(NotFoundError, TooManyRequestsError))
async def test_channel(session: WriteSession, caller: KnownCaller, channel_id: KnownId) -> DeliverySummary:
    """Send a test on a channel; its deliveries show the answer. One that was switched off is on again when a test arrives."""
    stored = await queries.test_channel(session, channel_id, asked_by=caller.name)
    channel = await queries.channel_by_id(session, channel_id)
    note(session, subject=f"channel {channel_id}", project=channel.project, name=channel.channel.name)
    return DeliverySummary.of(stored)


@router.get(
    "/{channel_id}/deliveries", response_model=Page[DeliverySummary], responses=LISTED | documented(NotFoundError)
)
async def list_deliveries(listing: KnownListing, session: ReadSession, channel_id: KnownId) -> Response:
    """Messages of a channel with their answers, newest first."""
    await queries.channel_by_id(session, channel_id)

    async def read(session: AsyncSession, cursor: str | None, limit: int) -> Page[DeliverySummary]:
        rows = await queries.list_deliveries(
            session, channel_id, before=read_cursor(cursor, DeliveryPlace), limit=limit + 1
        )
        return page_of(rows, limit, item=DeliverySummary.of, key=lambda row: (row.delivery.created_at, row.delivery.id))

    return await listing.give(read, DELIVERIES)


_AUDITED = {"name", "kind", "target", "events"}


def _fit(url: str, settings: Settings) -> str:
    try:
        return fit_webhook(url, settings.networks())
    except InvalidTargetError as error:
        raise InvalidInputError(str(error), errors=[FieldError(path="$.url", message=str(error))]) from error
