"""Kernels whose blocks need memory while they run: rooms, of which a block takes a free one and gives it back.

There are as many rooms as blocks, so one is always free. A thread that does one block after the other has the same room
again, which is in its cache. What a block computes must not depend on what it finds there.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.native.emission import Emission
from pullback.backends.native.threads.sharing import share
from pullback.dataclass import dataclass

BuildInRoom: TypeAlias = Callable[[Function, Sequence[str], Index, str], None]


@dataclass(frozen=True, slots=True)
class Rooms:
    """Memory for as many rooms as there are blocks, 64 at the most, and the bytes of one."""

    memory: str
    nbytes: int


def share_with_rooms(
    emission: Emission,
    key: Hashable,
    name: str,
    pointers: Sequence[str],
    blocks: int,
    rooms: Rooms,
    build: BuildInRoom,
) -> None:
    """Share blocks as `share` does, with memory for each block: `build(function, pointers, block, room)`."""
    nbytes = rooms.nbytes
    if blocks == 1:
        share(emission, key, name, [*pointers, rooms.memory], 1, lambda f, given, n: build(f, given[:-1], n, given[-1]))
        return
    taken = emission.function.slot("i64", 0, align=64)

    def build_in_room(function: Function, arguments: Sequence[str], block: Index) -> None:
        *given, memory, taken = arguments
        room, bit = _take(function, taken)
        build(function, given, block, function.element(memory, function.mul(room, nbytes), "i8"))
        others = function.value(f"xor i64 {bit}, -1")
        function.value(f"atomicrmw and ptr {taken}, i64 {others} release, align 8")

    share(emission, key, name, [*pointers, rooms.memory, taken], blocks, build_in_room)


def _take(function: Function, taken: str) -> tuple[str, str]:
    """The first free room, by the bits of those that are taken, and its bit."""
    again, found = function.new_label("again"), function.new_label("found")
    function.do(f"br label %{again}")
    function.open(again)
    before = function.value(f"load atomic i64, ptr {taken} monotonic, align 8")
    free = function.value(f"xor i64 {before}, -1")
    trailing = function.module.declare("llvm.cttz.i64", "i64", "i64", "i1")
    room = function.call("i64", trailing, ("i64", free), ("i1", "false"))
    bit = function.value(f"shl i64 1, {room}")
    after = function.value(f"or i64 {before}, {bit}")
    exchanged = function.value(f"cmpxchg ptr {taken}, i64 {before}, i64 {after} acquire monotonic")
    function.do(f"br i1 {function.value(f'extractvalue {{ i64, i1 }} {exchanged}, 1')}, label %{found}, label %{again}")
    function.open(found)
    return room, bit
