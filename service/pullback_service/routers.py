"""Routers whose routes are made once, and late.

FastAPI makes all that it needs of a route when it is declared, 3 ms of processor time for each of two hundred, and once more for
every router and application that it is included in. Ours are made when they are first asked for or described, and are never
included: applications take them as they are, and share them.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import compile_path, get_name

from pullback_service import problems
from pullback_service.access.admission import authenticated
from pullback_service.body_limits import MOST_BYTES, BodyMemory
from pullback_service.importers.unpacking import refuse_too_many_values
from pullback_service.runtime import runtime_of

MOST_BYTES_OF: Final[Mapping[str, int | None]] = {
    "tell_log": 16 * 1024 * 1024,
    "upload_report": None,
    "report_result": None,
    "append_log": None,
}
"""The longest bodies of operations that take more: 5,000 commits with titles of 2,000 characters. Reports and logs of jobs are read, and bounded, by their endpoints."""


class LazyRoute(APIRoute):
    """A route of which its address is known; the rest is made when somebody asks for it.

    FastAPI decodes a body before it solves the first dependency: what asks who calls, and what bounds the body, stands around its handler.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path, self.endpoint = path, endpoint
        self.name = options.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options = options

    def __getattr__(self, name: str) -> Any:
        """Make the rest: whatever is not there belongs to it."""
        options = self.__dict__.pop("_options", None)
        if options is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        super().__init__(self.path, self.endpoint, **options)
        return getattr(self, name)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Serve callers who may ask, with a body within its bounds."""
        handle = super().get_route_handler()
        is_json = self.body_field is not None
        most_bytes = MOST_BYTES_OF.get(self.name, MOST_BYTES)

        async def serve(request: Request) -> Response:
            with runtime_of(request.app).get(BodyMemory).holding(request, most_bytes) as body:
                async with authenticated(body):
                    if is_json:
                        refuse_too_many_values(await body.body())
                    return await handle(body)

        return serve


def _name_of(route: APIRoute) -> str:
    """Operations are called what their functions are: in the description, in the client and in the audit log."""
    return route.name


EVERY_ROUTE: dict[str, Any] = {
    "generate_unique_id_function": _name_of,
    # Every error of every endpoint has one form; without this FastAPI documents its own for 422.
    "responses": {"default": {"description": "A problem (RFC 9457)", "content": problems.CONTENT}},
}


def api_router(*, tags: Sequence[str], prefix: str = "") -> APIRouter:
    """A router of the API."""
    return APIRouter(route_class=LazyRoute, prefix=prefix, tags=[*tags], **EVERY_ROUTE)
