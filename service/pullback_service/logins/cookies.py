"""The cookie of a login, and the proof that a form came from our own page.

The cookie is HttpOnly and same-site; a write that leans on it must also bring `csrf_of(cookie)`, which only our own
pages can know: as the form's field `csrf`, or as the header `X-CSRF-Token`.
"""

import hashlib
import hmac
from urllib.parse import parse_qs

from fastapi import Request, Response

from pullback_service.logins.queries import LIFETIME

COOKIE = "pullback_session"
CSRF_HEADER = "x-csrf-token"
CSRF_FIELD = "csrf"
FORM = "application/x-www-form-urlencoded"
LONGEST_FORM = 16 * 1024
MOST_FIELDS = 20


def set_cookie(request: Request, response: Response, secret: str) -> None:
    """Let a browser keep a login."""
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(LIFETIME.total_seconds()),
        httponly=True,
        samesite="lax",  # a link from a chat opens the page; writes are refused across sites by `browsers.py` as well
        secure=request.url.scheme == "https",
    )


def clear_cookie(response: Response) -> None:
    """Let a browser forget a login."""
    response.delete_cookie(COOKIE, httponly=True, samesite="lax")


def csrf_of(secret: str) -> str:
    """The proof that belongs to a cookie; it tells nothing about it."""
    return hashlib.sha256(b"csrf " + secret.encode()).hexdigest()


async def brings_proof(request: Request, secret: str) -> bool:
    """Whether a write came from one of our own pages."""
    given = request.headers.get(CSRF_HEADER)
    if given is None:
        given = (await read_form(request)).get(CSRF_FIELD, "")
    return hmac.compare_digest(given.encode("utf-8", "replace"), csrf_of(secret).encode())


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
