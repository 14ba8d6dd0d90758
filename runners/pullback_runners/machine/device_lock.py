"""The lock of a device: one file for each, held by the process that measures there.

The kernel gives it back when its holder ends, however it ends. What is in the file says who that was, and counts as long as the
file is locked. Users and containers share locks where they share the folder.
"""

import fcntl
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pullback_service.visible_text import visible

VARIABLE = "PULLBACK_LOCKS"
"""Says another folder."""

_USUAL = Path("/run/lock")
_LONGEST_HOLDER = 64 << 10
"""Characters that are read of a file that anybody may write."""
_LONGEST_SHOWN = 500


class HeldDeviceError(Exception):
    """Error for a device in use by another process, or whose lock cannot be created; one sentence."""


@contextmanager
def device_lock(uuid: str) -> Iterator[None]:
    """Hold the lock of a device while the block lasts; HeldDeviceError says who has it."""
    path = lock_folder() / f"pullback-{uuid.replace('/', '-')}.lock"
    try:
        file = _opened(path)
    except OSError as error:
        raise HeldDeviceError(
            f"the lock {path} cannot be opened ({error.strerror}); name a folder that all who measure here may write in {VARIABLE}"
        ) from error
    with file:
        if not _is_locked(file):
            raise HeldDeviceError(
                f"device {uuid} is held by {_holder(file)}; wait for its end, or name another device in CUDA_VISIBLE_DEVICES"
            )
        file.seek(0)
        file.truncate()
        since = datetime.now(UTC).isoformat(" ", "seconds")
        file.write(json.dumps({"pid": os.getpid(), "command": shlex.join(sys.orig_argv), "since": since}) + "\n")
        file.flush()
        yield


def lock_folder() -> Path:
    """The folder of the locks of this machine."""
    stated = os.environ.get(VARIABLE)
    if stated:
        return Path(stated)
    return _USUAL if os.access(_USUAL, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _opened(path: Path) -> IO[str]:
    """The file, for reading and writing, made if it is not there: by one user, to be locked by all."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        # Without O_CREAT: Linux refuses that of a file of another user in a folder that all may write (fs.protected_regular).
        descriptor = os.open(path, flags)
    else:
        os.fchmod(descriptor, 0o666)  # whatever the umask
    return os.fdopen(descriptor, "r+", encoding="utf-8")


def _holder(file: IO[str]) -> str:
    try:
        known = json.loads(file.readline(_LONGEST_HOLDER))
        pid, command, since = [_shown(known[name]) for name in ("pid", "command", "since")]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # not written yet, or by somebody else
        return "another process"
    return f"process {pid} ({command}) since {since}"


def _shown(written: object) -> str:
    """Text that anybody may have written, on one line, with all of its characters visible, cut after 500 characters."""
    text = " ".join(str(written).split())
    return visible(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def _is_locked(file: IO[str]) -> bool:
    """Lock the file, if nobody holds it for longer than who only looks whether it is free."""
    for wait_s in (0.05, 0.1, None):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if wait_s is not None:
                time.sleep(wait_s)
        else:
            return True
    return False
