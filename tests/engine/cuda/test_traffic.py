"""Kernels load and store what a nest must move: bytes as their text moves them on the CPU."""

import math

import numpy as np
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import accesses, kernels_of
from tests.engine.cuda.random_nests import random_readers, random_subject

from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import kernel_text
from pullback.backends.cuda.kernels.passes import passes
from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Position, Reduction


def moved(subject, kernels):
    """Bytes loaded and stored of each piece."""
    emulator, memory = Emulator(kernels), nests.Memory(subject)
    emulator.run(memory.addresses, None, nests.scratch)
    found = {}
    for kernel in kernels.kernels:
        for parameter, (loaded, stored) in zip(kernel.parameters, emulator.moved(kernel), strict=True):
            before = found.get(parameter.piece, (0, 0))
            found[parameter.piece] = before[0] + loaded, before[1] + stored
    return found


def check(subject):
    """Every result is stored once; what varies along all axes is loaded once by each pass; between kernels all once."""
    kernels = kernels_of(subject)
    found = moved(subject, kernels)
    stored, loaded = [0] * kernels.pieces, [0] * kernels.pieces
    shared = set()
    nest = subject.nest
    for one in (*nest.writes, *nest.reductions):
        sizes = [size for size, stride in zip(nest.space, one.strides, strict=True) if stride]
        stored[subject.places[one.pointer].parameter] += math.prod(sizes) * one.dtype.itemsize
    for part in passes(nest):
        for read in part.reads:
            piece = subject.places[read.pointer].parameter
            loaded[piece] += math.prod(part.space) * read.dtype.itemsize
            if not all(read.strides):  # one number for several points: some threads load it, and caches have it
                shared.add(piece)
    for piece in range(kernels.pieces):
        own = found.get(piece, (0, 0))
        assert own[1] == stored[piece], (subject.name, piece, own, stored[piece])
        assert own[0] <= loaded[piece] if piece in shared else own[0] == loaded[piece], (subject.name, piece, own)
    for number, nbytes in enumerate(kernels.scratch):
        assert found[kernels.pieces + number] == (nbytes, nbytes)
    return found, kernels, shared


def test_nests_of_plans_move_what_they_must(nests_of_plans):
    exact = 0
    for subject in nests_of_plans[::2]:
        if len(subject.nest.steps) > kernel_text.MOST_STEPS:
            continue
        found, kernels, shared = check(subject)
        if not shared and len(passes(subject.nest)) == 1:
            assert sum(map(sum, found.values())) == kernels.moved_bytes
            exact += 1
    assert exact > 10


def test_random_nests_move_what_they_must():
    for seed in range(400, 415):
        check(random_subject(seed))


def test_random_nests_that_read_by_positions_move_what_they_must():
    for subject in random_readers(range(400, 415)):
        check(subject)


def test_rows_that_are_read_by_positions_are_loaded_once_for_each_position():
    """Rows of 64 numbers in loads of 16 bytes; a position is loaded by each thread that reads of its row."""
    f4, i8 = np.dtype("f4"), np.dtype("i8")
    reads = (NestRead(0, (1, 0), i8), NestRead(1, (0, 1), f4, positions=(Position(0, 9, 64),)))
    nest = Nest((20, 64), reads, (), (NestWrite(1, 2, (64, 1), f4),), ())
    places = tuple(Place(k, 0) for k in range(3))
    subject = nests.Subject("rows", nest, places, (20 * 8, 9 * 64 * 4, 20 * 64 * 4))
    found, kernels, _ = check(subject)
    assert found[1] == (20 * 64 * 4, 0)
    assert found[0][0] == 20 * 64 // 4 * 8
    assert kernels.moved_bytes == 20 * 8 + 9 * 64 * 4 + 20 * 64 * 4  # nine rows are there
    assert accesses(kernels)["ld16"] == accesses(kernels)["st16"] == 1


def test_a_polynomial_and_its_derivative_load_each_element_once():
    subjects = [one for one in nests.of_workload("poly9_broadcast") if one.nest.reductions]
    (subject,) = subjects
    found, kernels, _ = check(subject)
    reads = [read for read in subject.nest.reads if any(read.strides)]
    points = math.prod(subject.nest.space)
    assert [found[subject.places[read.pointer].parameter][0] for read in reads] == [
        points * np.dtype(read.dtype).itemsize for read in reads
    ]
    results = [(one.strides, one.dtype) for one in (*subject.nest.writes, *subject.nest.reductions)]
    assert kernels.moved_bytes == sum(
        dtype.itemsize * math.prod(size for size, stride in zip(subject.nest.space, strides, strict=True) if stride)
        for strides, dtype in [(read.strides, read.dtype) for read in subject.nest.reads] + results
    )


def test_loading_twice_is_found():
    """Two reads of one place, as nests never have them."""
    f4 = np.dtype("f4")
    read = NestRead(0, (1,), f4)
    reductions = tuple(Reduction(k, "sum", frozenset({0}), 1 + k, (0,), f4) for k in range(2))
    places = tuple(Place(k, 0) for k in range(3))
    subject = nests.Subject("doubled", Nest((64,), (read, read), (), (), reductions), places, (256, 4, 4))
    kernels = kernels_of(subject)
    assert sum(map(sum, moved(subject, kernels).values())) == kernels.moved_bytes + 256
