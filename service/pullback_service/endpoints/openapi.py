"""The description of the API for programs."""

import orjson
from fastapi import Request, Response

from pullback_service.addresses import OPENAPI
from pullback_service.background_threads import in_background
from pullback_service.conditional_requests import KnownAnswering
from pullback_service.routers import api_router

router = api_router(tags=["operation"])


@router.get(OPENAPI, include_in_schema=False)
async def describe_api(request: Request, answering: KnownAnswering) -> Response:
    """The OpenAPI document, with a tag by which a client asks whether it has changed."""
    state = request.app.state
    if not hasattr(state, "description"):  # 280 kB and seconds of a processor, the same until the process ends
        state.description = await in_background(lambda: orjson.dumps(request.app.openapi()))
    return answering.written(state.description)
