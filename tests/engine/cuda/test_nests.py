"""Kernels of nests, run on the CPU, compute what the native tier does; every nest there is with PULLBACK_EVERY_KERNEL=1."""

import os
import signal
import traceback

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import kernels_of
from tests.engine.cuda.random_nests import random_readers, random_subject

from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import grids, kernel_text
from pullback.backends.cuda.kernels.kernel_text import write_kernels
from pullback.backends.cuda.kernels.phases import PhaseWriter, Place
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Position, Reduction, Step
from pullback.core.primitive import Primitive

RANDOM = int(os.environ.get("PULLBACK_RANDOM_KERNELS", "25"))


def check(subject):
    memory = nests.Memory(subject)
    emulator = Emulator(kernels_of(subject))
    run = lambda addresses: emulator.run(addresses, np.random.default_rng(1), nests.scratch)  # noqa: E731
    with np.errstate(all="ignore"):
        nests.check_against_native(subject, memory, run)
    memory.bits()


@pytest.mark.long
def test_nests_of_plans_are_those_of_the_native_tier(nests_of_plans):
    assert len(nests_of_plans) > 80
    for subject in nests_of_plans:
        check(subject)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("seed", range(RANDOM))
def test_random_nests_are_those_of_the_native_tier(seed):
    check(random_subject(seed))


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("subject", random_readers(range(3000, 3000 + RANDOM)), ids=lambda one: one.name)
def test_random_nests_that_read_by_positions_are_those_of_the_native_tier(subject):
    check(subject)


@pytest.fixture
def cut(monkeypatch):
    """Grids of few threads and terms, so that small nests have many blocks, splits of splits, and units at a time."""
    for name, value in (
        ("THREADS", 32),
        ("LEAST_TURNS", 2),
        ("MOST_TERMS", 3),
        ("IN_FLIGHT", 1 << 20),
        ("ENOUGH_BLOCKS", 4),
    ):
        monkeypatch.setattr(grids, name, value)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("seed", range(1000, 1000 + RANDOM))
@pytest.mark.usefixtures("cut")
def test_random_nests_in_many_blocks_are_those_of_the_native_tier(seed):
    check(random_subject(seed))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("subject", random_readers(range(4000, 4000 + RANDOM)), ids=lambda one: one.name)
@pytest.mark.usefixtures("cut")
def test_random_nests_in_many_blocks_that_read_by_positions_are_those_of_the_native_tier(subject):
    check(subject)


def test_positions_that_are_not_read_are_found(monkeypatch):
    monkeypatch.setattr(PhaseWriter, "_inside", lambda *_: 0)
    with pytest.raises(AssertionError):
        check(random_readers(range(3000, 3020))[0])


def _out_of_bounds(dtype, far):
    """An array of three elements, behind which a page is closed, read at two positions of which one is `far`; gives what was read."""
    f8 = np.dtype("f8")
    reads = (NestRead(0, (1,), dtype), NestRead(1, (0,), f8, positions=(Position(0, 3, 1),)))
    nest = Nest((2,), reads, (), (NestWrite(1, 2, (1,), f8),), ())
    positions, x, y = (nests.scratch(nbytes) for nbytes in (2 * dtype.itemsize, 24, 16))
    positions[: 2 * dtype.itemsize].view(dtype)[...] = (2, far)
    x[:24].view(f8)[...] = (1, 2, 3)
    kernels = write_kernels(nest, [Place(k, 0) for k in range(3)])
    Emulator(kernels).run([block.ctypes.data for block in (positions, x, y)])
    return y.view(f8).tolist()


@pytest.mark.parametrize("dtype", ["i4", "i8"])
@pytest.mark.parametrize("far", [3, -4, 2**31 - 1, -(2**31), 100])
def test_nothing_is_read_at_a_position_out_of_bounds(dtype, far):
    """The first element is read instead; that this is an error is said by the program."""
    assert _out_of_bounds(np.dtype(dtype), far) == [3, 1]


