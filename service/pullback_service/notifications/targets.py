"""Targets of channels: addresses of webhooks, mail addresses."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from pullback_service.egress import HOST, Network, address_in, is_allowed, is_private

LONGEST_TARGET: Final = 2_000
_REMEDY: Final = "give one like https://hooks.example/a/b"


class InvalidTargetError(ValueError):
    """An address that nothing is sent to; the message says why, and what to give."""


def fit_webhook(url: str, networks: Sequence[Network]) -> str:
    """The address of a webhook; an error where it must not be connected to, as far as that is known without asking for its host."""
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise InvalidTargetError(f"The url is no address ({error}); {_REMEDY}") from error
    if parts.scheme not in ("https", "http") or not host or not url.isascii() or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise InvalidTargetError(f"The url is no https address; {_REMEDY}")
    if not HOST.fullmatch(host):
        raise InvalidTargetError(f"The url has no valid host ({host!r}); hosts have letters, digits, dots and dashes")
    address = address_in(host)
    allowed = is_allowed(address, networks) if address is not None else bool(networks)
    if is_private(host) and not allowed:
        raise InvalidTargetError(
            "The url leads to a private address: give a public one, or let the operator add its network to "
            "PULLBACK_ALLOW_NETWORKS"
        )
    if parts.scheme == "http" and not allowed:
        raise InvalidTargetError(f"The url is http, which is accepted in allowed networks only; {_REMEDY}")
    return url


def shown(kind: str, target: str) -> str:
    """A target as it is shown: of a webhook the host, for the rest of its address is a secret."""
    if kind == "email":
        return target
    parts = urlsplit(target)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"
