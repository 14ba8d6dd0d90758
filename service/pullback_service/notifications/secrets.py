"""Keys with which messages of webhooks are signed."""

from secrets import token_urlsafe
from typing import Final

MARK: Final = "plb_hook_"
_BYTES: Final = 24


def make_secret() -> str:
    """A new key. It is stored as it is: whoever signs needs the key itself, unlike who checks what he is shown."""
    return MARK + token_urlsafe(_BYTES)
