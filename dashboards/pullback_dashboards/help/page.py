"""`/help`: reading, uploading, and the glossary."""

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from pullback_dashboards.rendering import json_twin, page
from pullback_dashboards.wording.glossary import GLOSSARY, Word

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class HelpView:
    """The words."""

    words: tuple[Word, ...] = GLOSSARY


@router.get("/help.json")
async def help_json() -> Response:
    """The glossary as JSON."""
    return json_twin(HelpView())


@router.get("/help")
async def help_page(request: Request) -> Response:
    """The page."""
    return page(request, "help.html", title="Help", view=HelpView(), twins=("json",))