def _status_of(is_right):
    """The exit status of a process that calls a function: 0 if that gives True, 1 if False, 2 if it raises."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        status = 2
        try:
            status = 0 if is_right() else 1
        except BaseException:  # noqa: BLE001 - the process ends here, whatever it is
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_that_raises_is_told_from_one_that_finds_something():
    assert [_status_of(one) for one in (lambda: True, lambda: False, lambda: 1 // 0)] == [0, 1, 2]


def test_a_read_out_of_bounds_is_found(monkeypatch):
    """It ends the process, at the page behind the array."""
    monkeypatch.setattr(PhaseWriter, "_inside", lambda writer, position, dtype, size: position)
    assert _status_of(lambda: _out_of_bounds(np.dtype("i4"), 100) == [3, 1]) == -signal.SIGSEGV


def test_long_nests_are_several_kernels_of_the_same_values(monkeypatch):
    monkeypatch.setattr(kernel_text, "MOST_STEPS", 2)
    for seed in range(2000, 2010):
        check(random_subject(seed))


def test_reductions_of_nothing_are_what_they_start_from():
    f8 = np.dtype("f8")
    tanh = Step(Primitive.table["tanh"], (0,), (f8,), f8)
    reductions = [Reduction(1, kind, frozenset({0}), k + 1, (0, 1), f8) for k, kind in enumerate(("sum", "prod"))]
    nest = Nest((0, 3), (NestRead(0, (3, 1), f8),), (tanh,), (), tuple(reductions))
    sums, products = np.full(3, np.nan), np.full(3, np.nan)
    Emulator(write_kernels(nest, [Place(0, 0), Place(1, 0), Place(2, 0)])).run(
        [0, sums.ctypes.data, products.ctypes.data]
    )
    assert sums.tolist() == [0, 0, 0]
    assert products.tolist() == [1, 1, 1]


def test_indices_are_wide_where_there_are_more_elements_than_narrow_ones_count():
    f4 = np.dtype("f4")

    def index_type(rows):
        nest = Nest(
            (rows, 2**12),
            (NestRead(0, (2**12, 1), f4),),
            (),
            (),
            (Reduction(0, "sum", frozenset({0, 1}), 1, (0, 0), f4),),
        )
        return write_kernels(nest, [Place(0, 0), Place(1, 0)]).kernels[0].index_type

    assert index_type(2**18) == "i32"
    assert index_type(2**20) == "i64"


def _are_lines_far_apart_right():
    """True if lines of an array of more than 2**32 elements are copied to another one, and all elements of each are looked at."""
    b, apart = np.dtype("?"), (2**31, 1)
    nest = Nest(
        (3, 8),
        (NestRead(0, apart, b),),
        (),
        (NestWrite(0, 1, apart, b),),
        (Reduction(0, "any", frozenset({1}), 2, (1, 0), b),),
    )
    kernels = write_kernels(nest, [Place(k, 0) for k in range(3)])
    x, y = (np.zeros(2 * 2**31 + 8, np.uint8) for _ in range(2))  # pages that nobody touches take no memory
    some = np.zeros(3, np.uint8)
    x[2**31 + 3] = x[2 * 2**31 + 7] = 1
    Emulator(kernels).run([x.ctypes.data, y.ctypes.data, some.ctypes.data])
    lines = [y[line * 2**31 :][:8].tolist() for line in range(3)]
    return some.tolist() == [0, 1, 1] and lines == [[0] * 8, [0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]]


def test_an_array_may_have_more_than_2_to_the_32_elements():
    assert _are_lines_far_apart_right()


def test_an_index_that_is_too_narrow_is_found(monkeypatch):
    monkeypatch.setattr(kernel_text, "_index_type", lambda nest: "i32")
    assert _status_of(_are_lines_far_apart_right) in (1, -signal.SIGSEGV)


def test_many_terms_are_summed_as_exactly_as_by_the_native_tier():
    """One block would give an accumulator 3,000 terms: splits are summed by a kernel of their own."""
    f4 = np.dtype("f4")
    n = 3_000_000
    x = (np.random.default_rng(0).random(n) + 1).astype("f4")
    nest = Nest((n,), (NestRead(0, (1,), f4),), (), (), (Reduction(0, "sum", frozenset({0}), 1, (0,), f4),))
    kernels = write_kernels(nest, [Place(0, 0), Place(1, 0)])
    total = np.zeros((), "f4")
    Emulator(kernels).run([x.ctypes.data, total.ctypes.data])
    assert len(kernels.kernels) == 2
    assert abs(total - np.sum(x, dtype="f8")) <= 2e-7 * float(total)
