"""Handling of every request: an id, a line in the log, a count, and headers that keep browsers on the safe side.

Plain ASGI, because Starlette's own base class for middleware breaks up streaming and the notice of a closed connection.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pullback_service.client_network import network_of
from pullback_service.cross_site_requests import refusal
from pullback_service.logs import logger
from pullback_service.metrics import Metrics
from pullback_service.problems import problem, unexpected
from pullback_service.process_memory import collect_between_requests
from pullback_service.request_turns import RequestTurns
from pullback_service.request_work import RequestWork, serve

# For data: whatever a browser makes of it, it loads and runs nothing. Pages and charts say themselves what they need.
SECURITY_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
# What logs and figures say of a caller who left before the body was read; no such answer is ever sent.
GONE = 499
LIVENESS = "/healthz"
QUIET_PATHS = frozenset({LIVENESS, "/readyz", "/metrics"})


class RequestMiddleware:
    """The middleware."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, known: Callable[[Mapping[bytes, bytes]], bytes | None], *, local: bool
    ) -> None:
        self._app = app
        self._known = known
        self._local = local
        self._metrics = metrics
        self._turns = RequestTurns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        request_id = _request_id(headers.get(b"x-request-id", b""))
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.perf_counter()
        status = 0  # until an answer has begun
        work = RequestWork()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                known = {name.lower() for name, _ in message.get("headers", ())}
                message["headers"] = [
                    *message.get("headers", ()),
                    *(header for header in SECURITY_HEADERS if header[0] not in known),
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        try:
            await serve(work, self._serve(scope, receive, send_with_headers, headers))
        except ClientDisconnect:
            status = status or GONE  # nobody is there to be answered, and nothing was stored
        except Exception as error:
            answer = unexpected(scope["path"], error)
            work.refused = "unexpected"
            if status:
                raise  # too late for another answer: the server cuts the connection
            await _dressed(scope, answer)(scope, receive, send_with_headers)
        finally:
            duration_s = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", None) or "unmatched"
            self._metrics.count(scope["method"], route, status, duration_s, work)
            log = logger.debug if scope["path"] in QUIET_PATHS else logger.info
            log(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                duration_ms=round(1000 * duration_s, 1),
                work_ms=round(1000 * work.seconds, 1),
            )
            asyncio.get_running_loop().call_soon(collect_between_requests)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, headers: Mapping[bytes, bytes]) -> None:
        # Who asks is not looked up yet: by what it shows, where that named somebody lately, or by where it comes from.
        caller = self._known(headers) or network_of((scope.get("client") or ("",))[0])
        if scope["path"] != LIVENESS:  # by which a process is ended that does not answer
            await self._turns.turn(caller)
        if b"content-length" in headers and b"transfer-encoding" in headers:
            await _dressed(scope, _two_lengths())(scope, receive, send)
            return
        reason = refusal(scope["method"], headers, local=self._local)
        if reason is not None:
            await _dressed(scope, problem(403, "cross-site", "Refused", reason))(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _two_lengths() -> Response:
    """The answer to a body of which a proxy in front may have seen another end: the connection takes no request more."""
    return problem(
        400,
        "two-lengths",
        "Two lengths",
        "The request has Content-Length and Transfer-Encoding, which may contradict each other: send one of them.",
        headers={"Connection": "close"},
    )


def _dressed(scope: Scope, answer: Response) -> Response:
    """The answer as pages would give it, where there are pages: they leave `dress` with the application."""
    dress = getattr(scope["app"].state, "dress", None)
    if dress is None:
        return answer
    try:
        headers = dress(Request(scope), answer)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the page of an error, the error is told
        logger.error("unexpected_error", path=scope["path"], exc_info=error)
        return answer
    assert isinstance(headers, Response)  # noqa: S101 - as the pages have it
    return headers


def _request_id(given: bytes) -> str:
    """The caller's own id where it is fit to be logged, else a new one."""
    text = given.decode("latin-1")
    return text if re.fullmatch(r"[\w.:-]{1,64}", text, re.ASCII) else uuid4().hex
