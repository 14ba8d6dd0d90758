"""The token that a command shows to a service."""

import os
from pathlib import Path

from pullback_cli.usage_errors import RefusalError

TOKEN_VARIABLE = "PULLBACK_TOKEN"  # noqa: S105 - the name of a variable, not a secret


def token_in(file: Path | None) -> str | None:
    """The token in a file, or else in the environment; None where there is none."""
    if file is None:
        return _whole(os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE) or None
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RefusalError(f"the token file {file} cannot be read; name a file with the token") from error
    token = _whole(text, f"the token file {file}")
    if not token:
        raise RefusalError(f"the token file {file} is empty; write the token into it")
    return token


def _whole(text: str, where: str) -> str:
    """A token without blanks at its ends. It is never shown: what is said of it is where it stands."""
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise RefusalError(
            f"{where} holds more than one line, or characters that tokens cannot contain; put only the token there"
        )
    return token
