"""Making secrets and recognising them. Pure but for the operating system's randomness.

A secret is 24 random bytes, so a plain SHA-256 keeps it: slow hashes are for what people can remember.
"""

import hashlib
from secrets import token_urlsafe

TOKEN_MARK = "plb_"  # noqa: S105 - what secrets begin with, so that scanners and people recognise them
CODE_MARK = "plb_enroll_"
PREFIX_LENGTH = len(TOKEN_MARK) + 6
_BYTES = 24


def make_token() -> str:
    """A new token."""
    # A random part that begins like an enrolment code would be taken for one; one in 10**13 does.
    while (made := TOKEN_MARK + token_urlsafe(_BYTES)).startswith(CODE_MARK):
        pass
    return made


def make_code() -> str:
    """A new enrolment code."""
    return CODE_MARK + token_urlsafe(_BYTES)


def digest_of(secret: str) -> bytes:
    """The stored form of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def prefix_of(token: str) -> str:
    """The part of a token that lists show."""
    return token[:PREFIX_LENGTH]
