"""Links an object file of LLVM's into a shared object that `ld.so` loads, without a linker on the machine.

Only what a counter of malloc needs: one ELF64 object for x86-64 or AArch64, whose code (`.text`) reaches its own data
(`.data`) and nothing else, and whose data holds addresses of functions of libc. So the code is finished here, and all that
is left to `ld.so` are those addresses. Whatever else an object asks for is refused.

    first segment, read and run      ELF header, program headers, hash table, symbols, names, relocations, code
    second segment, read and write   dynamic table, data

The format: Tool Interface Standard, ELF 1.2; the relocations: the System V ABI supplements of both processors.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<qQ")

_IDENTITY = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little endian, version 1, System V
_SHARED_OBJECT = 3
_LOAD, _DYNAMIC_SEGMENT, _STACK = 1, 2, 0x6474E551
_RUN, _WRITE, _READ = 1, 2, 4
_UNDEFINED, _SYMBOLS, _RELOCATIONS = 0, 2, 4
_GLOBAL, _FUNCTION = 1, 2
_PAGE = 1 << 16  # the largest page of either processor

_NEEDED, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _RELAENT, _STRSZ, _SYMENT = 1, 4, 5, 6, 7, 8, 9, 10, 11


class UnlinkableError(Exception):
    """An object asks for more than is linked here; the message says what."""


@dataclass(frozen=True)
class _Symbol:
    name: str
    is_global: bool
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class _Relocation:
    at: int
    kind: int
    symbol: _Symbol
    addend: int


@dataclass(frozen=True)
class _Object:
    """The parts of an object file that are needed: code and data, their places in its section table, and references between them."""

    machine: int
    text: bytes
    data: bytes
    text_section: int
    data_section: int
    symbols: tuple[_Symbol, ...]
    of_text: tuple[_Relocation, ...]
    of_data: tuple[_Relocation, ...]


def link(compiled: bytes, needed: str) -> bytes:
    """The shared object of an object file, which finds the functions it does not define in the library `needed`."""
    source = _read(compiled)
    machine = _MACHINES.get(source.machine)
    if machine is None:
        raise UnlinkableError(f"ELF machine {source.machine} is neither x86-64 nor AArch64")
    imports = list(dict.fromkeys(relocation.symbol for relocation in source.of_data))
    exports = [symbol for symbol in source.symbols if symbol.is_global and symbol.section == source.text_section]
    names = _Names([needed, *(symbol.name for symbol in (*imports, *exports))])

    # Every part's length is known before its content, so places come first.
    count = 1 + len(imports) + len(exports)
    lengths = {
        "headers": _HEADER.size + 4 * _PROGRAM_HEADER.size,
        "hash": 4 * (2 + _bucket_count(count) + count),
        "symbols": _SYMBOL.size * count,
        "names": len(names.text),
        "relocations": _RELOCATION.size * len(source.of_data),
        "text": len(source.text),
        "dynamic": _DYNAMIC.size * 10,
        "data": len(source.data),
    }
    ends = accumulate((_aligned(length) for length in lengths.values()), initial=0)
    offsets = dict(zip(lengths, ends, strict=False))
    addresses = {part: at + (_PAGE if part in {"dynamic", "data"} else 0) for part, at in offsets.items()}
    bases = {source.text_section: addresses["text"], source.data_section: addresses["data"]}

    parts = {
        "headers": _headers(source.machine, offsets, addresses, lengths),
        "hash": _hash_table([symbol.name for symbol in (*imports, *exports)]),
        "symbols": _symbol_table(names, imports, exports, bases),
        "names": names.text,
        "relocations": b"".join(
            _relocation_of_data(relocation, machine, imports, addresses["data"]) for relocation in source.of_data
        ),
        "text": _finished_text(source, machine, bases),
        "dynamic": _dynamic_table(names[needed], addresses, lengths),
        "data": source.data,
    }
    return b"".join(part.ljust(_aligned(lengths[name]), b"\0") for name, part in parts.items())


def _aligned(length: int) -> int:
    return -(-length // 16) * 16


# Reading


def _read(compiled: bytes) -> _Object:
    if compiled[:6] != _IDENTITY[:6]:
        raise UnlinkableError("no ELF object of 64 bits, little endian")
    header = _HEADER.unpack_from(compiled)
    machine, sections_at, section_count, names_section = header[2], header[6], header[12], header[13]
    headers = [_SECTION_HEADER.unpack_from(compiled, sections_at + 64 * index) for index in range(section_count)]
    contents = [b"" if kind == 8 else compiled[at : at + size] for _, kind, _, _, at, size, *_ in headers]
    named = {_string(contents[names_section], header[0]): index for index, header in enumerate(headers)}
    text_section, data_section = named[".text"], named.get(".data", -1)
    for name, index in named.items():
        flags, size = headers[index][2], headers[index][5]
        if flags & 2 and size and index not in {text_section, data_section}:  # SHF_ALLOC: would be in memory
            raise UnlinkableError(f"section {name} is neither code nor data")
    (table,) = (index for index, header in enumerate(headers) if header[1] == _SYMBOLS)
    strings = contents[headers[table][6]]
    symbols = tuple(
        _Symbol(_string(strings, name), info >> 4 == _GLOBAL, section, value, size)
        for name, info, _, section, value, size in _SYMBOL.iter_unpack(contents[table])
    )
    relocations: dict[int, list[_Relocation]] = {text_section: [], data_section: []}
    for header, content in zip(headers, contents, strict=True):
        if header[1] == _RELOCATIONS and header[7] in relocations:
            relocations[header[7]] += [
                _Relocation(at, info & 0xFFFFFFFF, symbols[info >> 32], addend)
                for at, info, addend in _RELOCATION.iter_unpack(content)
            ]
    return _Object(
        machine,
        contents[text_section],
        contents[data_section] if data_section >= 0 else b"",
        text_section,
        data_section,
        symbols,
        tuple(relocations[text_section]),
        tuple(relocations[data_section]),
    )


def _string(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


# Relocations: how a distance from the code to the data is written into an instruction


@dataclass(frozen=True)
class _Machine:
    address: int
    """The relocation that writes a symbol's whole address: the only kind that is left to `ld.so`."""
    distances: Mapping[int, Callable[[int, int, int], int]]
    """Functions from (current word, wanted address, address of the word) to the new word, by kind of relocation."""


