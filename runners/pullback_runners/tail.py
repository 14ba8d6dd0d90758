"""The end of a process's output in a file."""

import os
from typing import IO

_MOST_BYTES = 64 << 10


def tail_of(file: IO[bytes]) -> bytes:
    """The last bytes of a file: the process that wrote it may have written without end."""
    file.seek(max(file.seek(0, os.SEEK_END) - _MOST_BYTES, 0))
    return file.read(_MOST_BYTES)
