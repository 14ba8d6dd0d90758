"""Kernels become machine code of both architectures without spilled registers; needs `ptxas` of CUDA, no device."""

from pathlib import Path

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import accesses, assembled, check_assembled, kernels_of, opcodes, ptxas, tool
from tests.engine.cuda.random_forms import THREE, TWO, of_types
from tests.engine.cuda.random_nests import random_readers, random_subject

from pullback.backends.cuda.kernels import grids
from pullback.backends.cuda.kernels.kernel_text import write_kernels
from pullback.backends.cuda.kernels.phases import Place
from pullback.backends.cuda.kernels.ptx import PTX_OF
from pullback.backends.nests.nest import Nest, NestRead, NestWrite, Reduction, Step
from pullback.core.primitive import Primitive
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread

#: One nest of so many of the sample is assembled: 0.2 s each.
EVERY = 8 if nests.EVERY > 1 else 1

needs_ptxas = pytest.mark.skipif(ptxas() is None, reason="NO KERNELS ARE ASSEMBLED: ptxas of CUDA is not installed")


@pytest.mark.sample(every=2)
@needs_ptxas
@pytest.mark.parametrize("architecture", PTX_OF)
def test_kernels_of_plans_have_no_stack_and_few_registers(architecture, nests_of_plans, tmp_path):
    for subject in nests_of_plans[::EVERY]:
        check_assembled(kernels_of(subject), architecture, tmp_path)


@needs_ptxas
@pytest.mark.parametrize("seed", range(500, 506))
def test_kernels_of_random_nests_have_no_stack_and_few_registers(seed, tmp_path):
    check_assembled(kernels_of(random_subject(seed)), "sm_90", tmp_path)


@needs_ptxas
@pytest.mark.parametrize("architecture", PTX_OF)
def test_kernels_of_random_nests_that_read_by_positions_have_no_stack_and_few_registers(architecture, tmp_path):
    for subject in random_readers(range(500, 506)):
        check_assembled(kernels_of(subject), architecture, tmp_path)


@pytest.mark.long
@needs_ptxas
def test_kernels_of_too_many_values_at_once_are_found(tmp_path, monkeypatch):
    """Vectors of 64 numbers, four at a time."""
    for name, value in (
        ("LOAD_BYTES", 256),
        ("MOST_REPEATED", 10**6),
        ("IN_FLIGHT", 1 << 30),
        ("HELD_REGISTERS", 10**6),
    ):
        monkeypatch.setattr(grids, name, value)
    with pytest.raises(AssertionError):
        check_assembled(write_kernels(dense(4096, 1024, "f4"), [Place(k, 0) for k in range(5)]), "sm_90", tmp_path)


def dense(rows, columns, dtype):
    """The nest behind the product of a dense layer: bias, tanh, its derivative, the gradient of the bias, the loss."""
    table, own = Primitive.table, np.dtype(dtype)
    reads = (NestRead(0, (columns, 1), own), NestRead(1, (0, 1), own))
    steps = (Step(table["add"], (0, 1), (own, own), own), Step(table["tanh"], (2,), (own,), own))
    reductions = (
        Reduction(3, "sum", frozenset({0}), 3, (0, 1), own),
        Reduction(3, "sum", frozenset({0, 1}), 4, (0, 0), own),
    )
    return Nest((rows, columns), reads, steps, (NestWrite(3, 2, (columns, 1), own),), reductions)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_lines_that_are_aligned_are_loaded_and_stored_16_bytes_at_a_time(dtype):
    places = [Place(k, 0) for k in range(5)]
    kernels = write_kernels(dense(512, 1024, dtype), places)
    found = accesses(kernels)
    assert found["ld16"] >= 2
    assert found["st16"] >= 1


@needs_ptxas
@pytest.mark.skipif(tool("nvdisasm") is None, reason="NO MACHINE CODE IS READ: nvdisasm of CUDA is not installed")
@pytest.mark.parametrize("architecture", PTX_OF)
def test_machine_code_has_one_instruction_for_product_and_sum_unless_that_is_switched_off(
    architecture, tmp_path, monkeypatch
):
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("PULLBACK_FMA", switch)
        code, _ = assembled(
            write_kernels(_products_and_sums(), [Place(k, 0) for k in range(4)]), architecture, tmp_path
        )
        found.append({"FADD", "FMUL", "FFMA"} & set(opcodes(code)))
    assert found == [{"FFMA"}, {"FADD", "FMUL"}]


def _products_and_sums():
    """The nest of a * b + c."""
    table, own = Primitive.table, np.dtype("f4")
    reads = tuple(NestRead(k, (1,), own) for k in range(3))
    steps = (Step(table["mul"], (0, 1), (own, own), own), Step(table["add"], (3, 2), (own, own), own))
    return Nest((4096,), reads, steps, (NestWrite(4, 3, (1,), own),), ())


GOLDEN = Path(__file__).parents[1] / "golden" / "kernels.txt"


def _counted(name, kernels):
    """Grids, shared memory and phases of kernels, and how many loads and stores of how many bytes their PTX has."""
    grids_of = ", ".join(
        f"{one.grid.blocks} x {one.grid.threads} threads, {one.shared_bytes} bytes shared, {len(one.phases)} phases"
        for one in kernels.kernels
    )
    found = ", ".join(f"{access} {count}" for access, count in sorted(accesses(kernels).items()))
    return f"{name}: {grids_of}; {found}; moves {kernels.moved_bytes} bytes"


def test_kernels_are_those_of_the_golden_file(renew_golden):
    lines = [
        _counted(f"dense {dtype}", write_kernels(dense(512, 1024, dtype), [Place(k, 0) for k in range(5)]))
        for dtype in ("f4", "f8")
    ]
    lines += [_counted(subject.name, kernels_of(subject)) for subject in map(random_subject, range(12))]
    lines += [
        _counted(f"{primitive.name} {name} {dtype}, {place}", kernels)
        for name, params in (("2 x 2", TWO), ("3 x 3", THREE))
        for primitive in (mean_pool, mean_spread, max_pool, max_select, max_spread)
        for dtype in ("f4", "f8")
        for place, kernels in enumerate(of_types(primitive, (8, 16, 32, 32), dtype, params).kernels())
    ]
    text = "\n".join(lines) + "\n"
    if renew_golden:
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_lines_that_are_not_aligned_are_loaded_one_by_one():
    shifted = [Place(0, 4), *(Place(k, 0) for k in range(1, 5))]
    found = accesses(write_kernels(dense(512, 1024, "f4"), shifted))
    assert found["ld4"] >= 4
