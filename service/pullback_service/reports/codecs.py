"""Compression of stored files: in zstd, and those from before 2026-11 in zlib, as their first bytes show.

Pages of a report read all of it. 6 MB of times are unpacked in 6 ms, where zlib takes 30, and packed in 18 instead of 64,
a fifth smaller (docs/decisions/0068).
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from pullback_service.zstandard import zstd

_OPTIONS: Final[Mapping[int, int]] = {
    # Times are noise in most of their digits: higher levels take two to ten times as long and find nothing more.
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,  # or a bit that a disk turned around would be read as a digit
}
_ZSTD: Final = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1; no zlib stream begins so (RFC 1950: its method is 8)


def packed(file: bytes) -> bytes:
    """A file as it is stored."""
    return zstd.compress(file, options=_OPTIONS)


def unpacked(stored: bytes) -> bytes:
    """The file as it came; ValueError where it is not as it was stored."""
    try:
        return b"".join(_frames(stored)) if stored.startswith(_ZSTD) else zlib.decompress(stored)
    except (zstd.ZstdError, zlib.error) as error:
        raise ValueError(f"not as it was stored: {error}") from error


def unpacked_bytes(stored: bytes) -> int:
    """About how many bytes the file had: zstd says so, and zlib makes a tenth of a report."""
    if not stored.startswith(_ZSTD):
        return 10 * len(stored)
    try:
        return sum(zstd.get_frame_info(frame).decompressed_size or 0 for frame in _packed_frames(stored))
    except zstd.ZstdError:
        return len(stored)  # damaged, as is said when it is read


def _frames(stored: bytes) -> Iterator[bytes]:
    """Each frame unpacked. `zstd.decompress` copies, behind each frame, all that follow it."""
    return map(zstd.decompress, _packed_frames(stored))


def _packed_frames(stored: bytes) -> Iterator[memoryview]:
    rest = memoryview(stored)
    while rest:
        frame, rest = rest[: (size := zstd.get_frame_size(rest))], rest[size:]
        yield frame
