"""Native programs as callables of their own: the same natively and in Python."""

import contextlib

import numpy as np
import pytest
from tests.engine.native.entry.small_programs import F8, copying, fma, pytestmark  # noqa: F401

from pullback.backends.interpreter import GuardFailure
from pullback.backends.native import entry
from pullback.backends.native.entry import NativeProgram
from pullback.core.types import ArrayType

A, B, C = (np.arange(6.0).reshape(2, 3) + k for k in range(3))


def interpreted(a, b, c):
    return (a * b + c,)


@pytest.mark.parametrize(
    "args",
    [
        (A, B, C),
        (A[::-1], B, C),
        (A, np.asfortranarray(B), np.broadcast_to(2.0, (2, 3))),
        (A, B, np.full((2, 3), np.inf)),
    ],
)
def test_programs_run_on_any_layout_and_leave_what_they_decline(args):
    run, write = entry.runner(fma((2, 3)), interpreted), entry.writer(fma((2, 3)), interpreted)
    for _ in range(6):
        (result,) = run(*args)
        np.testing.assert_array_equal(result, interpreted(*args)[0])
        out = np.zeros((2, 3))
        for target in (out, np.zeros((3, 2)).T, np.zeros((2, 3), "f4")):
            assert write(*args, target) is None
            np.testing.assert_array_equal(target, interpreted(*args)[0])


def test_calls_of_one_kind_become_native():
    run, write = entry.runner(fma((2, 3)), None), entry.writer(fma((2, 3)), None)
    out = np.zeros((2, 3))
    for _ in range(6):
        run(A, B, C)
        write(A, B, C, out)
    for callable_ in (run, write):
        (frame,) = entry.bound_frames(callable_)
        assert entry.latest_frame(callable_) is frame


USUAL = [None, B, A]  # what a list has before the result

LISTED = {
    "as they are": [*USUAL, np.zeros((2, 3))],
    "of another dtype": [None, B.astype("f4"), A, np.zeros((2, 3))],
    "in Fortran order": [None, np.asfortranarray(B), A, np.zeros((2, 3))],
    "of a subclass": [None, B.view(np.ma.MaskedArray), A, np.zeros((2, 3))],
    "written into by columns": [*USUAL, np.zeros((3, 2)).T],
    "written into in another dtype": [*USUAL, np.zeros((2, 3), "f4")],
    "in a longer list": [*USUAL, np.zeros((2, 3)), None],
}


@pytest.mark.parametrize("name", LISTED)
def test_arrays_in_a_list_are_checked_as_arguments_are(name):
    write = entry.writer(fma((2, 3)), interpreted, {1: 1, 3: 3})  # b and the result
    for _ in range(6):
        assert write([*USUAL, np.zeros((2, 3))], A, C) is None
    (frame,) = entry.bound_frames(write)
    assert entry.latest_frame(write) is frame
    entry.forget_latest(write)
    write(LISTED[name], A, C)
    np.testing.assert_array_equal(LISTED[name][3], interpreted(A, B, C)[0])
    assert (entry.latest_frame(write) is frame) == (name == "as they are")


def test_a_listed_array_of_another_shape_is_refused():
    write = entry.writer(fma((2, 3)), interpreted, {1: 1, 3: 3})
    for _ in range(6):
        write([*USUAL, np.zeros((2, 3))], A, C)
    for other in (B[:1], B.ravel(), B.reshape(3, 2)):
        with pytest.raises(ValueError, match="shape"):
            write([None, other, A, np.zeros((2, 3))], A, C)


def test_a_listed_result_that_is_read_only_is_not_written_natively():
    write = entry.writer(fma((2, 3)), interpreted, {3: 0})
    out = np.zeros((2, 3))
    for _ in range(6):
        write([out], A, B, C)
    out.fill(7)
    out.flags.writeable = False
    entry.forget_latest(write)
    with contextlib.suppress(ValueError):
        write([out], A, B, C)
    assert entry.latest_frame(write) is None


def test_guards_are_told_apart():
    number = ArrayType((), np.dtype("b1"))
    copies = copying(ArrayType((2, 3), F8), number)
    program = NativeProgram(copies.address, copies.inputs, copies.outputs, (True,), owner=copies)
    run = entry.runner(program, None)
    for _ in range(5):
        np.testing.assert_array_equal(run(A, np.True_)[0], A)
        assert run(A, np.False_) == GuardFailure(0, False)


def test_integers_of_python_that_are_too_large_are_for_the_interpreter():
    run = entry.runner(copying(ArrayType((), np.dtype("i8"), weak=True)), lambda n: ("interpreted", n))
    for _ in range(5):
        assert run(7) == (7,)
        assert run(2**70) == ("interpreted", 2**70)


def test_what_is_no_call_of_the_program_is_refused():
    run, write = entry.runner(fma((2, 3)), None), entry.writer(fma((2, 3)), None)
    with pytest.raises(TypeError, match="3 inputs was called with 2"):
        run(A, B)
    with pytest.raises(TypeError, match="3 inputs was called with 3 inputs and outputs"):
        write(A, B, C)
    with pytest.raises(ValueError, match="shape"):
        run(A, B, C[:1])
