"""Kernels whose work is shared between threads.

    blocks = blocks_of(estimated_ns(flops=2 * m * n * k, bytes_moved=...), rows)
    share(emission, key, "convolution", pointers, blocks, build)    build(function, pointers, block)

A kernel is cut into blocks by its work alone, never by how many threads there are: what is computed is then the same to the
last bit on any number of threads, as long as blocks do not depend on each other. One block is an ordinary call.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.native.emission import Emission
from pullback.backends.native.threads.library import BLAS_ENTER, BLAS_LEAVE, PARALLEL_FOR

SHARED_FROM_NS: Final = 20_000
"""Work below this stays on one thread. To offer blocks takes about a microsecond, if threads do not sleep."""
LEAST_BLOCK_NS: Final = 5_000
"""The length of blocks while there are fewer than `ENOUGH` of them."""
ENOUGH: Final = 16
"""The number of blocks that keeps the threads of most machines busy until the last ones finish together."""
BLOCK_NS: Final = 250_000
"""Blocks are not longer than this, however many there are."""

# One processor at a cautious half of what machines of the last ten years do: work is rather over- than underestimated.
_FLOPS_PER_NS: Final = 20.0
_BYTES_PER_NS: Final = 5.0

BuildBlock: TypeAlias = Callable[[Function, Sequence[str], Index], None]


def estimated_ns(*, flops: float = 0.0, bytes_moved: float = 0.0) -> float:
    """Estimated time of work on one thread; only for `blocks_of`."""
    return max(flops / _FLOPS_PER_NS, bytes_moved / _BYTES_PER_NS)


def blocks_of(work_ns: float, parts: int) -> int:
    """The number of blocks to cut work into that has so many independent parts; 1 where sharing does not pay."""
    if work_ns < SHARED_FROM_NS or parts < 2:
        return 1
    return min(parts, max(min(ENOUGH, round(work_ns / LEAST_BLOCK_NS)), round(work_ns / BLOCK_NS)))


def share(
    emission: Emission, key: Hashable, name: str, pointers: Sequence[str], blocks: int, build: BuildBlock
) -> None:
    """Call a kernel for every block; `build(function, pointers, block)` writes it for one, the first time its key is met.

    The key must hold everything the text depends on but the number of blocks.
    """
    key = (key, blocks)
    if blocks == 1:
        emission.kernel(key, name, pointers, lambda function, arguments: build(function, arguments, 0))
        return
    caller = emission.function
    context = caller.slot("ptr", count=len(pointers), align=8)
    for position, pointer in enumerate(pointers):
        caller.store("ptr", pointer, caller.element(context, position, "ptr"))
    block_function = _of_block(emission, key, name, len(pointers), build)
    parallel_for = emission.module.declare(PARALLEL_FOR, "void", "ptr", "ptr", "i64")
    caller.call("void", parallel_for, ("ptr", f"@{block_function.name}"), ("ptr", context), ("i64", blocks))


def _of_block(emission: Emission, key: Hashable, name: str, pointers: int, build: BuildBlock) -> Function:
    """The function that threads call: the pointers come in memory, then the number of the block."""
    known = emission.module.kernels.get(key)
    if known is not None:
        return known
    function = emission.module.function(f"{name}_block", [("ptr", "context"), ("i64", "block")])
    emission.module.kernels[key] = function
    loaded = [function.load("ptr", function.element("%context", position, "ptr")) for position in range(pointers)]
    build(function, loaded, "%block")
    return function


@contextmanager
def blas_on_this_thread(function: Function) -> Iterator[None]:
    """Calls of BLAS inside do not start threads of its own."""
    function.call("void", function.module.declare(BLAS_ENTER, "void"))
    yield
    function.call("void", function.module.declare(BLAS_LEAVE, "void"))
