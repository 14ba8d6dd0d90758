"""Who may ask: one secret for everything, for now.

Local mode (no PULLBACK_AUTH) needs no token; one that is sent must still be valid, so that a wrong one is noticed early.
With PULLBACK_AUTH=token every request needs `Authorization: Bearer SECRET`; browsers, which cannot send that, may read
with the secret as the password of their own login dialog. Health checks stay open.
"""

import hashlib
import hmac
from base64 import b64decode
from binascii import Error as Base64Error

from fastapi import Request

from pullback_service.errors import AuthenticationError

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
READING = frozenset({"GET", "HEAD"})


class Gate:
    """Compares what a request brings with the secret, of which only a digest stays in memory."""

    def __init__(self, *, required: bool, secret: str | None) -> None:
        self._required = required
        self._digest = hashlib.sha256(secret.encode()).digest() if secret is not None else None

    def check(self, request: Request) -> None:
        """Let a request through, or raise."""
        if request.url.path in OPEN_PATHS:
            return
        header = request.headers.get("authorization")
        if header is None:
            if self._required:
                raise AuthenticationError("This service needs a token: send it as `Authorization: Bearer TOKEN`.")
            return
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "bearer":
            given = value.strip()
        elif scheme.lower() == "basic" and request.method in READING:
            given = _password(value)
        else:
            raise AuthenticationError("Send the token as `Authorization: Bearer TOKEN`.")
        if self._digest is None:
            raise AuthenticationError("This service has no tokens (PULLBACK_TOKEN_FILE is not set): send none.")
        # Digests have one length, so the comparison tells nothing about the secret, not even how long it is.
        if not hmac.compare_digest(hashlib.sha256(given.encode("utf-8", "replace")).digest(), self._digest):
            raise AuthenticationError("This token is not valid here: compare it with the one of PULLBACK_TOKEN_FILE.")


def _password(value: str) -> str:
    try:
        return b64decode(value, validate=True).decode().partition(":")[2]
    except (Base64Error, UnicodeDecodeError) as error:
        raise AuthenticationError("The Authorization header cannot be read.") from error
