"""Out of gzip and zstd, whose files may be one compressed member after the other: bounded in size, members and time.

A member says where it ends only while it is read, and what was fed beyond is handed back as a copy. Fed the whole rest of
the body each, members of twenty bytes took time by the square of their number, minutes for 4 MB. So each is fed little at
first and more the longer it is.
"""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pullback_service.errors import FieldError, TooLargeError, UnreadableBodyError
from pullback_service.importers.limits import MOST_MEMBERS
from pullback_service.zstandard import zstd

_FIRST_PIECE, _LARGEST_PIECE = 1 << 10, 1 << 20
_NULS = re.compile(rb"\x00*")


class _Stream(Protocol):
    """Reads one member."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes | memoryview, most: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of compression. `others` may follow a member that begins with `start`, besides another one like it."""

    name: str
    start: bytes
    open: Callable[[], _Stream]
    error: type[Exception]
    others: tuple[bytes, ...] = ()
    padded: bool = False
    """True if zeros may follow a member: tapes are filled up with them, and gzip reads on."""


# Frames to be skipped, as the seek tables that parallel compressors write (RFC 8878, 3.1.2).
_SKIPPABLE = tuple(bytes([0x50 + number, 0x2A, 0x4D, 0x18]) for number in range(16))
_FORMS = (
    _Form("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31), zlib.error, padded=True),
    _Form("zstd", b"\x28\xb5\x2f\xfd", zstd.ZstdDecompressor, zstd.ZstdError, others=_SKIPPABLE),
)


def is_compressed(body: bytes) -> bool:
    """True if this is gzip or zstd."""
    return any(body.startswith(form.start) for form in _FORMS)


def unpack(body: bytes, limit: int) -> bytes:
    """The content of every member of a gzip or zstd body, as `cat a.gz b.gz` joins them; refused when it is more than `limit`."""
    form = next(form for form in _FORMS if body.startswith(form.start))
    pieces: list[bytes] = []
    at = size = members = 0
    while at < len(body):
        if not body.startswith((form.start, *form.others), at):
            raise _unreadable(f"Data follows the end of the {form.name} body: send the file as the tool wrote it.")
        members += 1
        if members > MOST_MEMBERS:
            raise TooLargeError(
                f"The {form.name} body has more than {MOST_MEMBERS} members (MOST_MEMBERS): compress the file in one piece."
            )
        stream, length = form.open(), _FIRST_PIECE
        while not stream.eof:
            if at >= len(body):
                raise _unreadable(f"The {form.name} body ends too early: it was cut off, send it again.")
            try:
                piece = stream.decompress(memoryview(body)[at : at + length], limit - size + 1)
            except form.error as error:
                raise _unreadable(f"The body starts like {form.name} but cannot be decompressed ({error}).") from error
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
            at = min(at + length, len(body))
            length = min(2 * length, _LARGEST_PIECE)
        at -= len(stream.unused_data)
        if form.padded and (nuls := _NULS.match(body, at)):
            at = nuls.end()
    return b"".join(pieces)


def _too_large(limit: int) -> TooLargeError:
    """The refusal of a body that grows beyond the limit."""
    return TooLargeError(
        f"The body is over the limit of {limit} bytes when decompressed: send less at once, "
        "or raise PULLBACK_MAX_REPORT_BYTES."
    )


def _unreadable(detail: str) -> UnreadableBodyError:
    return UnreadableBodyError(detail, errors=[FieldError(path="$", message=detail)])
