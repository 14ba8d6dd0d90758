"""Products of a program that its CUDA graph has as branches, one beside the other.

A product of a library with fewer tiles than the device has multiprocessors leaves some of them idle. Such products that depend on
nothing of each other are brought together in a group: each but the last runs on a stream of its own, which waits for all that comes
before the group, and what comes after the group waits for all of them. The members of a group run at the same time, so that memory which one
of them reads or writes is needed as long as any of them runs (`Text.moments`).

docs/decisions/0209-independent-products-are-branches-of-the-graph.md has the rule, and what it is to be changed by.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import prod

from pullback.backends.cuda.statements import Statement
from pullback.ir.graph import Node

#: Products of one group at most: each but one has a stream, for which cuBLAS keeps a workspace.
MOST_BRANCHES = 4

#: Statements behind a product among which others are looked for that may run beside it.
REACH = 24

#: Rows and columns of what one multiprocessor computes at a time, in kernels of cuBLAS and cuDNN for large products.
TILE = 128

#: Multiprocessors of an H100 or H200.
MULTIPROCESSORS = 132

CONVOLUTIONS = frozenset({"conv", "conv_data_gradient", "conv_weight_gradient"})

_branching: ContextVar[bool] = ContextVar("pullback_branching", default=True)


@contextmanager
def one_after_the_other() -> Iterator[None]:
    """Compile plans whose graphs have no branches, to be compared with."""
    token = _branching.set(False)
    try:
        yield
    finally:
        _branching.reset(token)


def is_small(node: Node, multiprocessors: int) -> bool:
    """True for a product of matrices or a convolution with fewer tiles than the device has multiprocessors."""
    shape = node.outputs[0].type.shape if node.outputs else ()
    shapes = [atom.type.shape for atom in node.inputs]
    match node.primitive.name:
        case "matmul" if min(map(len, shapes)) > 1:
            count, rows, columns = prod(shape[:-2]), shape[-2], shape[-1]
            if len(shapes[1]) == 2:  # one product of all rows
                count, rows = 1, count * rows
        case "conv" | "conv_data_gradient":
            count, rows, columns = 1, shape[0] * prod(shape[2:]), shape[1]
        case "conv_weight_gradient":
            count, rows, columns = 1, prod(shape[1:]), shape[0]
        case _:
            return False
    return 0 < count * -(-rows // TILE) * -(-columns // TILE) < multiprocessors


def branched(statements: Sequence[Statement], root: Callable[[str], str]) -> list[Statement]:
    """The statements with groups of products brought together; `root` gives the name of the memory that a value lies in.

    A product comes earlier than statements whose results it does not read, and which do not touch what it writes. Names of memory that
    it reads come with it.
    """
    if not _branching.get():
        return list(statements)
    found, group = [], 0
    left = list(statements)
    while left:
        first = left.pop(0)
        members, views = _companions(first, left[:REACH], root) if first.may_branch else ([], [])
        if not members:
            found.append(first)
            continue
        group += 1
        found += [left[number] for number in views]
        found += _grouped([first, *(left[number] for number in members)], group)
        left = [one for number, one in enumerate(left) if number not in (*members, *views)]
    return found


def _grouped(members: Sequence[Statement], group: int) -> Iterator[Statement]:
    """The members with their streams; the last is on the stream of all that is in no group, behind the starts of the others."""
    *beside, last = members
    for number, one in enumerate(beside, 1):
        yield replace(one, group=group, branch=number)
    yield replace(last, group=group)


def _companions(
    first: Statement, after: Sequence[Statement], root: Callable[[str], str]
) -> tuple[list[int], list[int]]:
    """Numbers of the statements that can come right behind a product and run beside it, and of the views that these need."""
    members: list[int] = []
    views: list[int] = []
    touched, written, assigned = set[str](), set[str](), set[str]()

    def comes_before(one: Statement) -> None:
        """Note what a statement touches, writes and names, which others have to stay behind."""
        touched.update(map(root, one.names))
        if not one.writes:
            assigned.update(one.targets)
        if not one.sees:
            written.update(map(root, (*one.targets, *one.over)))

    comes_before(first)
    needed = 0
    for number, one in enumerate(after):
        reads = not any(name in assigned or root(name) in written for name in one.used)
        if one.sees and reads:
            views.append(number)
            continue
        if one.may_branch and reads and touched.isdisjoint(map(root, one.targets)) and len(members) < MOST_BRANCHES - 1:
            members.append(number)
            needed = number
        comes_before(one)
    return members, [number for number in views if number < needed]
