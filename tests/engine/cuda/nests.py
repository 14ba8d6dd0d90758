"""Nests of plans, and memory for them: what the kernels of nests are tried on."""

import ctypes
import itertools
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.engine.native.fences import subjects
from tests.engine.native.fences.memory import GARBAGE, fenced

from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.llvm.builder.lanes import DTYPES
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native import executable
from pullback.backends.native.emission import Emission
from pullback.backends.native.kernel_passes import KernelInput
from pullback.backends.native.kernels.nests import emit_nest
from pullback.backends.native.linking import host_target, load
from pullback.backends.nests.array_selections import PICKS, why_not_picked
from pullback.backends.nests.fusion import FusedNodes, fuse, kept_values
from pullback.backends.nests.joins_in_place import join_of, joined_in_place
from pullback.backends.nests.merging import merged
from pullback.backends.nests.nest import Nest, NestRead, NestWrite
from pullback.backends.nests.nest_building import nest_of
from pullback.backends.nests.sinking import sunk
from pullback.ir.strides import contiguous_strides

#: One of so many subjects is taken, unless all are asked for.
EVERY = 1 if os.environ.get("PULLBACK_EVERY_KERNEL") else 16

ALIGNMENT = 16


@dataclass(frozen=True)
class Subject:
    """A nest as a plan has it: where its operands lie, and how many bytes the pieces of memory have."""

    name: str
    nest: Nest
    places: tuple[Place, ...]
    pieces: tuple[int, ...]


def of_plans(groups=("rules", "workloads", "golden", "sizes"), every=EVERY):
    """The nests of plans of case tables, workloads, golden files and expressions of every size, each once."""
    seen = set()
    for group in groups:
        found = subjects.GROUPS[group](*([1] if group == "sizes" else [0]))
        for subject in itertools.islice(found, 0, None, every):
            for own in _of_subject(subject):
                key = repr((own.nest, own.places))
                if key not in seen:
                    seen.add(key)
                    yield own


def of_workload(name):
    """The nests of a workload at its smallest size."""
    subject = next(subject for subject in subjects.of_workloads() if subject.name.startswith(f"{name}["))
    return list(_of_subject(subject))


def _of_subject(subject):
    for number, graph in enumerate(_graphs_of(subject)):
        for place, own in enumerate(_nests_of(graph)):
            yield replace(own, name=f"{subject.name} {number}.{place}")


def _graphs_of(subject):
    """The graphs that are grouped into kernels while a plan is made; no machine code of it is."""
    graphs = []
    with _without_machine_code(graphs):
        subject.plan(*subject.args)
    return graphs


@contextmanager
def _without_machine_code(graphs):
    declining = load("define i64 @program(ptr %table) {\n  ret i64 1\n}\n")
    kernels = KernelInput.kernels

    class Declining:
        is_from_cache = False
        text_hash = ""
        address = declining.address

    def noting(grouping):
        graphs.append(grouping.graph)
        return kernels(grouping)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "load", lambda text, key="": Declining())
        patch.setattr(KernelInput, "kernels", noting)
        yield


def _belongs(node):
    """As in programs on a device, of graphs of which everything is there."""
    if node.primitive not in PICKS:
        return True
    dtypes = {atom.type.dtype for atom in node.inputs}
    return why_not_picked(node) is None and dtypes.issubset(DTYPES) and all(atom.type.size for atom in node.inputs)


def _nests_of(graph):
    found = joined_in_place(graph, sunk(merged(fuse(graph, belongs=_belongs)), graph))
    kept = kept_values(found, graph)
    for kernel in found.kernels:
        if isinstance(kernel, FusedNodes) and join_of(kernel) is None:
            nest, operands = nest_of(kernel, found.views, kept)
            roots = list(dict.fromkeys(access.root for access in operands))
            places = [Place(roots.index(access.root), access.offset * access.dtype.itemsize) for access in operands]
            yield Subject("", nest, tuple(places), tuple(max(root.type.nbytes, 1) for root in roots))


# --- memory -------------------------------------------------------------------------------------------------------------
class Memory:
    """Pieces of memory that end where a page begins that nobody may touch, but for what alignment leaves."""

    def __init__(self, subject, seed=0):
        self.subject = subject
        self.blocks = [_at_end(nbytes) for nbytes in subject.pieces]
        rng = np.random.default_rng(seed)
        sizes = _sizes_of_axes(subject)
        for read in subject.nest.reads:
            piece = subject.places[read.pointer].parameter
            block = self.blocks[piece][: subject.pieces[piece]]
            if (block == GARBAGE).all():
                block[...] = _drawn(rng, read.dtype, block.nbytes, sizes.get(piece))

    @property
    def addresses(self):
        return [block.ctypes.data for block in self.blocks]

    def bits(self):
        """What the pieces hold; nothing may be written behind them."""
        for block, nbytes in zip(self.blocks, self.subject.pieces, strict=True):
            assert (block[nbytes:] == GARBAGE).all(), "written behind the end of a piece"
        return [block[:nbytes].tobytes() for block, nbytes in zip(self.blocks, self.subject.pieces, strict=True)]

    def array(self, pointer, space, strides, dtype):
        """What an operand of the nest is."""
        place = self.subject.places[pointer]
        steps = [stride * dtype.itemsize for stride in strides]
        block = self.blocks[place.parameter]
        return np.ndarray(space, dtype, block, place.offset, steps)


