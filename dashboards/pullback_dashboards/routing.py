"""Routes of pages with names in their address, which may contain slashes.

A name may hold a slash, which an address has as %2F; servers undo that before anything is routed, and a workload called
`a/compare` would be taken for another page. So these routes look at the address as it was sent. An address that somebody
typed with plain slashes is found as well, where it can mean one thing only.
"""

from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote

from starlette.routing import Match

from pullback_service.routers import LazyRoute

_SLASH: Final = "\udc2f"
"""Stands for a slash inside a name while a route is looked for: half of a surrogate pair, which no name can hold."""


class RawNamesRoute(LazyRoute):
    """A route whose names are those of the address as it was sent."""

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """Match a path as Starlette does, with each name between two slashes."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%2f" not in raw.lower():
            return super().matches(scope)
        path = raw.decode("ascii").replace("%2F", _SLASH).replace("%2f", _SLASH)
        match, scope_found = super().matches({**scope, "path": unquote(path)})
        if match is Match.NONE:
            return match, scope_found
        names = {
            name: value.replace(_SLASH, "/") if isinstance(value, str) else value
            for name, value in scope_found["path_params"].items()
        }
        return match, {**scope_found, "path_params": names}
