"""Cases of a large report packed apart from each other, so that the page of one reads a twenty-fifth of the file.

Each case is a frame of its own: frames that follow each other are unpacked as one file by whoever knows nothing of this.
Behind them a skippable frame (RFC 8878, 3.1.2) says where each begins, and has the outline, which is all that pages of whole
reports show: of a file of 6 MB it is the fiftieth part, and read in 1 ms instead of 20. What cannot be cut so is packed as one.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pullback_service.importers.memory_estimate import count
from pullback_service.reports.case_bytes import split
from pullback_service.reports.codecs import packed, unpacked
from pullback_service.reports.report_outline import outline
from pullback_service.series.case_identity import identity

TAIL_BYTES: Final = 16_384
"""The size of the end of a stored file that contains its index."""
OUTLINE_TAIL_BYTES: Final = 262_144
"""The size of the end of a stored file that contains its outline and its index, if it ends with `OUTLINED`."""
_FEWEST_BYTES: Final = 65_536
# A report with its slices has a quote in hundreds of bytes; of one without them a frame for each case would be larger.
_BYTES_A_QUOTE: Final = 64
# A case is read whole for the outline, while no other thread runs. One of 20 processes with 100 slices each has 0.1 MB.
_LARGEST_ENTRY_BYTES: Final = 2 * 1024 * 1024
_SKIPPABLE: Final = 0x184D2A50
_MARK: Final = b"PBK1"
OUTLINED: Final = b"PBK2"
_END: Final = struct.Struct("<I4s")
_BETWEEN: Final = b", \t\r\n"


@dataclass(frozen=True, slots=True)
class FrameIndex:
    """Parts of a stored file as (place, bytes): around the cases, and each case by its identity; `cases` names them all."""

    around: tuple[tuple[int, int], tuple[int, int]]
    entries: Mapping[bytes, tuple[int, int]]
    cases: Sequence[Mapping[str, Any]]

    def parts(self, case_identity: bytes) -> Sequence[tuple[int, int]]:
        """The parts that tell of a case: around the cases, and its own; none where it is not among them."""
        entry = self.entries.get(case_identity)
        return () if entry is None else (*self.around, entry)


def packed_apart(file: bytes) -> bytes:
    """A file as it is stored, the cases apart where it is a large report of ours."""
    if len(file) < _FEWEST_BYTES or count(file, b'"') > len(file) // _BYTES_A_QUOTE:
        return packed(file)
    try:
        parts = split(file)
        is_ours = parts is not None and "format" in parts.head  # else our report may be in it
        named = [(each, identity_of(each.case)) for each in parts.cases] if parts is not None and is_ours else []
    except (ValueError, KeyError, TypeError, AttributeError):  # another tool's, or not to be stored at all
        named = []
    if parts is None or not named or max(len(each.entry) for each in parts.cases) > _LARGEST_ENTRY_BYTES:
        return packed(file)
    frames = [packed(file[: named[0][0].at])]
    places: dict[str, tuple[int, int]] = {}
    at = len(frames[0])
    begin = named[0][0].at
    for each, name in named:
        end = each.at + len(each.entry)
        frames.append(packed(file[begin:end]))
        places.setdefault(name.hex(), (at, len(frames[-1])))
        at, begin = at + len(frames[-1]), end
    frames.append(packed(file[begin:]))
    around = (0, len(frames[0])), (at, len(frames[-1]))
    outlined = packed(orjson.dumps(outline(file)))
    index = orjson.dumps(
        {"around": around, "entries": places, "cases": [each.case for each, _ in named], "outline": len(outlined)}
    )
    size = len(index) + _END.size
    if size > TAIL_BYTES:
        return packed(file)
    mark = OUTLINED
    if len(outlined) + size > OUTLINE_TAIL_BYTES:
        outlined, mark = b"", _MARK
    behind = struct.pack("<II", _SKIPPABLE, len(outlined) + size)
    return b"".join([*frames, behind, outlined, index, _END.pack(len(index), mark)])


def index_of(tail: bytes | None) -> FrameIndex | None:
    """The index at the end of a stored file; None where there is none, or it cannot be read: then all of the file is."""
    trailer = _told(tail)
    if trailer is None:
        return None
    try:
        first, rest = ((int(at), int(length)) for at, length in trailer["around"])
        entries = {bytes.fromhex(name): (int(at), int(length)) for name, (at, length) in trailer["entries"].items()}
        return FrameIndex((first, rest), entries, trailer["cases"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def outline_in(tail: bytes | None) -> Any:
    """The outline at the end of a stored file; None where there is none: then all of the file is read. ValueError for a damaged one."""
    trailer = _told(tail)
    if tail is None or trailer is None or not tail.endswith(OUTLINED):
        return None
    end = len(tail) - _END.size - _index_bytes(tail)
    return orjson.loads(unpacked(tail[end - trailer.get("outline", 0) : end]))


def _told(tail: bytes | None) -> dict[str, Any] | None:
    """The index at the end of a stored file as JSON."""
    if tail is None or not tail.endswith((_MARK, OUTLINED)) or not 0 < _index_bytes(tail) <= len(tail) - _END.size:
        return None
    try:
        trailer = orjson.loads(tail[-_END.size - _index_bytes(tail) : -_END.size])
    except ValueError:
        return None
    return trailer if isinstance(trailer, dict) else None


def _index_bytes(tail: bytes) -> int:
    size: int = _END.unpack(tail[-_END.size :])[0] if len(tail) >= _END.size else 0
    return size


def read_parts(parts: Sequence[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document without its cases, and the entry of one, of the parts that `Index.parts` names; else a ValueError."""
    before, behind, entry = map(unpacked, parts)
    return orjson.loads(before + behind), orjson.loads(entry.lstrip(_BETWEEN))


def identity_of(case: Mapping[str, Any]) -> bytes:
    """The identity of a case as a report names it."""
    return identity(case["workload"], case.get("params", {}), case.get("dtype"), case.get("device"))
