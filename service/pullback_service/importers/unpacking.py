"""Decompression of an upload to plain bytes, or to the files of an archive: bounded before, during and after.

Compression is told by the first bytes, so that `curl --data-binary @file.gz` works with and without a
`Content-Encoding`. Archives are read in memory and never written anywhere: names that climb, links and devices are
refused all the same, because nobody sends them by accident.
"""

import codecs
import io
import tarfile
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NoReturn

from pullback_service.errors import FieldError, TooLargeError, UnreadableBodyError
from pullback_service.importers import compression
from pullback_service.importers.limits import MOST_FILES, MOST_JSON_CONTAINERS, MOST_JSON_VALUES, MOST_LAYERS
from pullback_service.importers.memory_estimate import BLOCK_BYTES, count, refuse_long_strings

SEND_THE_FILE = "send the file itself, as with `curl --data-binary @FILE`"

_USTAR = slice(257, 262)


def decompress(body: bytes, limit: int) -> bytes:
    """The bytes inside at most two layers of gzip or zstd; refused as soon as they are more than `limit`."""
    for _ in range(MOST_LAYERS):
        if not compression.is_compressed(body):
            return body
        body = compression.unpack(body, limit)
    if compression.is_compressed(body):
        _unreadable(f"The body is compressed more than {MOST_LAYERS} times (MOST_LAYERS): send it compressed once.")
    return body


def refuse_too_many_values(body: bytes) -> None:
    """Raise where a body holds more values, more arrays and objects, or a longer string, than are read.

    What strings hold is counted too.
    """
    if len(body) <= MOST_JSON_CONTAINERS:
        return
    if count(body, b"{[") > MOST_JSON_CONTAINERS:
        what = f"{MOST_JSON_CONTAINERS} arrays and objects (MOST_JSON_CONTAINERS)"
    elif count(body, b",") >= MOST_JSON_VALUES:  # each value but the first follows a comma
        what = f"{MOST_JSON_VALUES} values (MOST_JSON_VALUES)"
    else:
        refuse_long_strings(body)
        return
    raise TooLargeError(f"The body holds more than {what}: send a part of it at a time.")


def is_longer(body: bytes, limit: int) -> bool:
    """True if a body is longer than `limit` when it is decompressed; no more than that is decompressed to know it."""
    if len(body) > limit:
        return True
    try:
        return len(decompress(body, limit)) > limit
    except TooLargeError:
        return True
    except UnreadableBodyError:
        return False  # which is said when it is read


def in_utf8(body: bytes) -> bytes:
    """Text without a byte order mark, and in UTF-8 where one says that it is in UTF-16: as shells of Windows write files."""
    if body.startswith(codecs.BOM_UTF8):
        return body.removeprefix(codecs.BOM_UTF8)
    if not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body
    try:
        decoder = codecs.getincrementaldecoder("utf-16")()
        places = range(0, len(body), BLOCK_BYTES)
        return b"".join(decoder.decode(body[at : at + BLOCK_BYTES], at == places[-1]).encode() for at in places)
    except UnicodeError as error:
        _unreadable(
            "The body begins like UTF-16 but is not valid UTF-16: send the file as the tool wrote it, in UTF-8.", error
        )


def is_archive(body: bytes) -> bool:
    """True if this is a tar archive."""
    return body[_USTAR] == b"ustar"


def files_of(body: bytes) -> Mapping[str, bytes]:
    """The regular files of a tar archive by their names."""
    results: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as archive:
            for member in archive:
                if member.isdir():
                    continue
                name = _safe_name(member)
                if len(results) >= MOST_FILES:
                    raise TooLargeError(
                        f"The archive has more than {MOST_FILES} files (MOST_FILES): send a part of it at a time."
                    )
                content = archive.extractfile(member)
                # The sizes of all members together are bounded by the decompressed body, which holds them.
                results[name] = content.read() if content is not None else b""
                if len(results[name]) != member.size:
                    _unreadable(f"The archive ends inside {name}: it was cut off, send it again.")
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        _unreadable(f"The archive cannot be read as tar ({error}).", error)
    return results


def _safe_name(member: tarfile.TarInfo) -> str:
    """The name of a plain file that stays inside the archive, without a `./` before it."""
    excerpt = ascii(member.name[:120])
    if not member.isreg() or member.issparse():
        _unreadable(f"The archive holds {excerpt}, which is not a regular file: remove links and devices.")
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        _unreadable(f"The archive holds {excerpt}, a path outside of the archive: pack the folder from inside.")
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in member.name):
        _unreadable(f"The archive holds {excerpt}, a name with control characters: rename it.")
    return str(path)


def _unreadable(detail: str, cause: Exception | None = None) -> NoReturn:
    raise UnreadableBodyError(detail, errors=[FieldError(path="$", message=detail)]) from cause