def _at_end(nbytes):
    rounded = -(-nbytes // ALIGNMENT) * ALIGNMENT
    return fenced(rounded, at_end=True)


def scratch(nbytes):
    """Memory for what kernels need between them, or for a block."""
    return _at_end(max(nbytes, 1))


def _sizes_of_axes(subject):
    """By piece of memory that has positions, the size of the shortest axis that they are along."""
    sizes = {}
    for position in (position for read in subject.nest.reads for position in read.positions):
        piece = subject.places[subject.nest.reads[position.value].pointer].parameter
        sizes[piece] = min(position.size, sizes.get(piece, position.size))
    return sizes


def _drawn(rng, dtype, nbytes, size=None):
    """Numbers; of an axis of this size positions, from both ends."""
    count = nbytes // dtype.itemsize
    if size is not None:
        values = rng.integers(-size, size, size=count)
    elif dtype.kind == "f":
        values = rng.normal(size=count)
    else:
        values = rng.integers(0, 2 if dtype.kind == "b" else 4, size=count)
    return np.resize(values.astype(dtype).view(np.uint8), nbytes)


def without_positions(subject, memory):
    """The nest in which what is read by positions is memory of its own, as NumPy reads it; and by pointer the addresses of all."""
    nest = subject.nest
    addresses = [memory.addresses[place.parameter] + place.offset for place in subject.places]
    reads, arrays = [], []
    for read in nest.reads:
        if read.positions:
            place, itemsize = subject.places[read.pointer], read.dtype.itemsize
            element = np.full(nest.space, place.offset // itemsize)
            for coordinate, stride in zip(np.indices(nest.space, sparse=True), read.strides, strict=True):
                element += coordinate * stride
            for position in read.positions:
                own = nest.reads[position.value]
                element += (
                    memory.array(own.pointer, nest.space, own.strides, own.dtype) % position.size * position.stride
                )
            arrays.append(np.array(memory.blocks[place.parameter].view(read.dtype)[element]))
            addresses.append(arrays[-1].ctypes.data)
            read = NestRead(len(addresses) - 1, contiguous_strides(nest.space), read.dtype)  # noqa: PLW2901
        reads.append(read)
    return replace(nest, reads=tuple(reads)), addresses, arrays


# --- native ------------------------------------------------------------------------------------------------------------
def run_natively(nest, addresses, terms):
    """A nest as the native tier computes it, by pointer at these addresses; what its reductions reduce is stored at `terms`."""
    strides = [int(np.prod(nest.space[axis + 1 :])) for axis in range(len(nest.space))]
    extra = [
        NestWrite(one.value, len(addresses) + k, tuple(strides), nest.dtype_of(one.value))
        for k, one in enumerate(nest.reductions)
    ]
    native = replace(nest, writes=(*nest.writes, *extra))
    module = Module(host_target().vector_bits)
    function = module.function("program", [("ptr", "table")], returns="i64", internal=False)
    count = len(addresses) + len(extra)
    pointers = [function.load("ptr", function.element("%table", k, "ptr"), align=8) for k in range(count)]
    emit_nest(Emission(module, function), native, pointers)
    function.give(0)
    loaded = load(module.text())
    table = np.array([*addresses, *terms], np.int64)
    ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(loaded.address("program"))(table.ctypes.data)


# --- comparing ---------------------------------------------------------------------------------------------------------
#: Bounds of errors, in units of the magnitudes that are rounded: of a value that two orders of instructions give (a product and a
#: sum are one instruction or two), and of a sum whatever its order is, by the number of terms of an accumulator.
VALUE_UNITS = 64
SUM_UNITS = 160


def check_against_native(subject, memory, run):
    """Compare what `run(addresses)` leaves in memory with what the native tier does."""
    nest, native = subject.nest, Memory(subject)
    terms = [np.empty(nest.space, nest.dtype_of(one.value)) for one in nest.reductions]
    plain, addresses, _read = without_positions(subject, native)
    run_natively(plain, addresses, [array.ctypes.data for array in terms])
    run(memory.addresses)
    for write in nest.writes:
        ours, theirs = (one.array(write.pointer, nest.space, write.strides, write.dtype) for one in (memory, native))
        _agree(ours, theirs, VALUE_UNITS, np.max(np.abs(theirs[np.isfinite(theirs)]), initial=1))
    for reduction, found in zip(nest.reductions, terms, strict=True):
        space = tuple(1 if axis in reduction.axes else size for axis, size in enumerate(nest.space))
        if 0 in space:
            continue
        ours, theirs = (
            one.array(reduction.pointer, space, reduction.strides, reduction.dtype) for one in (memory, native)
        )
        largest = np.max(np.sum(np.abs(found, dtype="f8"), axis=tuple(reduction.axes)), initial=1)
        if reduction.kind != "sum":
            largest = np.max(np.abs(theirs.astype("f8")), initial=1)
        _agree(ours, theirs, SUM_UNITS, largest)


def _agree(ours, theirs, units, largest):
    assert ours.dtype == theirs.dtype
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs)
        return
    largest = largest if np.isfinite(largest) else 1
    unit = np.finfo(ours.dtype).eps
    np.testing.assert_allclose(ours, theirs, rtol=units * unit, atol=units * unit * float(largest))
