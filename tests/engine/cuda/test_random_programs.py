"""Programs put together at random, which stand in no table, give on a device what NumPy gives: by the emulator, in every tier."""

import os

import pytest
from tests.engine.test_random_programs import HEAD, PLANNED, Program, close, snapshot

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

#: Programs in the usual run; more are a long run.
PROGRAMS = int(os.environ.get("PULLBACK_RANDOM_DEVICE_PROGRAMS", "24"))


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_programs_are_numpys_on_a_device(number):
    program = Program(number)
    gradient = pb.value_and_grad(program.loss, wrt=tuple(range(len(program.shapes))))
    for function in (gradient, program.values):
        try:
            expected = [snapshot(function(*args)) for args in program.calls]
        except pb.errors.PullbackError:  # refused on the host as well
            continue
        # Outside of what is differentiated or compiled no element of a device is stored into an array of NumPy's, and nothing is overwritten.
        if function is program.values and "pb.inplace" in program.source[len(HEAD) :]:
            continue
        for tier in pb.TIERS if function is gradient else PLANNED:
            plan = function if tier == "unfused" else pb.compile(function, tier=tier)
            for args, wanted in zip(program.calls, expected, strict=True):
                close(pb.fetch(plan(*pb.put(args, "cpu"))), wanted, program.single)
