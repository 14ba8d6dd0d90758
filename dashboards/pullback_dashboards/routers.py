"""Routers of pages, whose routes are made as those of the API are: once, and late."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends

from pullback_dashboards.address_limits import bounded
from pullback_service.routers import EVERY_ROUTE, LazyRoute


def page_router(*dependencies: Callable[..., Any], route_class: type[LazyRoute] = LazyRoute) -> APIRouter:
    """A router of pages: of callers who are known, at addresses within their limits, then of what else is asked first."""
    return APIRouter(
        route_class=route_class,
        dependencies=[Depends(bounded), *map(Depends, dependencies)],
        include_in_schema=False,
        **EVERY_ROUTE,
    )
