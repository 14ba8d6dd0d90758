"""Cases of a large report packed apart from each other, so that the page of one reads a twenty-fifth of the file.

Each case is a frame of its own: frames that follow each other are unpacked as one file by whoever knows nothing of this.
Behind them a skippable frame (RFC 8878, 3.1.2) says where each begins. What cannot be cut so is packed as one.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pullback_service.reports.packing import packed, unpacked
from pullback_service.reports.splitting import split
from pullback_service.series.cases import identity

TAIL_BYTES: Final = 16_384
"""As much of the end of a stored file has its index."""
_FEWEST_BYTES: Final = 65_536
# A report with its slices has a quote in hundreds of bytes; of one without them a frame for each case would be larger.
_BYTES_A_QUOTE: Final = 64
_SKIPPABLE: Final = 0x184D2A50
_MARK: Final = b"PBK1"
_END: Final = struct.Struct(f"<I{len(_MARK)}s")
_BETWEEN: Final = b", \t\r\n"


@dataclass(frozen=True, slots=True)
class Index:
    """Parts of a stored file as (place, bytes): around the cases, and each case by its identity; `cases` names them all."""

    around: tuple[tuple[int, int], tuple[int, int]]
    entries: Mapping[bytes, tuple[int, int]]
    cases: Sequence[Mapping[str, Any]]

    def parts(self, wanted: bytes) -> Sequence[tuple[int, int]]:
        """The parts that tell of a case: around the cases, and its own; none where it is not among them."""
        entry = self.entries.get(wanted)
        return () if entry is None else (*self.around, entry)


def packed_apart(file: bytes) -> bytes:
    """A file as it is stored, the cases apart where it is a large report of ours."""
    if len(file) < _FEWEST_BYTES or file.count(b'"') > len(file) // _BYTES_A_QUOTE:
        return packed(file)
    try:
        parts = split(file)
        is_ours = parts is not None and "format" in parts.head  # else our report may be in it
        named = [(each, identity_of(each.case)) for each in parts.cases] if parts is not None and is_ours else []
    except (ValueError, KeyError, TypeError, AttributeError):  # another tool's, or not to be stored at all
        named = []
    if parts is None or not named:
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
    index = orjson.dumps({"around": around, "entries": places, "cases": [each.case for each, _ in named]})
    end_of_file = index + _END.pack(len(index), _MARK)
    if len(end_of_file) > TAIL_BYTES:
        return packed(file)
    return b"".join([*frames, struct.pack("<II", _SKIPPABLE, len(end_of_file)), end_of_file])


def index_of(tail: bytes | None) -> Index | None:
    """The index at the end of a stored file; None where there is none, or it cannot be read: then all of the file is."""
    if tail is None or len(tail) < _END.size:
        return None
    size, mark = _END.unpack(tail[-_END.size :])
    if mark != _MARK or size > len(tail) - _END.size:
        return None
    try:
        told = orjson.loads(tail[-_END.size - size : -_END.size])
        first, rest = ((int(at), int(length)) for at, length in told["around"])
        entries = {bytes.fromhex(name): (int(at), int(length)) for name, (at, length) in told["entries"].items()}
        return Index((first, rest), entries, told["cases"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_parts(parts: Sequence[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document without its cases, and the entry of one, of the parts that `Index.parts` names; else a ValueError."""
    before, behind, entry = map(unpacked, parts)
    return orjson.loads(before + behind), orjson.loads(entry.lstrip(_BETWEEN))


def identity_of(case: Mapping[str, Any]) -> bytes:
    """The identity of a case as a report names it."""
    return identity(case["workload"], case.get("params", {}), case.get("dtype"), case.get("device"))
