"""Errors in the pages' own style: the service's handlers decide status and words, this file only changes the form."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from inspect import isawaitable
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response

from pullback_dashboards import links
from pullback_dashboards.address_errors import ErrorView, error_view
from pullback_dashboards.login.view import login_view
from pullback_dashboards.rendering import page
from pullback_dashboards.threaded_response import ThreadedResponse
from pullback_service.caller import Caller
from pullback_service.errors import NotSignedInError

_Handler = Callable[[Request, Any], Response | Awaitable[Response]]
_NOT_PAGES = ("/api/", "/static/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/redoc")


def style(app: FastAPI) -> None:
    """Wrap every error handler of the application, and what its middleware answers by itself."""
    for kind, handler in list(app.exception_handlers.items()):
        app.exception_handlers[kind] = _styled(handler)
    app.state.dress = dressed


def dressed(request: Request, answer: Response) -> Response:
    """A problem as a page, where a page was asked for."""
    if request.scope["type"] != "http" or not wants_page(request):
        return answer
    view = error_view(request, answer.status_code, _problem(answer))
    return _page(request, view)


def wants_page(request: Request) -> bool:
    """True if an error should answer as a page: a page's address, asked for by something that shows pages."""
    path = request.url.path
    if path.startswith(_NOT_PAGES) or path.endswith((".json", ".csv", ".md", ".svg", ".png", ".atom")):
        return False
    accepted = request.headers.get("accept", "*/*")
    return "text/html" in accepted or accepted.strip() == "*/*"


def _styled(handler: _Handler) -> _Handler:
    async def styled(request: Request, error: Exception) -> Response:
        answered = handler(request, error)
        answer = await answered if isawaitable(answered) else answered
        if request.scope["type"] != "http" or not wants_page(request):
            return answer
        view = error_view(request, answer.status_code, _problem(answer), error)
        if view.status == HTTPStatus.UNAUTHORIZED:
            refusal = None if isinstance(error, NotSignedInError) else view.sentence
            form = login_view(_address(request), needed=True, refusal=refusal, in_place=True)
            shown = page(request, "login.html", title="Sign in", view=form, status=view.status).at_once()
            shown.headers["www-authenticate"] = answer.headers.get("www-authenticate", "Bearer")
            return shown
        if view.status == HTTPStatus.FORBIDDEN or (view.status == HTTPStatus.NOT_FOUND and _may_be_hidden(request)):
            view = replace(view, sign_in_href=links.login(_address(request)))
        shown = _page(request, view)
        for name in ("allow", "retry-after"):
            if name in answer.headers:
                shown.headers[name] = answer.headers[name]
        return shown

    return styled


def _page(request: Request, view: ErrorView) -> ThreadedResponse:
    made = page(request, "error.html", title=view.title, view=view, status=view.status, coming_from=view.project)
    return made.at_once()  # that no thread is free is an error, too


def _may_be_hidden(request: Request) -> bool:
    """True if an object that was not found may exist for those who sign in."""
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
