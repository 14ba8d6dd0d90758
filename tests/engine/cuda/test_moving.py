"""Joins and stores by basic keys are one kernel, which writes every element once; in place it writes what is stored alone."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import accesses, check_assembled, check_places, ptxas
from tests.engine.cuda.random_moves import random_move, random_moves

from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import kernel_text
from pullback.backends.cuda.kernels.ptx import PTX_OF
from pullback.backends.nests import data_movement
from pullback.backends.nests.views import views_of
from pullback.core.types import ArrayType
from pullback.ir.graph import Graph, Node, Var
from pullback.rules.joining import concatenate
from pullback.rules.storing import set_at

MOVES = random_moves(range(120))
OVER = random_moves(range(500, 560), is_over=True)


def run(moved, seed=None):
    """The pieces of memory behind it, and the bytes that the kernel loaded and stored of each."""
    kernels, blocks = moved.kernels(), moved.memory()
    emulator = Emulator(kernels)
    emulator.run(
        [block.ctypes.data for block in blocks], None if seed is None else np.random.default_rng(seed), nests.scratch
    )
    (kernel,) = kernels.kernels
    loaded, stored = Counter(), Counter()
    for parameter, (read, written) in zip(kernel.parameters, emulator.moved(kernel), strict=True):
        loaded[moved.roots[parameter.piece]] += read
        stored[moved.roots[parameter.piece]] += written
    return blocks, loaded, stored


def check(moved):
    blocks, loaded, stored = run(moved, 1)
    result = moved.result(blocks)
    assert result.dtype == moved.expected.dtype
    np.testing.assert_array_equal(result, moved.expected)
    written = sum(math.prod(nest.space) for nest, _ in moved.moves) * result.itemsize
    assert stored == {root: written if root is moved.target else 0 for root in moved.roots}
    assert written == result.nbytes or moved.target not in moved.node.outputs
    planned, shared = Counter(), set()
    for nest, operands in moved.moves:
        for read in nest.reads:
            root = operands[read.pointer].root
            planned[root] += math.prod(nest.space) * read.dtype.itemsize
            if not all(stride or size == 1 for stride, size in zip(read.strides, nest.space, strict=True)):
                shared.add(root)  # one element for several places: some threads load it
    for root, nbytes in loaded.items():
        assert nbytes <= planned[root] if root in shared else nbytes == planned[root]


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("moved", MOVES, ids=lambda moved: moved.node.primitive.name)
def test_what_is_moved_is_numpys_and_every_element_is_written_once(moved):
    check(moved)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("moved", OVER, ids=lambda moved: moved.node.primitive.name)
def test_what_is_stored_in_place_is_numpys_and_nothing_else_is_written(moved):
    check(moved)


def test_every_rule_is_tried():
    assert Counter(moved.node.primitive.name for moved in MOVES).keys() == {
        "concatenate",
        "set_at",
        "add_at",
        "scatter",
    }
    assert min(Counter(moved.node.primitive.name for moved in (*MOVES, *OVER)).values()) > 10


def test_moves_have_the_same_bits_in_any_order():
    for moved in (*MOVES[::4], *OVER[::4]):
        in_order = [block.tobytes() for block in run(moved)[0]]
        for seed in (1, 2):
            assert [block.tobytes() for block in run(moved, seed)[0]] == in_order


def test_moves_keep_what_they_promise_of_their_pointers():
    for moved in (*MOVES, *OVER):
        check_places(moved.kernels())


@pytest.mark.skipif(ptxas() is None, reason="NO KERNELS ARE ASSEMBLED: ptxas of CUDA is not installed")
@pytest.mark.parametrize("architecture", PTX_OF)
def test_moves_have_no_stack_and_few_registers(architecture, tmp_path):
    for moved in (*MOVES[::20], *OVER[::20]):
        check_assembled(moved.kernels(), architecture, tmp_path)


def _joined(axis, *shapes, dtype="f4"):
    """The kernels of a join of arrays of these shapes."""
    types = [ArrayType(shape, np.dtype(dtype)) for shape in shapes]
    inputs = tuple(Var(number, type_) for number, type_ in enumerate(types))
    (type_,) = concatenate.infer(*types, axis=axis)
    node = Node(concatenate, inputs, (("axis", axis),), (Var(len(inputs), type_),), "")
    views = views_of(Graph(inputs, (), (node,), node.outputs), {})
    moves = data_movement.moves_of(node, views, is_over=False)
    roots = [*inputs, *node.outputs]
    placed = [
        (nest, [kernel_text.Place(roots.index(one.root), one.offset * one.dtype.itemsize) for one in operands])
        for nest, operands in moves
    ]
    return kernel_text.write_together(placed)


def test_parts_that_are_aligned_move_16_bytes_at_a_time_and_the_summary_counts_all_once():
    kernels = _joined(1, (64, 32), (64, 16), (64, 8))
    assert accesses(kernels) == {"ld16": 3, "st16": 3}
    assert len(kernels.kernels) == 1
    assert kernels.moved_bytes == 2 * 4 * 64 * 56


@pytest.mark.parametrize(("axis", "shapes"), [(0, [(40_001,), (30_002,)]), (1, [(3, 20_000), (3, 10_003)])])
def test_every_block_of_parts_that_have_several_moves_what_is_its_own(axis, shapes):
    kernels = _joined(axis, *shapes)
    (kernel,) = kernels.kernels
    assert all(part.blocks > 2 for part in kernel.grid.parts)
    arrays = [np.random.default_rng(number).normal(size=shape).astype("f4") for number, shape in enumerate(shapes)]
    expected = np.concatenate(arrays, axis=axis)
    block = nests.scratch(expected.nbytes)
    Emulator(kernels).run([*(x.ctypes.data for x in arrays), block.ctypes.data], np.random.default_rng(0))
    np.testing.assert_array_equal(block[: expected.nbytes].view("f4").reshape(expected.shape), expected)


def test_parts_that_are_not_aligned_move_one_by_one():
    assert accesses(_joined(1, (64, 31), (64, 33))).keys() == {"ld4", "st4"}


def test_a_store_of_a_python_integer_that_may_not_fit_is_left_to_the_rule():
    wide, narrow = (ArrayType((), np.dtype(name), weak=True) for name in ("i8", "f8"))
    for type_, dtype, expected in ((wide, "i4", False), (wide, "i8", True), (wide, "f4", True), (narrow, "i8", False)):
        array = Var(0, ArrayType((3,), np.dtype(dtype)))
        node = Node(set_at, (array, Var(1, type_)), (("key", 0), ("unique", True)), (Var(2, array.type),), "")
        assert data_movement.is_moved(node, is_over=True) is expected


# --- planted faults -----------------------------------------------------------------------------------------------------
def test_what_a_store_leaves_out_is_found(monkeypatch):
    around = data_movement._around
    monkeypatch.setattr(data_movement, "_around", lambda *given: list(around(*given))[1:])
    found = 0
    for seed in range(40):
        moved = random_move(seed)
        if moved is not None:
            with np.errstate(all="ignore"):
                try:
                    check(moved)
                except AssertionError:
                    found += 1
    assert found > 5


def test_blocks_that_are_left_out_are_found(monkeypatch):
    monkeypatch.setattr(kernel_text.Grids, "blocks", property(lambda grids: max(part.blocks for part in grids.parts)))
    moved = next(one for one in MOVES if len(one.moves) > 2)
    with pytest.raises(AssertionError):
        check(moved)
