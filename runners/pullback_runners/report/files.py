"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

from pullback_runners.errors import UsageError


def write_text(text: str, path: Path, option: str = "-o") -> None:
    """Write the file that an option names; UsageError says why it cannot be written."""
    try:
        write_whole(text, path)
    except OSError as error:
        raise UsageError(f"cannot write {path.resolve()}: {error.strerror}; give another file to {option}") from error


def write_whole(text: str, path: Path) -> None:
    """Write a file so that a reader sees the old one or the whole new one, never half of it.

    A pipe or a device, as in `-o /dev/stdout`, is written to: it must not be replaced by a file.
    """
    content, path = text.encode(), path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        unfinished.chmod(0o644)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
