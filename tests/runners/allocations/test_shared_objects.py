"""Shared objects that are linked here, as the tools of others and `ld.so` see them."""

import ctypes
import shutil
import struct
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

from pullback_runners.allocations.native_library import shared_object
from pullback_runners.allocations.shared_objects import UnlinkableError, _adrp, _hash_of, _low_12_bits, link

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
EXPORTED = {
    *("malloc", "calloc", "realloc", "free"),
    *("memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc"),
}


def compiled(text, triple=X86):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.triple = triple
    return llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="small").emit_object(module)


def program_headers(library):
    (count,) = struct.unpack_from("<H", library, 56)
    return [struct.unpack_from("<IIQQQQQQ", library, 64 + 56 * index) for index in range(count)]


@pytest.mark.skipif(not shutil.which("readelf"), reason="readelf is not installed")
@pytest.mark.parametrize("triple", [X86, ARM])
def test_readelf_finds_nothing_wrong_and_every_symbol(triple, tmp_path):
    library = tmp_path / "counter.so"
    library.write_bytes(shared_object(triple))
    read = [shutil.which("readelf"), "--wide"]
    everything = subprocess.run([*read, "-a", str(library)], capture_output=True, text=True, check=True)
    assert everything.stderr == ""
    assert "Shared library: [libc.so.6]" in everything.stdout
    symbols = subprocess.run([*read, "-D", "-s", str(library)], capture_output=True, text=True, check=True)
    assert symbols.stderr == ""
    rows = [line.split() for line in symbols.stdout.splitlines() if "FUNC" in line]
    assert {row[7] for row in rows if row[6] != "UND"} == EXPORTED | {"pullback_native_begin", "pullback_native_end"}
    assert {row[7] for row in rows if row[6] == "UND"} == {
        "__libc_malloc",
        "__libc_calloc",
        "__libc_realloc",
        "__libc_memalign",
        "__libc_valloc",
        "__libc_pvalloc",
        "__libc_free",
        "malloc_usable_size",
    }


@pytest.mark.parametrize("triple", [X86, ARM])
def test_no_byte_can_be_written_and_run_and_nor_can_the_stack(triple):
    for kind, flags, offset, address, *_, alignment in program_headers(shared_object(triple)):
        assert flags & 3 != 3, kind
        assert (address - offset) % alignment == 0
    assert any(kind == 0x6474E551 for kind, *_ in program_headers(shared_object(triple)))


def test_the_same_library_is_made_every_time():
    assert shared_object(X86) == shared_object(X86)


SQUARES = """
@seen = internal global i64 0, section ".data"
@to.labs = internal global ptr @labs, section ".data"
declare i64 @labs(i64)
define i64 @square_of(i64 %x) nounwind {
  %function = load ptr, ptr @to.labs
  %size = call i64 %function(i64 %x)
  %square = mul i64 %size, %size
  atomicrmw add ptr @seen, i64 1 monotonic
  ret i64 %square
}
define i64 @squares_seen() nounwind {
  %seen = load i64, ptr @seen
  ret i64 %seen
}
"""


@pytest.mark.skipif(sys.platform != "linux" or struct.calcsize("P") != 8, reason="ld.so of Linux, 64 bits")
def test_a_library_of_other_functions_loads_and_computes(tmp_path):
    library = tmp_path / "squares.so"
    library.write_bytes(link(compiled(SQUARES, llvm.get_process_triple()), needed="libc.so.6"))
    loaded = ctypes.CDLL(str(library))
    loaded.square_of.restype = loaded.squares_seen.restype = ctypes.c_int64
    assert [loaded.square_of(ctypes.c_int64(x)) for x in (-3, 0, 1 << 20)] == [9, 0, 1 << 40]
    assert loaded.squares_seen() == 3


def test_distances_of_aarch64_are_written_into_the_instructions():
    # adrp x0, +1 page; adrp x0, -1 page; adrp x8, +16 pages: as an assembler writes them
    assert _adrp(0x90000000, 0x2010, 0x1FF0) == 0xB0000000
    assert _adrp(0x90000000, 0x1000, 0x2FFF) == 0xF0FFFFE0
    assert _adrp(0x90000008, 0x10710, 0x500) == 0x90000088
    # add x0, x0, #0x710; ldr x0, [x0, #0x718]
    assert _low_12_bits(0)(0x91000000, 0x10710, 0) == 0x911C4000
    assert _low_12_bits(3)(0xF9400000, 0x10718, 0) == 0xF9438C00


def test_names_are_hashed_as_the_format_says():
    assert _hash_of("") == 0
    assert _hash_of("printf") == 0x077905A6
    assert _hash_of("exit") == 0x0006CF04


@pytest.mark.parametrize(
    ("text", "triple", "complaint"),
    [
        ("define void @f() nounwind { ret void }", "riscv64-unknown-linux-gnu", "ELF machine 243"),
        ("@x = global i64 0", X86, r"section \.bss is neither"),
        ("@x = constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]", X86, r"section \.rodata"),
        ("declare void @g()\ndefine void @f() nounwind { call void @g() ret void }", X86, "code refers to 'g'"),
        ('@x = global i64 1, section ".data"\n@y = global ptr @x, section ".data"', X86, "data refers to 'x'"),
        ("define void @f() { ret void }", "x86_64-apple-darwin", "no ELF object"),
    ],
)
def test_what_an_object_asks_for_beyond_that_is_refused(text, triple, complaint):
    with pytest.raises(UnlinkableError, match=complaint):
        link(compiled(text, triple), needed="libc.so.6")
