"""Softmax and its like are one kernel: rows are read once, and what waits for their maxima and sums comes after them."""

import math
from collections import Counter

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import accesses, check_assembled, check_places, ptxas
from tests.engine.nests.test_joins_in_place import lowered

import pullback as pb
from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import grids
from pullback.backends.cuda.kernels.grids import keeps_rows
from pullback.backends.cuda.kernels.kernel_text import write_kernels
from pullback.backends.cuda.kernels.phases import PhaseWriter, Place
from pullback.backends.cuda.kernels.ptx import PTX_OF
from pullback.backends.nests.fusion import FusedNodes, fuse, kept_values
from pullback.backends.nests.merging import merged
from pullback.backends.nests.nest_building import nest_of
from pullback.backends.nests.rows import rows_joined
from pullback.backends.nests.sinking import sunk
from pullback.ir.graph import Var


def _softmax(x):
    return pb.nn.softmax(x, axis=-1)


def _logsoftmax(x):
    return pb.nn.logsoftmax(x * 2, axis=-1)


def _logsumexp(x):
    return pb.nn.logsumexp(x, axis=-1)


def _columns(x):
    return pb.nn.softmax(x, axis=0) * x


def _normed(x):
    """Two sums, of which the second waits for the first."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def _pulled(x):
    """The derivative of a softmax, with the softmax."""
    y, v = pb.nn.softmax(x, axis=-1), np.sin(x)
    return y * (v - np.sum(y * v, axis=-1, keepdims=True))


def _normed_by_name(x):
    """Results without the axis that they are reduced along."""
    return x / np.max(np.abs(x), axis=1)[:, None]


FUNCTIONS = [_softmax, _logsoftmax, _logsumexp, _columns, _normed, _pulled, _normed_by_name]
SHAPES = [(5, 33), (64, 128), (3, 2000), (2, 7)]


def _outputs(kernel):
    return {var for node in kernel.nodes for var in node.outputs}


class Rows:
    """The kernels of a function of one array, and memory for them."""

    def __init__(self, function, x):
        self.graph = lowered(function, x)
        found = sunk(merged(fuse(self.graph)), self.graph)
        self.before = len(found.kernels)
        found = rows_joined(found, lambda kernel: keeps_rows(nest_of(kernel, found.views, _outputs(kernel))[0]))
        kept = kept_values(found, self.graph)
        assert all(isinstance(kernel, FusedNodes) for kernel in found.kernels)
        self.views, self.x = found.views, x
        self.subjects = []
        for kernel in found.kernels:
            nest, operands = nest_of(kernel, found.views, kept)
            roots = list(dict.fromkeys(one.root for one in operands))
            places = [Place(roots.index(one.root), one.offset * one.dtype.itemsize) for one in operands]
            self.subjects.append((nest, roots, write_kernels(nest, places)))

    def run(self, seed=None):
        """The result, and the bytes that are loaded and stored of each value."""
        (given,), rng = self.graph.inputs, None if seed is None else np.random.default_rng(seed)
        blocks = {given: nests.scratch(self.x.nbytes)}
        blocks[given][: self.x.nbytes] = self.x.reshape(-1).view(np.uint8)
        for capture in self.graph.captures:
            blocks[capture.var] = np.frombuffer(np.asarray(capture.value).tobytes(), np.uint8).copy()
        loaded, stored = Counter(), Counter()
        for _, roots, kernels in self.subjects:
            for root in roots:
                if isinstance(root, Var):
                    blocks.setdefault(root, nests.scratch(root.type.nbytes))
            emulator = Emulator(kernels)
            emulator.run([blocks[root].ctypes.data for root in roots], rng, nests.scratch)
            for kernel in kernels.kernels:
                for parameter, (read, written) in zip(kernel.parameters, emulator.moved(kernel), strict=True):
                    if parameter.piece < len(roots):
                        loaded[roots[parameter.piece]] += read
                        stored[roots[parameter.piece]] += written
        access = self.views.access(self.graph.outputs[0])
        type_ = self.graph.outputs[0].type
        whole = blocks[access.root][: access.root.type.nbytes].view(type_.dtype)
        strides = [stride * type_.dtype.itemsize for stride in access.strides]
        return (
            np.ndarray(type_.shape, type_.dtype, whole, access.offset * type_.dtype.itemsize, strides),
            loaded,
            stored,
        )


def _x(shape, dtype="f8", seed=0):
    return (3 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


def _check(function, x, seed=1):
    rows = Rows(function, x)
    found, loaded, _ = rows.run(seed)
    expected = function(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    rtol = 1e-12 if x.dtype == np.float64 else 2e-5
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    return rows, loaded


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__[1:])
def test_rows_are_numpys_and_each_element_is_loaded_once(function, shape, dtype):
    x = _x(shape, dtype)
    rows, loaded = _check(function, x)
    assert len(rows.subjects) == (
        2 if function is _logsumexp else 1
    )  # numbers of rows without an axis are a nest of their own
    assert rows.before > len(rows.subjects)
    (nest, _, kernels), (given,) = rows.subjects[0], rows.graph.inputs
    assert len(kernels.kernels) == 1
    assert loaded[given] == x.nbytes
    reduced = sum(math.prod(nest.space[axis] for axis in range(2) if axis not in one.axes) for one in nest.reductions)
    assert kernels.moved_bytes <= 2 * x.nbytes + 3 * reduced * x.itemsize


def test_a_row_is_loaded_and_stored_16_bytes_at_a_time():
    """Beside the maximum and the sum of each row, and a number that two stages read."""
    ((_, _, kernels),) = Rows(_softmax, _x((64, 128), "f4")).subjects
    assert accesses(kernels) == {"ld16": 1, "ld4": 2, "st16": 1, "st4": 2}


def test_special_values_are_numpys():
    x = _x((6, 40))
    x[0, 3], x[1, :], x[2, 5], x[3, 1:3] = np.inf, -np.inf, np.nan, np.inf
    with np.errstate(all="ignore"):
        for function in (_softmax, _logsumexp):
            found, _, _ = Rows(function, x).run(1)
            np.testing.assert_allclose(found, function(x), rtol=1e-12)


@pytest.mark.parametrize("shape", [(4, 5, 17), (2, 3, 64)], ids=str)
def test_rows_lie_along_any_axes(shape):
    for axis in (0, 1, 2):
        rows, _ = _check(lambda x, axis=axis: pb.nn.softmax(x, axis=axis), _x(shape))
        assert len(rows.subjects) == 1
    rows, _ = _check(lambda x: x / np.sum(x * x, axis=(1, 2), keepdims=True), _x(shape))
    assert len(rows.subjects) == 1


def test_rows_have_the_same_bits_in_any_order():
    for function in FUNCTIONS:
        rows = Rows(function, _x((37, 70), "f4"))
        assert rows.run(1)[0].tobytes() == rows.run(2)[0].tobytes() == rows.run()[0].tobytes()


def test_a_row_that_shared_memory_has_no_room_for_is_several_kernels():
    rows, _ = _check(_softmax, _x((2, 20_000), "f4"))
    assert len(rows.subjects) > 1


def test_one_row_alone_is_split_among_blocks():
    rows, _ = _check(lambda x: pb.nn.softmax(x, axis=0), _x((3000,)))
    assert len(rows.subjects) > 1


def test_rows_keep_what_they_promise_of_their_pointers_and_in_shared_memory():
    for function in FUNCTIONS:
        for shape in SHAPES:
            for _, _, kernels in Rows(function, _x(shape, "f4")).subjects:
                check_places(kernels)
                assert max(kernel.shared_bytes for kernel in kernels.kernels) <= grids.MOST_SHARED


@pytest.mark.sample(every=2)
@pytest.mark.skipif(ptxas() is None, reason="NO KERNELS ARE ASSEMBLED: ptxas of CUDA is not installed")
@pytest.mark.parametrize("architecture", PTX_OF)
def test_rows_have_no_stack_and_few_registers(architecture, tmp_path):
    for function in FUNCTIONS:
        for _, _, kernels in Rows(function, _x((64, 128), "f4")).subjects:
            check_assembled(kernels, architecture, tmp_path)


# --- planted faults -----------------------------------------------------------------------------------------------------
def test_a_result_that_is_read_before_it_is_there_is_found(monkeypatch):
    monkeypatch.setattr(PhaseWriter, "_total_at", lambda writer, k, lane: ("%shared", 0))
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        _check(_softmax, _x((5, 33)))


def test_rows_that_lie_in_each_other_are_found(monkeypatch):
    at = PhaseWriter._kept_at

    def first(writer, number, lane, values):
        region, _ = at(writer, number, lane, values)
        return region, lane

    monkeypatch.setattr(PhaseWriter, "_kept_at", first)
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        _check(_softmax, _x((5, 33)))