def _adrp(word: int, target: int, place: int) -> int:
    pages = (target >> 12) - (place >> 12)
    return word | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _low_12_bits(shift: int) -> Callable[[int, int, int], int]:
    return lambda word, target, _place: word | (target & 0xFFF) >> shift << 10


_MACHINES = {
    62: _Machine(  # x86-64: R_X86_64_64; PC32, PLT32
        1, dict.fromkeys((2, 4), lambda _word, target, place: (target - place) & 0xFFFFFFFF)
    ),
    183: _Machine(  # AArch64: ABS64; ADR_PREL_PG_HI21, ADD_ABS_LO12_NC, LDST8 to LDST64_ABS_LO12_NC
        257,
        {275: _adrp, 277: _low_12_bits(0), **{kind: _low_12_bits(s) for s, kind in enumerate((278, 284, 285, 286))}},
    ),
}


def _finished_text(source: _Object, machine: _Machine, bases: Mapping[int, int]) -> bytes:
    text = bytearray(source.text)
    for relocation in source.of_text:
        write = machine.distances.get(relocation.kind)
        if write is None or relocation.symbol.section not in bases:
            raise UnlinkableError(
                f"code refers to {relocation.symbol.name!r} by a relocation of kind {relocation.kind}"
            )
        target = bases[relocation.symbol.section] + relocation.symbol.value + relocation.addend
        place = bases[source.text_section] + relocation.at
        (word,) = struct.unpack_from("<I", text, relocation.at)
        struct.pack_into("<I", text, relocation.at, write(word, target, place))
    return bytes(text)


