"""Loops whose rows do not meet, cut into blocks of rows that go through all steps on their own.

The rows of a carry are the examples of a recurrent layer, or the particles of a simulation: a row of the next step depends on the
same row of this one, and on what is the same in all steps. Threads then wait for each other once, behind the last step, instead
of behind every kernel of every step.

Every block reads the constants of the loop in every step, so these have to stay in the second cache.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pullback.backends.llvm.elementary import scalars
from pullback.backends.native.emission import may_decline
from pullback.backends.native.threads.sharing import SHARED_FROM_NS
from pullback.control.scan_rule import Layout
from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.ir.graph import Atom, Graph, Node, Var
from pullback.rules.contractions import matmul
from pullback.rules.indexing import index, scatter
from pullback.rules.joining import concatenate
from pullback.rules.reductions import sum_
from pullback.rules.storing import STORES

#: Rows of a block: two tiles of a product, or enough vectors of a nest.
LEAST_ROWS: Final = 16

#: So many blocks at most, powers of two: they are as long as each other.
MOST_BLOCKS: Final = 16

#: Bytes of the constants of a loop, about half of a second cache.
MOST_CONSTANT_BYTES: Final = 1 << 19

_CYCLES_PER_NS: Final = 3.0
_VECTORS_PER_NS: Final = 5.0  # that are multiplied and added


def blocks_of_rows(layout: Layout, vector_bits: int) -> tuple[int, Graph] | None:
    """The number of blocks of a loop, and the body of one; None where it is left whole."""
    body = layout.body
    moving = [body.inputs[number] for number in (*layout.carry_inputs, *layout.x_inputs)]
    if not layout.carries or any(not var.type.shape or var.type.weak for var in moving) or may_decline(body):
        return None  # a block has nobody to tell that it declines
    rows = moving[0].type.shape[0]
    constants = sum(body.inputs[number].type.nbytes for number in layout.const_inputs)
    if any(var.type.shape[0] != rows for var in moving) or constants > MOST_CONSTANT_BYTES:
        return None
    blocks = MOST_BLOCKS
    while blocks > 1 and (rows % blocks or rows // blocks < LEAST_ROWS):
        blocks //= 2
    if blocks < 2 or layout.length * _nanoseconds(body, vector_bits) < 4 * SHARED_FROM_NS:
        return None
    part = _of_rows(body, moving, rows, rows // blocks)
    return None if part is None else (blocks, part)


def _nanoseconds(body: Graph, vector_bits: int) -> float:
    """The approximate time of a step on one thread."""
    total = 0.0
    for node in body.nodes:
        result = node.outputs[0].type
        vectors = 8 * result.nbytes / vector_bits
        if node.primitive is matmul:
            total += vectors * node.inputs[0].type.shape[-1] / _VECTORS_PER_NS
        elif isinstance(node.primitive, Scalar):
            total += vectors * scalars.cost(node.primitive, result.dtype) / _CYCLES_PER_NS
    return total


def _of_rows(body: Graph, moving: Sequence[Var], rows: int, taken: int) -> Graph | None:
    """The body for some of the rows; None where a row of a result depends on others, or is in no order of rows."""
    new: dict[Atom, Var] = {var: Var(-1, _with_rows(var.type, taken)) for var in moving}
    nodes = []
    for node in body.nodes:
        if not any(atom in new for atom in node.inputs):
            nodes.append(node)
            continue
        if not _goes_by_rows(node, rows, [atom in new for atom in node.inputs]):
            return None
        outputs = tuple(Var(-1, _with_rows(var.type, taken)) for var in node.outputs)
        params = dict(node.params)
        if node.primitive is scatter:
            params["shape"] = outputs[0].type.shape
        inputs = tuple(new.get(atom, atom) for atom in node.inputs)
        nodes.append(replace(node, inputs=inputs, params=tuple(sorted(params.items())), outputs=outputs))
        new.update(zip(node.outputs, outputs, strict=True))
    if any(atom not in new for atom in body.outputs):
        return None
    return replace(
        body,
        inputs=tuple(new.get(var, var) for var in body.inputs),
        nodes=tuple(nodes),
        outputs=tuple(new[atom] for atom in body.outputs),
    )


def _with_rows(type_: ArrayType, rows: int) -> ArrayType:
    return replace(type_, shape=(rows, *type_.shape[1:]))


def _goes_by_rows(node: Node, rows: int, moves: Sequence[bool]) -> bool:
    """True if every row of a result depends on the same row of the operands that move, and on the others."""
    result = node.outputs[0].type.shape
    if len(node.outputs) != 1 or not result or result[0] != rows:
        return False
    if isinstance(node.primitive, Scalar):
        return all(
            _is_of_rows(atom.type, result) if own else len(atom.type.shape) < len(result) or atom.type.shape[0] == 1
            for atom, own in zip(node.inputs, moves, strict=True)
        )
    rule = _BY_ROWS.get(node.primitive)
    return rule is not None and rule(node, moves)


def _is_of_rows(type_: ArrayType, result: Shape) -> bool:
    """True if the first axis of an operand is that of the result."""
    return len(type_.shape) == len(result) and type_.shape[0] == result[0]


def _multiplies_rows(node: Node, moves: Sequence[bool]) -> bool:
    return list(moves) == [True, False] and all(len(atom.type.shape) == 2 for atom in node.inputs)


def _joins_rows(node: Node, moves: Sequence[bool]) -> bool:
    return all(moves) and dict(node.params)["axis"] != 0


def _sums_rows(node: Node, _moves: Sequence[bool]) -> bool:
    return 0 not in dict(node.params)["axes"]


def _takes_all_rows(node: Node, _moves: Sequence[bool]) -> bool:
    key = dict(node.params)["key"]
    return isinstance(key, tuple) and isinstance(key[0], slice) and key[0] == slice(None)


def _stores_rows(node: Node, moves: Sequence[bool]) -> bool:
    """True of a store that has an axis for each of the array's, so that its first axis is that of the rows."""
    has_all_axes = all(len(atom.type.shape) == len(node.outputs[0].type.shape) for atom in node.inputs)
    has_slices = _takes_all_rows(node, moves) and all(isinstance(part, slice) for part in dict(node.params)["key"])
    return all(moves) and has_all_axes and has_slices


_BY_ROWS: Final[Mapping[Primitive, Callable[[Node, Sequence[bool]], bool]]] = {
    matmul: _multiplies_rows,
    concatenate: _joins_rows,
    sum_: _sums_rows,
    index: _takes_all_rows,
    scatter: _takes_all_rows,
    **dict.fromkeys(STORES, _stores_rows),
}
