"""Files that appear whole or not at all."""

import os
import tempfile
from pathlib import Path

from pullback_runners.errors import UsageError


def write_text(text: str, path: Path, option: str = "-o") -> None:
    """Write a file so that a reader sees the old one or the whole new one, never half of it.

    A pipe or a device, as in `-o /dev/stdout`, is written to: it must not be replaced by a file.
    """
    path = path.resolve()
    unfinished: Path | None = None
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as file:
                file.write(text)
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        unfinished = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        unfinished.chmod(0o644)
        unfinished.replace(path)
    except OSError as error:
        if unfinished is not None:
            unfinished.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {error.strerror}; give another file to {option}") from error
