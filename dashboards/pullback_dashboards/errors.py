"""Errors in the pages' own style: the service's handlers decide status and words, this file only changes the form."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from inspect import isawaitable
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from pullback_dashboards import links
from pullback_dashboards.login.view import login_view
from pullback_dashboards.rendering import page
from pullback_service.access.caller import Caller
from pullback_service.errors import NotSignedInError

_Handler = Callable[[Request, Any], Response | Awaitable[Response]]
_NOT_PAGES = ("/api/", "/static/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/redoc")


@dataclass(frozen=True)
class Instead:
    """A page that has what was looked for."""

    text: str
    address: str


@dataclass(frozen=True)
class ErrorView:
    """What went wrong, in the words of the problem document."""

    status: int
    title: str
    detail: str
    remedy: str | None = None
    instead: tuple[Instead, ...] = ()
    sign_in_href: str | None = None


def style(app: FastAPI) -> None:
    """Wrap every error handler of the application, and what its middleware answers by itself."""
    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = _styled(handler)
    app.state.dress = dressed


def dressed(request: Request, answer: Response) -> Response:
    """A problem as a page, where a page was asked for."""
    if request.scope["type"] != "http" or not wants_page(request):
        return answer
    view = error_view(answer.status_code, _problem(answer))
    return page(request, "error.html", title=view.title, view=view, status=view.status)


def wants_page(request: Request) -> bool:
    """Whether an error should answer as a page: a page's address, asked for by something that shows pages."""
    path = request.url.path
    if path.startswith(_NOT_PAGES) or path.endswith((".json", ".csv", ".md", ".svg", ".png", ".atom")):
        return False
    accepted = request.headers.get("accept", "*/*")
    return "text/html" in accepted or accepted.strip() == "*/*"


def error_view(status: int, problem: object) -> ErrorView:
    """The view of a problem document; whatever is not one is told by its status alone."""
    said = problem if isinstance(problem, dict) else {}
    title = said.get("title")
    detail = said["detail"] if isinstance(said.get("detail"), str) else "The service gave no further reason."
    return ErrorView(
        status=status,
        title=title if isinstance(title, str) else f"The page answered {status}",
        detail=detail,
        remedy="; ".join(_untold(said.get("errors"), detail)) or None,
        instead=tuple(_instead(said.get("instead"))),
    )


def _untold(listed: object, detail: str) -> Iterator[str]:
    """What is wrong besides: the detail tells the first thing in the same words."""
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and str(one.get("message")).rstrip(".") not in detail:
            yield f"{one.get('path')}: {one.get('message')}"


def _instead(listed: object) -> Iterator[Instead]:
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("text"), str) and isinstance(one.get("address"), str):
            yield Instead(one["text"], one["address"])


def _styled(handler: _Handler) -> _Handler:
    async def styled(request: Request, error: Exception) -> Response:
        answered = handler(request, error)
        answer = await answered if isawaitable(answered) else answered
        if request.scope["type"] != "http" or not wants_page(request):
            return answer
        view = error_view(answer.status_code, _problem(answer))
        if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
            view = replace(view, title="No such page", detail=f"There is no page at {request.url.path}.")
        if view.status == HTTPStatus.UNAUTHORIZED:
            refusal = None if isinstance(error, NotSignedInError) else view.detail
            form = login_view(_address(request), needed=True, refusal=refusal, in_place=True)
            shown = page(request, "login.html", title="Sign in", view=form, status=view.status)
            shown.headers["www-authenticate"] = answer.headers.get("www-authenticate", "Bearer")
            return shown
        if view.status == HTTPStatus.NOT_FOUND and _may_be_hidden(request):
            view = replace(view, sign_in_href=links.login(_address(request)))
        shown = page(request, "error.html", title=view.title, view=view, status=view.status)
        for name in ("allow", "retry-after"):
            if name in answer.headers:
                shown.headers[name] = answer.headers[name]
        return shown

    return styled


def _may_be_hidden(request: Request) -> bool:
    """Whether what was not found may be there for those who sign in."""
    caller = getattr(request.state, "caller", None)
    return isinstance(caller, Caller) and caller.anonymous


def _address(request: Request) -> str:
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path


def _problem(answer: Response) -> object:
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return None
