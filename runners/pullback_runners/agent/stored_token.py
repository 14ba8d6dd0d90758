"""The stored token of an agent, which it got for its enrolment code: the code works once, so the token must outlive the process."""

import os
from pathlib import Path

FILE = "token"


def read_own_token(data: Path) -> str | None:
    """The token this data folder's agent was given, or None."""
    try:
        return (data / FILE).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def store_token(data: Path, token: str) -> None:
    """Write the token where only this account reads it; a half-written file never has the name."""
    draft = data / f"{FILE}.new"
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123 - Path.open knows no mode
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(data / FILE)
