"""Memory that a kernel reads and writes goes by one pointer; what is promised of pointers holds."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engine.cuda.kernels_of import check_places, kernels_of
from tests.engine.cuda.random_nests import random_readers, random_subject

from pullback.backends.cuda.emulation import Emulator, SharedPieceError
from pullback.backends.cuda.kernels.kernel_text import write_kernels
from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Step
from pullback.core.primitive import Primitive


def test_kernels_of_plans_keep_what_they_promise_of_their_pointers(nests_of_plans):
    for subject in nests_of_plans:
        check_places(kernels_of(subject))


def test_kernels_of_random_nests_keep_what_they_promise_of_their_pointers():
    for seed in range(100):
        check_places(kernels_of(random_subject(seed)))


def test_kernels_of_random_nests_that_read_by_positions_keep_what_they_promise_of_their_pointers():
    for subject in random_readers(range(100)):
        check_places(kernels_of(subject))


def in_place():
    """Twice an array, written over it."""
    f4 = np.dtype("f4")
    square = Step(Primitive.table["square"], (0,), (f4,), f4)
    return Nest((64,), (NestRead(0, (1,), f4),), (square,), (NestWrite(1, 1, (1,), f4),), ())


def test_what_is_written_over_is_one_pointer_that_is_not_read_only():
    kernels = write_kernels(in_place(), [Place(0, 0), Place(0, 0)])
    (kernel,) = kernels.kernels
    assert [(one.is_read, one.is_written) for one in kernel.parameters] == [(True, True)]
    check_places(kernels)


def test_two_pointers_of_one_piece_are_found():
    kernels = write_kernels(in_place(), [Place(0, 0), Place(1, 0)])
    (kernel,) = kernels.kernels
    aliased = replace(kernel, parameters=tuple(replace(one, piece=0) for one in kernel.parameters))
    with pytest.raises(AssertionError, match="two pointers of one piece"):
        check_places(replace(kernels, kernels=(aliased,)))


def test_two_pieces_at_one_address_are_found_where_kernels_run():
    kernels = write_kernels(in_place(), [Place(0, 0), Place(1, 0)])
    x = np.ones(64, "f4")
    with pytest.raises(SharedPieceError, match="has two pointers of one piece"):
        Emulator(kernels).run([x.ctypes.data] * 2)


def test_a_read_only_pointer_that_is_written_by_is_found():
    kernels = write_kernels(in_place(), [Place(0, 0), Place(0, 0)])
    (kernel,) = kernels.kernels
    promised = replace(kernel, parameters=tuple(replace(one, is_written=False) for one in kernel.parameters))
    with pytest.raises(AssertionError, match="writes by"):
        check_places(replace(kernels, kernels=(promised,)))
