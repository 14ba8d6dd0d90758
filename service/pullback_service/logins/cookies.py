"""The cookie of a login, and the CSRF tokens of its writes.

The cookie is HttpOnly and same-site; a write with it must also bring `csrf_of(cookie)`, which only our own pages can
know: as the form's field `csrf`, or as the header `X-CSRF-Token`. Pages write it masked, anew for every answer.
"""

import hashlib
import hmac
import re
import secrets
from urllib.parse import parse_qs

from fastapi import Request, Response

from pullback_service.logins.queries import LIFETIME

COOKIE = "pullback_session"
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
FORM = "application/x-www-form-urlencoded"
_MASKED = re.compile("[0-9a-f]{128}")
LONGEST_FORM = 16 * 1024
MOST_FIELDS = 60  # a page of incidents, each with its box


def set_cookie(request: Request, response: Response, secret: str) -> None:
    """Let a browser keep a login."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(LIFETIME.total_seconds()),
        httponly=True,
        samesite="lax",  # a link from a chat opens the page; writes are refused across sites by `cross_site_requests.py` as well
        secure=request.url.scheme == "https",
    )


def clear_cookie(response: Response) -> None:
    """Let a browser forget a login."""
    response.delete_cookie(COOKIE, httponly=True, samesite="lax")


def csrf_of(secret: str) -> str:
    """The CSRF token that belongs to a cookie; it tells nothing about it."""
    return hashlib.sha256(b"csrf " + secret.encode()).hexdigest()


def masked_csrf_of(secret: str) -> str:
    """The same token, never written the same way twice: what a compressed page weighs then tells nothing of it (BREACH)."""
    token = bytes.fromhex(csrf_of(secret))
    pad = secrets.token_bytes(len(token))
    return pad.hex() + _xor(pad, token).hex()


def _unmasked(given: str) -> str:
    """The token inside a masked one; anything else as it is."""
    if not _MASKED.fullmatch(given):
        return given
    both = bytes.fromhex(given)
    return _xor(both[: len(both) // 2], both[len(both) // 2 :]).hex()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


async def has_csrf_token(request: Request, secret: str) -> bool:
    """True if a request carries the CSRF token of a page of ours."""
    given = request.headers.get(CSRF_HEADER)
    if given is None:
        given = (await read_form(request)).get(CSRF_FIELD, "")
    return hmac.compare_digest(_unmasked(given).encode("utf-8", "replace"), csrf_of(secret).encode())


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a small form; nothing where the body is something else."""
    length = request.headers.get("content-length", "")
    if not request.headers.get("content-type", "").startswith(FORM) or not length.isdigit():
        return {}
    if int(length) > LONGEST_FORM:
        return {}
    text = (await request.body()).decode("utf-8", "replace")
    if text.count("&") >= MOST_FIELDS:
        return {}
    fields = parse_qs(text, keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}
