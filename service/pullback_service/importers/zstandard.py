"""Zstandard: in the standard library from Python 3.14 on, from its backport before."""

import sys

from pullback_service.errors import FieldError, TooLargeError, UnreadableBodyError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def decompress(body: bytes, limit: int) -> bytes:
    """Every frame of a zstd body; refused as soon as it is more than `limit` bytes."""
    pieces: list[bytes] = []
    size, rest = 0, body
    while rest:
        stream = zstd.ZstdDecompressor()
        fed = rest
        while not stream.eof:
            try:
                piece = stream.decompress(fed, max_length=limit - size + 1)
            except zstd.ZstdError as error:
                raise _unreadable(f"The body starts like zstd but cannot be decompressed ({error}).") from error
            size += len(piece)
            if size > limit:
                raise TooLargeError(
                    f"The body is over the limit of {limit} bytes when decompressed: send less at once, "
                    "or raise PULLBACK_MAX_REPORT_BYTES."
                )
            pieces.append(piece)
            fed = b""
            if stream.needs_input and not piece:
                raise _unreadable("The zstd body ends too early: it was cut off, send it again.")
        rest = stream.unused_data
    return b"".join(pieces)


def compress(body: bytes) -> bytes:
    """A zstd frame."""
    return zstd.compress(body)


def _unreadable(detail: str) -> UnreadableBodyError:
    return UnreadableBodyError(detail, errors=[FieldError(path="$", message=detail)])