def _relocation_of_data(relocation: _Relocation, machine: _Machine, imports: list[_Symbol], base: int) -> bytes:
    if relocation.kind != machine.address or relocation.symbol.section != _UNDEFINED:
        raise UnlinkableError(f"data refers to {relocation.symbol.name!r} by a relocation of kind {relocation.kind}")
    symbol = 1 + imports.index(relocation.symbol)
    return _RELOCATION.pack(base + relocation.at, symbol << 32 | relocation.kind, relocation.addend)


# Tables that ld.so reads


class _Names:
    """A table of names, each ended by a zero, that begins with the empty one."""

    def __init__(self, names: list[str]) -> None:
        self.text = b"\0"
        self._places = {}
        for name in names:
            self._places[name] = len(self.text)
            self.text += name.encode() + b"\0"

    def __getitem__(self, name: str) -> int:
        return self._places[name]


def _symbol_table(names: _Names, imports: list[_Symbol], exports: list[_Symbol], bases: Mapping[int, int]) -> bytes:
    info = _GLOBAL << 4 | _FUNCTION
    rows = [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    rows += [_SYMBOL.pack(names[symbol.name], info, 0, _UNDEFINED, 0, 0) for symbol in imports]
    rows += [  # the section is any that is not "undefined", as none are listed
        _SYMBOL.pack(names[symbol.name], info, 0, 1, bases[symbol.section] + symbol.value, symbol.size)
        for symbol in exports
    ]
    return b"".join(rows)


def _hash_table(names: list[str]) -> bytes:
    """A bucket is the head of a chain of symbols, which 0 ends."""
    count = len(names) + 1
    bucket_count = _bucket_count(count)
    buckets, chains = [0] * bucket_count, [0] * count
    for symbol, name in enumerate(names, start=1):
        bucket = _hash_of(name) % bucket_count
        chains[symbol], buckets[bucket] = buckets[bucket], symbol
    return struct.pack(f"<{2 + bucket_count + count}I", bucket_count, count, *buckets, *chains)


def _bucket_count(symbols: int) -> int:
    return symbols | 1  # the hash of a name has little to say in its lowest bits


def _hash_of(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value ^= (value & 0xF0000000) >> 24
        value &= 0x0FFFFFFF
    return value


def _dynamic_table(needed: int, addresses: Mapping[str, int], lengths: Mapping[str, int]) -> bytes:
    entries = {
        _NEEDED: needed,
        _HASH: addresses["hash"],
        _STRTAB: addresses["names"],
        _STRSZ: lengths["names"],
        _SYMTAB: addresses["symbols"],
        _SYMENT: _SYMBOL.size,
        _RELA: addresses["relocations"],
        _RELASZ: lengths["relocations"],
        _RELAENT: _RELOCATION.size,
        0: 0,
    }
    return b"".join(_DYNAMIC.pack(tag, value) for tag, value in entries.items())


def _headers(
    machine: int, offsets: Mapping[str, int], addresses: Mapping[str, int], lengths: Mapping[str, int]
) -> bytes:
    second = offsets["dynamic"]
    second_length = offsets["data"] + lengths["data"] - second
    start = addresses["dynamic"]
    segments = [
        (_LOAD, _READ | _RUN, 0, 0, 0, second, second, _PAGE),
        (_LOAD, _READ | _WRITE, second, start, start, second_length, second_length, _PAGE),
        (_DYNAMIC_SEGMENT, _READ | _WRITE, second, start, start, lengths["dynamic"], lengths["dynamic"], 8),
        (_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16),  # without it the whole process' stack could be run
    ]
    header = _HEADER.pack(
        _IDENTITY, _SHARED_OBJECT, machine, 1, 0, _HEADER.size, 0, 0, 64, _PROGRAM_HEADER.size, len(segments), 64, 0, 0
    )
    return header + b"".join(_PROGRAM_HEADER.pack(*segment) for segment in segments)
