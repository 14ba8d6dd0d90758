"""The settings of the application that serves a request."""

from typing import Annotated

from fastapi import Request

from pullback_service.runtime import Runtime, instance_of
from pullback_service.settings import Settings

KnownSettings = Annotated[Settings, instance_of(Settings)]


def base_of(request: Request) -> str:
    """The address before each path in links that leave the service: the public one, or else the one that was asked."""
    state = getattr(request.scope.get("app"), "state", None)
    runtime: Runtime | None = getattr(state, "runtime", None)  # none where an error is shown before the start is over
    public = None if runtime is None else runtime.get(Settings).public_url
    return (public or str(request.base_url)).rstrip("/")
