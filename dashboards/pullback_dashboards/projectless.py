"""Addresses without a project lead to the same page of the project that was uploaded to last."""

from collections.abc import Callable

from fastapi import Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards import links
from pullback_dashboards.sources import newest_project


async def elsewhere(session: AsyncSession, address: Callable[[str], str]) -> Response:
    """There, or to the overview where there is no project."""
    newest = await newest_project(session)
    return RedirectResponse(address(newest.name) if newest else links.overview(), status_code=307)
