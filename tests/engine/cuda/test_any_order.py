"""Threads of a phase and blocks of a grid in any order give the same bits, whatever was in the memory that they share."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import kernels_of
from tests.engine.cuda.random_nests import random_readers, random_subject

from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import grids
from pullback.backends.cuda.kernels.ptx import arguments


def bits(subject, emulator, seed):
    memory = nests.Memory(subject)
    emulator.run(memory.addresses, None if seed is None else np.random.default_rng(seed), nests.scratch)
    return memory.bits()


def check(subject):
    emulator = Emulator(kernels_of(subject))
    in_order = bits(subject, emulator, None)
    for seed in (1, 2):
        assert bits(subject, emulator, seed) == in_order, subject.name


@pytest.mark.long
def test_nests_of_plans_have_the_same_bits_in_any_order(nests_of_plans):
    for subject in nests_of_plans[::2]:
        check(subject)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("seed", range(300, 316))
def test_random_nests_have_the_same_bits_in_any_order(seed, monkeypatch):
    if seed % 2:
        for name, value in (("LEAST_TURNS", 2), ("MOST_TERMS", 3), ("IN_FLIGHT", 1 << 20)):
            monkeypatch.setattr(grids, name, value)
    check(random_subject(seed))


@pytest.mark.parametrize("subject", random_readers(range(3300, 3312)), ids=lambda one: one.name)
def test_random_nests_that_read_by_positions_have_the_same_bits_in_any_order(subject):
    check(subject)


def _with_shared_memory():
    """A nest whose threads gather what they found."""
    return next(
        subject
        for subject in map(random_subject, range(100))
        if any(len(kernel.phases) > 1 and kernel.grid.threads > 32 for kernel in kernels_of(subject).kernels)
    )


def test_a_missing_barrier_is_found():
    """Two phases as one: a thread begins the second before others have ended the first."""
    subject = _with_shared_memory()
    kernels = kernels_of(subject)
    (position, kernel), *_ = [(k, one) for k, one in enumerate(kernels.kernels) if len(one.phases) > 1]
    first, second, *others = kernel.phases
    head = kernels.text.partition(f"@{first}")[2].partition("{")[0]
    calls = [f"  call void @{phase}({arguments(kernel)})" for phase in (first, second)]
    joined = "\n".join([f"define internal void @joined{head}{{", *calls, "  ret void", "}", ""])
    wrong = list(kernels.kernels)
    wrong[position] = replace(kernel, phases=("joined", *others))
    emulator = Emulator(replace(kernels, text=kernels.text + joined, kernels=tuple(wrong)))
    right = bits(subject, Emulator(kernels), None)
    assert all(bits(subject, emulator, seed) != right for seed in (None, 1, 2))


def test_two_blocks_that_write_the_same_place_are_found():
    """All blocks write where the first one does."""
    subject = next(s for s in map(random_subject, range(100)) if kernels_of(s).kernels[0].grid.blocks > 3)
    kernels = kernels_of(subject)
    text = kernels.text.replace("i32 %block) ", "i32 %own) ").replace("entry:\n", "entry:\n  %block = and i32 0, 0\n")
    right = bits(subject, Emulator(kernels), None)
    assert bits(subject, Emulator(replace(kernels, text=text)), 1) != right
