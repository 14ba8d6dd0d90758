"""Nests drawn by chance: spaces, layouts, types, positions, steps and reductions that plans may or may not have."""

import math
from dataclasses import replace

import numpy as np
from tests.engine.cuda.nests import Subject

from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.nests.nest import Constant, Nest, NestRead, NestWrite, Position, Reduction, Step
from pullback.core.primitive import Primitive
from pullback.ir.strides import contiguous_strides
from pullback.rules import elementwise

assert elementwise  # importing it fills the table

_SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 257, 1024)
_MOST_POINTS = 60_000
_KINDS = ("sum", "sum", "sum", "max", "min", "prod", "any", "all")


def random_subject(seed):
    """The nest of a seed."""
    rng = np.random.default_rng(seed)
    space = _space(rng)
    places, pieces, reads = [], [], []

    def piece(shape, dtype):
        """Memory of an array of this shape somewhere in a piece: pointer and strides along the axes of the space."""
        order = rng.permutation(len(shape)) if rng.random() < 0.3 else np.arange(len(shape))
        laid = [shape[axis] for axis in order]
        skipped = 1 if rng.random() < 0.8 else 2
        strides = [0] * len(shape)
        for axis, stride in zip(order, contiguous_strides(laid), strict=True):
            strides[axis] = stride * skipped if shape[axis] > 1 else 0
        offset = int(rng.choice([0, 0, 4, 3]))
        places.append(Place(len(pieces), offset * dtype.itemsize))
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        pieces.append((offset + last + 1) * dtype.itemsize)
        return len(places) - 1, tuple(strides)

    dtype = np.dtype(rng.choice(["f4", "f8"]))
    for _ in range(rng.integers(1, 4)):
        shape = [size if rng.random() < 0.75 else 1 for size in space]
        own = dtype if rng.random() < 0.8 else np.dtype("?")
        pointer, strides = piece(shape, own)
        reads.append(NestRead(pointer, strides, own))
    steps = _steps(rng, reads, dtype)
    count = len(reads) + len(steps)
    dtypes = [one.dtype for one in (*reads, *steps)]
    writes = []
    for value in range(len(reads), count):
        if value == count - 1 or rng.random() < 0.3:
            aliased = [read for read in reads if _may_be_overwritten(read, reads, space, dtypes[value])]
            if aliased and rng.random() < 0.5 and not any(write.pointer == aliased[0].pointer for write in writes):
                writes.append(NestWrite(value, aliased[0].pointer, aliased[0].strides, dtypes[value]))
            else:
                pointer, strides = piece(list(space), dtypes[value])
                writes.append(NestWrite(value, pointer, strides, dtypes[value]))
    reductions = []
    for _ in range(rng.integers(0, 4)):
        axes = frozenset(axis for axis in range(len(space)) if rng.random() < 0.6)
        value, kind = int(rng.integers(0, count)), str(rng.choice(_KINDS))
        if not axes or (kind == "prod" and dtypes[value].kind == "f" and math.prod(space) > 64):
            continue
        result = np.dtype("?") if kind in ("any", "all") else dtypes[value]
        if result.kind == "b" and kind in ("sum", "prod"):
            result = np.dtype("i8")
        pointer, strides = piece([1 if axis in axes else size for axis, size in enumerate(space)], result)
        reductions.append(Reduction(value, kind, axes, pointer, strides, result))
    nest = Nest(space, tuple(reads), tuple(steps), tuple(writes), tuple(reductions))
    return Subject(f"random nest {seed}", nest, tuple(places), tuple(pieces))


def random_reader(seed):
    """The nest of a seed, with operands that are read by positions along some of their axes; None if it has no operand for it."""
    subject, rng = random_subject(seed), np.random.default_rng([seed, 1])
    nest, places, pieces = subject.nest, list(subject.places), list(subject.pieces)
    written = {places[write.pointer].parameter for write in nest.writes}
    positions, reads = [], []
    for read in nest.reads:
        axes = [axis for axis, stride in enumerate(read.strides) if stride]
        own, strides = [], list(read.strides)
        if places[read.pointer].parameter not in written:
            for axis in axes[: int(rng.integers(0, len(axes) + 1))]:
                strides[axis] = 0
                shape = [size if rng.random() < 0.6 else 1 for size in nest.space]
                along = [0 if size == 1 else step for size, step in zip(shape, contiguous_strides(shape), strict=True)]
                dtype = np.dtype(rng.choice(["i4", "i8"]))
                positions.append(NestRead(len(places), tuple(along), dtype))
                own.append(Position(len(positions) - 1, nest.space[axis], read.strides[axis]))
                places.append(Place(len(pieces), 0))
                pieces.append(math.prod(shape) * dtype.itemsize)
        reads.append(replace(read, strides=tuple(strides), positions=tuple(own)))
    if not positions:
        return None
    first = len(positions)
    steps = [
        replace(one, operands=tuple(x if isinstance(x, Constant) else x + first for x in one.operands))
        for one in nest.steps
    ]
    writes, reductions = (
        tuple(replace(one, value=one.value + first) for one in several) for several in (nest.writes, nest.reductions)
    )
    nest = Nest(nest.space, (*positions, *reads), tuple(steps), writes, reductions)
    return Subject(f"random reader {seed}", nest, tuple(places), tuple(pieces))


def random_readers(seeds):
    """The nests of these seeds that read by positions."""
    return [subject for subject in map(random_reader, seeds) if subject is not None]


def _space(rng):
    space = ()
    for _ in range(rng.integers(1, 4)):
        size = int(rng.choice(_SIZES))
        if math.prod((*space, size)) <= _MOST_POINTS:
            space = (*space, size)
    if len(space) == 1 and rng.random() < 0.5:
        space = (int(rng.integers(1, _MOST_POINTS)),)
    return space


def _steps(rng, reads, dtype):
    """Some steps on floats; truth values that are read are converted first."""
    table = Primitive.table
    steps, floats = [], []

    def add(name, operands, operand_dtypes, result):
        steps.append(Step(table[name], operands, operand_dtypes, result))
        return len(reads) + len(steps) - 1

    for number, read in enumerate(reads):
        floats.append(number if read.dtype == dtype else add("astype", (number,), (read.dtype,), dtype))
    for _ in range(rng.integers(1, 5)):
        name = str(rng.choice(["add", "mul", "tanh", "sub", "maximum", "exp", "square"]))
        a, b = (int(one) for one in rng.choice(floats, 2))
        if name in ("add", "mul", "sub", "maximum"):
            other = Constant(0.5) if rng.random() < 0.2 else b
            floats.append(add(name, (a, other), (dtype, dtype), dtype))
        else:
            bounded = add("tanh", (a,), (dtype,), dtype)
            floats.append(add(name, (bounded,), (dtype,), dtype))
    return steps


def _may_be_overwritten(read, reads, space, dtype):
    """True if a nest may write where it reads: the whole of it, at the same places, and nothing else reads there."""
    whole = all(stride != 0 or size == 1 for size, stride in zip(space, read.strides, strict=True))
    return whole and read.dtype == dtype and sum(other.pointer == read.pointer for other in reads) == 1
