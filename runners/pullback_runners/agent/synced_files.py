"""Files that a power cut does not lose."""

import os
from pathlib import Path


def write_synced(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write, sync and rename: after this returns a power cut does not lose the file, before it leaves no half of one."""
    partial = path.with_suffix(".partial")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:  # noqa: PTH123 - Path.open knows no mode
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        partial.unlink(missing_ok=True)  # it takes what is left of a full disk
        raise
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
