"""The token that a command shows to a service."""

import os
from pathlib import Path

from pullback_cli.refusals import RefusalError

TOKEN_VARIABLE = "PULLBACK_TOKEN"  # noqa: S105 - the name of a variable, not a secret


def token_in(file: Path | None) -> str | None:
    """The token in a file, or else in the environment; None where there is none."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusalError(f"the token file {file} cannot be read; name a file with the token") from error
    return token or None
