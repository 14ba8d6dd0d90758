"""Errors of a device in one sentence: memory that it does not have, and errors of kernels, which are asynchronous and sticky.

A kernel that fails is noticed by whoever asks the device next, which may be another plan, or `pb.fetch`. Where the variable
`CUDA_LAUNCH_BLOCKING` is 1 each launch waits for its end, and the operation that is named is the one that failed.
"""

import os
import traceback
from types import TracebackType
from typing import NoReturn

from pullback.errors import DeviceError

#: The name of a program's text, by which its lines are found in tracebacks.
SOURCE = "<pullback program>"

#: The name that a program has the lines of its listing by, which are those of `plan.explain()`.
LINES = "lines_of_program"

#: Sticky errors, after which a process cannot use the device any more: by the driver's code, in the driver's words.
STICKY = {
    700: "an illegal memory access was encountered",
    702: "the launch timed out and was terminated",
    709: "context is destroyed",
    710: "device-side assert triggered",
    714: "hardware stack error",
    715: "an illegal instruction was encountered",
    716: "misaligned address",
    717: "operation not supported on global/shared address space",
    718: "invalid program counter",
    719: "unspecified launch failure",
}


def is_blocking() -> bool:
    """True if each launch waits for its end."""
    return os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"


def sticky_error(message: str) -> DeviceError:
    """The error after which a process cannot use the device any more."""
    unusable = "this process cannot use the device any more: start another"
    if is_blocking():
        return DeviceError(f"{message}; {unusable}")
    return DeviceError(
        f"{message}, an asynchronous error of a kernel that was queued before; {unusable}, "
        "with CUDA_LAUNCH_BLOCKING=1 to see which operation failed"
    )


def raise_device_error(error: RuntimeError, where: str = "", *, peak_bytes: int | None = None) -> NoReturn:
    """Raise an error of the device in one sentence, any other as it is.

    `where` says what was computed, if no line of a program does. `peak_bytes` is the most memory that a program needs at once.
    """
    line, message = line_of(error.__traceback__), " ".join(str(error).split())
    if isinstance(error, DeviceError):
        if not line or message.startswith("line "):
            raise error
        raise DeviceError(f"{line}: {message}") from error
    where = line or where
    if type(error).__name__ == "OutOfMemoryError":
        traceback.clear_frames(error.__traceback__)  # they hold what the call has made so far
        facts = (
            message.partition(" Of the allocated memory")[0]
            .rstrip(".")
            .replace(". Tried", ", tried")
            .replace(". ", ", ")
        )
        needed = "" if peak_bytes is None else f"; the plan needs {peak_bytes:,} bytes at once"
        raise DeviceError(
            f"{where or 'memory for a plan'}: {facts}{needed}; free arrays, or use a smaller size"
        ) from error
    head = f"{where}: " if where else ""
    for words in STICKY.values():
        if words in message:
            raise sticky_error(f"{head}CUDA error: {words}") from error
    raise error


def line_of(tb: TracebackType | None) -> str:
    """The innermost line of a program that an error is of, in words; nothing if it is of none."""
    found = ""
    for frame, number in traceback.walk_tb(tb):
        if frame.f_code.co_filename == SOURCE and LINES in frame.f_globals:
            line = frame.f_globals[LINES][number - 1].partition("  # ")[0].strip()
            found = f"line {number} of the program, `{line}`"
    return found
