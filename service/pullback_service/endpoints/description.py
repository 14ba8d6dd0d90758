"""The description of the API for programs."""

from fastapi import Request, Response

from pullback_service.addresses import OPENAPI
from pullback_service.answers import KnownAnswering
from pullback_service.routers import api_router

router = api_router(tags=["operation"])


@router.get(OPENAPI, include_in_schema=False)
async def describe_api(request: Request, answering: KnownAnswering) -> Response:
    """The OpenAPI document, with a tag by which a client asks whether it has changed."""
    return answering.plain(request.app.openapi())
