"""The native entry alone: what it takes, what it leaves to Python, what it gives."""

import ctypes
import gc
import re
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest
from tests.engine.native.entry.small_programs import F8, Recorder, bound, bound_copying, copying, fma, pytestmark  # noqa: F401

from pullback.backends import suspension
from pullback.backends.native import entry
from pullback.backends.native.entry import (
    Check,
    Constant,
    Fetch,
    Frame,
    FunctionResult,
    NativeProgram,
    Out,
    Question,
    Step,
    Template,
    bound_frames,
    frames,
    machine_code,
    plain_form,
    templates,
)
from pullback.backends.native.entry.result_trees import Make
from pullback.backends.native.linking import load
from pullback.core.types import ArrayType, type_of

A, B, C = (np.arange(6.0).reshape(2, 3) + k for k in range(3))


@pytest.fixture
def plan():
    """out = a * b + c for arrays of shape (2, 3)."""
    return bound(fma((2, 3)), (A, B, C))


def test_arrays_that_fit_do_not_go_through_python(plan):
    for _ in range(3):
        np.testing.assert_array_equal(plan(A, B, C), A * B + C)
    assert plan.calls == []


def test_read_only_arrays_and_the_same_array_thrice_fit(plan):
    locked = A.copy()
    locked.flags.writeable = False
    np.testing.assert_array_equal(plan(locked, A, A), A * A + A)
    assert plan.calls == []


class Sub(np.ndarray):
    pass


def unaligned():
    return np.zeros(6 * 8 + 1, np.uint8)[1:].view(F8).reshape(2, 3)


@pytest.mark.parametrize(
    "other",
    [
        A.astype("f4"),
        A.astype(">f8"),
        A.astype("i8"),
        A.reshape(3, 2),
        A.reshape(6),
        A.reshape(1, 2, 3),
        A[:1],
        A[:, :2],
        np.asfortranarray(A),
        A[::-1],
        np.broadcast_to(1.0, (2, 3)),
        A.view(Sub),
        np.ma.masked_array(A),
        unaligned(),
        A.tolist(),
        np.float64(1.0),
        1.0,
        None,
        F8,
        np.ndarray,
    ],
    ids=repr,
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_does_not_fit_goes_through_python(plan, other, place):
    args = [A, B, C]
    args[place] = other
    assert plan(*args) == "python"
    assert all(given is arg for given, arg in zip(plan.calls[0][0], args, strict=True))


def test_a_wrong_number_of_arguments_and_keywords_go_through_python(plan):
    assert plan() == plan(A) == plan(A, B) == plan(A, B, C, A) == plan(A, B, c=C) == plan(A, B, C, tuo=A) == "python"
    assert [(len(args), sorted(keywords)) for args, keywords in plan.calls] == [
        (0, []),
        (1, []),
        (2, []),
        (4, []),
        (2, ["c"]),
        (3, ["tuo"]),
    ]
    assert plan.calls[4][1]["c"] is C
    np.testing.assert_array_equal(plan(*(A, B, C)), A * B + C)
    assert len(plan.calls) == 6


def test_errors_raised_in_python_come_out(plan):
    with pytest.raises(RuntimeError, match="asked to"):
        plan("text", B, C)


def test_values_that_a_program_declines_go_through_python(plan):
    assert plan(A, B, np.full((2, 3), np.inf)) == "python"
    np.testing.assert_array_equal(plan(A, B, C), A * B + C)
    assert len(plan.calls) == 1


def test_calls_go_through_python_while_suspended(plan):
    with suspension.suspended():
        assert plan(A, B, C) == "python"
    assert isinstance(plan(A, B, C), np.ndarray)


def test_a_call_tries_one_frame_after_another():
    instance = entry.native_subclass(Recorder)()
    shapes = [(2, 3), (4,), ()]
    arrays = {shape: tuple(np.full(shape, k + 2.0) for k in range(3)) for shape in shapes}
    kinds = [(Check.ARRAY, np.ndarray)] * 3
    steps = [Step(Fetch.ARGUMENT, place, *kind, place=place) for place, kind in enumerate(kinds)]
    tried = [Frame(Template(fma(shape), 3, steps, Out(0, F8, np.ndarray))) for shape in shapes]
    entry.bind(instance, tried)
    for shape, frame in zip(shapes, tried, strict=True):
        np.testing.assert_array_equal(instance(*arrays[shape]), np.full(shape, 10.0))
        assert entry.latest_frame(instance) is frame
    entry.bind(instance, tried[1:])
    assert instance(*arrays[2, 3]) == "python"
    entry.bind(instance, [])
    assert instance(*arrays[4,]) == "python"


# --- numbers and containers ----------------------------------------------------------------------------------------------
NUMBERS = (1.5, -7, True, np.float64(2.5), np.float32(0.5), np.int64(9), np.int32(-3), np.bool_(True))


def test_numbers_are_read_by_their_exact_type():
    copies = bound_copying(NUMBERS)
    result = copies(*NUMBERS)
    assert result == NUMBERS
    assert list(map(type, result)) == list(map(type, NUMBERS))
    assert copies(float("inf"), 2**63 - 1, False, *NUMBERS[3:])[:3] == (float("inf"), 2**63 - 1, False)
    assert copies.calls == []


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, 1),
        (0, True),
        (0, np.float64(1)),
        (1, True),
        (1, 2**63),
        (1, np.int64(1)),
        (2, 1),
        (3, 1.0),
        (4, np.float64(1)),
    ],
)
def test_numbers_of_another_type_or_size_go_through_python(place, other):
    copies = bound_copying(NUMBERS)
    args = list(NUMBERS)
    args[place] = other
    assert copies(*args) == "python"


def test_arguments_may_be_nested():
    args = ({"w": A, "b": (B, [1.0, None])}, [C, {}])
    copies = bound_copying(args)
    w, b, number, c = copies(*args)
    np.testing.assert_array_equal(w, A)
    np.testing.assert_array_equal(b, B)
    np.testing.assert_array_equal(c, C)
    assert number == 1.0
    assert copies.calls == []


class MyTuple(tuple):
    __slots__ = ()


@pytest.mark.parametrize(
    "args",
    [
        ({"b": (B, [1.0, None]), "w": A}, [C, {}]),  # another order of leaves
        ({"w": A, "b": (B, [1.0, None]), "c": A}, [C, {}]),
        ({"w": A}, [C, {}]),
        ({"w": A, "d": (B, [1.0, None])}, [C, {}]),
        ({"w": A, "b": [B, [1.0, None]]}, [C, {}]),
        ({"w": A, "b": MyTuple((B, [1.0, None]))}, [C, {}]),
        ({"w": A, "b": (B, [1.0])}, [C, {}]),
        ({"w": A, "b": (B, [1.0, 2.0])}, [C, {}]),
        ({"w": A, "b": (B, [1.0, None], A)}, [C, {}]),
        ({"w": A, "b": (B, [1.0, None])}, [C, {1: 2}]),
        ({"w": A, "b": (B, [1.0, None])}, [C]),
        ({"w": A, "b": (B, [1.0, None])}, None),
        (None, None),
    ],
)
def test_arguments_nested_otherwise_go_through_python(args):
    copies = bound_copying(({"w": A, "b": (B, [1.0, None])}, [C, {}]))
    assert copies(*args) == "python"


def test_results_are_made_of_outputs():
    args = (A, 2.5, 7, True, np.float32(1.5))
    outs = list(plain_form(copying(*map(type_of, args)).results))
    form = {"a": outs[0], "rest": [(outs[1], Out(1, F8, np.generic)), Constant("c"), {}, ()], "f": outs[2:]}
    result = bound_copying(args, form)(*args)
    np.testing.assert_array_equal(result["a"], A)
    assert list(result) == ["a", "rest", "f"]
    assert result["rest"] == [(2.5, np.float64(2.5)), "c", {}, ()]
    assert type(result["rest"][0][1]) is np.float64
    assert result["f"] == [7, True, np.float32(1.5)]
    assert type(result["f"][2]) is np.float32


def test_numbers_of_numpy_are_objects_of_their_own_with_every_bit():
    copies = bound_copying((1.0,), Out(0, F8, np.generic))
    bits = [0, 1, 2**63, 0x7FF0000000000000, 0x7FF8000000000123, 0x3FF123456789ABCD]
    values = [np.array([pattern], np.uint64).view(F8)[0] for pattern in bits]
    results = [copies(float(value)) for value in values]
    assert copies.calls == []
    assert [int(result.view(np.uint64)) for result in results] == bits
    assert {type(result) for result in results} == {np.float64}
    assert all(sys.getrefcount(result) == sys.getrefcount(value) for result, value in zip(results, values, strict=True))
    before = sys.getallocatedblocks()
    for _ in range(1000):
        copies(2.0)
    assert sys.getallocatedblocks() < before + 100


def test_python_may_make_what_is_returned():
    args = ({"w": A}, 2.5, [C])
    seen = []

    def finish(outputs, values):
        seen.append(values)
        if values[1] < 0:
            raise RuntimeError("negative")
        return [outputs[1], values[0], outputs[0]]

    copies = bound_copying(args, FunctionResult(finish, tuple(plain_form(copying(*map(type_of, (A, 2.5, C))).results))))
    number, given, made = copies(*args)
    assert number == 2.5
    assert given is A
    assert made is not A
    np.testing.assert_array_equal(made, A)
    assert seen[0][2] is C
    with pytest.raises(RuntimeError, match="negative"):
        copies({"w": A}, -1.0, [C])
    seen.clear()
    before = [sys.getrefcount(thing) for thing in (A, C, args[0], finish)]
    for _ in range(1000):
        copies(*args)
        with pytest.raises(RuntimeError, match="negative"):
            copies({"w": A}, -1.0, [C])
        seen.clear()
    assert [sys.getrefcount(thing) for thing in (A, C, args[0], finish)] == before
    assert copies.calls == []


# --- memory --------------------------------------------------------------------------------------------------------------
def address(array):
    return array.__array_interface__["data"][0]


def test_a_result_that_was_dropped_is_written_again(plan):
    first = address(plan(A, B, C))
    assert address(plan(A, B, C)) == first


@pytest.mark.parametrize(
    "held",
    [
        lambda y: y,
        lambda y: [y],
        lambda y: y.T,
        lambda y: y[0, 1:],
        memoryview,
        lambda y: y.flat,
        lambda y: y.__array_struct__,
        lambda y: np.lib.stride_tricks.as_strided(y, (1,), (8,)),
    ],
)
def test_a_result_that_somebody_may_come_back_to_is_left_alone(plan, held):
    y = plan(A, B, C)
    before = y.copy()
    kept = held(y)
    where = address(y)
    del y
    others = [plan(B, B, B) for _ in range(3)]
    assert where not in map(address, others)
    assert ctypes.string_at(where, before.nbytes) == before.tobytes()
    del kept


def test_a_result_that_is_weakly_referred_to_is_gone_or_as_it_was(plan):
    y = plan(A, B, C)
    before = y.copy()
    reference = weakref.ref(y)
    del y
    for _ in range(4):
        plan(B, B, B)
        assert reference() is None or (reference() == before).all()


def reshape(y):
    y.shape = (3, 2)


def retype(y):
    y.dtype = np.int64


def lock(y):
    y.flags.writeable = False


def shrink(y):
    y.resize((1, 1), refcheck=False)


@pytest.mark.parametrize("change", [reshape, retype, lock, shrink])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_result_that_was_changed_in_kind_is_not_given_again(plan, change):
    y = plan(A, B, C)
    change(y)
    del y
    for _ in range(3):
        y = plan(A, B, C)
        np.testing.assert_array_equal(y, A * B + C)
        assert y.shape == (2, 3)
        assert y.dtype == F8
        assert y.flags.writeable
        assert y.flags.owndata


def test_held_until_the_next_is_there_settles_on_two_arrays(plan, arrays_in_steady_state):
    x = A
    seen = set()
    for _ in range(10):
        x = plan(x, B, C)
        seen.add(address(x))
    assert len(seen) == 2
    assert arrays_in_steady_state(lambda: plan(A, B, C)) == {0}
    assert arrays_in_steady_state(lambda: plan(A, B, C), held=True) == {0}


def test_results_that_are_kept_are_all_different(plan):
    kept = [plan(np.full((2, 3), float(k)), B, C) for k in range(20)]
    for k, y in enumerate(kept):
        np.testing.assert_array_equal(y, k * B + C)


def test_calls_leave_counts_of_references_and_memory_as_they_were(plan):
    # Local arrays: those of the module are referred to by the parameters of tests.
    a, b, c = A.copy(), B.copy(), C.copy()
    copies = bound_copying((a, 1.5, {"k": (b, [7])}), {"x": [Out(0, F8, np.ndarray)], "y": (Out(1, F8, np.generic),)})
    nested = {"k": (b, [7])}
    watched = (a, b, c, F8, None, True, 1.5, nested, nested["k"], np.ndarray, "k", "x", plan, copies)

    def calls(number):
        for _ in range(number):
            plan(a, b, c)
            copies(a, 1.5, nested)
            plan(a, b, 1.0)
            plan.calls.clear()

    calls(10)
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    tracemalloc.start()
    try:
        calls(10)
        memory, _ = tracemalloc.get_traced_memory()
        calls(20_000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - memory
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(thing) for thing in watched] == before
    assert grown < 1000


def test_a_callable_that_goes_takes_its_frames_and_results_along():
    instance = bound(fma((2, 3)), (A, B, C))
    result = instance(A, B, C)
    frame = weakref.ref(entry.bound_frames(instance)[0])
    assert sys.getrefcount(result) == 3  # the name, the frame, the argument of getrefcount
    cycle = {"instance": instance}
    instance.cycle = cycle
    reference = weakref.ref(instance)
    del instance, cycle
    gc.collect()
    assert reference() is None
    assert frame() is None
    assert sys.getrefcount(result) == 2


def test_a_frame_is_not_given_up_while_a_run_is_on():
    instance = bound(fma((2, 3)), (A, B, C))
    result = instance(A, B, C)
    frame = entry.bound_frames(instance)[0]
    words = frame.words
    words[0] = 1  # as a thread does that runs the program without the interpreter's lock
    entry.bind(instance, [])
    del frame
    assert sys.getrefcount(result) == 3
    words[0] = 0
    frames.let_go_of_finished()
    assert sys.getrefcount(result) == 2


def test_frames_may_share_an_arena_and_then_run_one_at_a_time():
    template = Template(fma((2, 3)), 3, entry.argument_steps((A, B, C)), Out(0, F8, np.ndarray))
    arena = entry.Arena(64)
    instances = [entry.native_subclass(Recorder)() for _ in range(2)]
    for instance in instances:
        entry.bind(instance, [Frame(template, arena)])
    for instance in instances:
        np.testing.assert_array_equal(instance(A, B, C), A * B + C)
    arena.lock[0] = 1  # as a thread does that runs the program without the interpreter's lock
    assert [instance(A, B, C) for instance in instances] == ["python", "python"]
    arena.lock[0] = 0
    np.testing.assert_array_equal(instances[0](A, B, C), A * B + C)
    assert arena.lock[0] == 0


def test_a_program_may_run_so_many_times_and_no_more():
    instance = bound(fma((2, 3)), (A, B, C), runs=2)
    assert [type(instance(A, B, C)) for _ in range(4)] == [np.ndarray, np.ndarray, str, str]


# --- questions -----------------------------------------------------------------------------------------------------------
def _raising():
    raise KeyError("no answer")


@pytest.mark.parametrize(
    ("question", "is_native"),
    [
        (Question(np.ndim, 2, step=1), True),
        (Question(len, 2, address=id(A)), True),
        (Question(lambda: (1, 2.0), (1.0, 2)), True),  # equal, if not the same
        (Question(np.ndim, 3, step=1), False),
        (Question(_raising, None), False),
        (Question(lambda: np.zeros(2), 0), False),  # what cannot be compared with it
    ],
    ids=["of a step", "of an object", "of nothing", "wrong", "raising", "incomparable"],
)
def test_questions_have_the_answers_that_they_had_or_the_call_goes_through_python(question, is_native):
    instance = bound(fma((2, 3)), (A, B, C), questions=[question])
    for _ in range(3):
        result = instance(A, B, C)
        assert result == "python" if not is_native else np.array_equal(result, A * B + C)


def test_a_frame_that_an_answer_ends_asks_nothing_more_and_does_not_run():
    asked = []

    def answer():
        asked.append(None)
        if len(asked) == 2:
            bound_frames(instance)[0].words[templates.Head.RUNS] = 0

    instance = bound(fma((2, 3)), (A, B, C), questions=[Question(answer, None)] * 3)
    assert (instance(A, B, C), len(asked)) == ("python", 2)
    last = bound(fma((2, 3)), (A, B, C), questions=[Question(lambda: answer_last(), None)])
    answer_last = lambda: bound_frames(last)[0].words.__setitem__(templates.Head.RUNS, 0)  # noqa: E731
    assert last(A, B, C) == "python"


def test_a_call_inside_of_an_answer_goes_through_python():
    inside = []

    def answer():
        inside.append(instance(A, B, C))

    instance = bound(fma((2, 3)), (A, B, C), questions=[Question(answer, None)])
    np.testing.assert_array_equal(instance(A, B, C), A * B + C)
    assert inside == ["python"]


# --- out -----------------------------------------------------------------------------------------------------------------
def test_results_are_written_into_out(plan):
    out = np.zeros((2, 3))
    for _ in range(3):
        assert plan(A, B, C, out=out) is out
        np.testing.assert_array_equal(out, A * B + C)
        np.testing.assert_array_equal(plan(B, B, B), B * B + B)
        np.testing.assert_array_equal(out, A * B + C)
    assert plan.calls == []
    assert sys.getrefcount(out) == 2


@pytest.mark.parametrize(
    "out",
    [
        None,
        np.zeros((3, 2)),
        np.zeros((2, 3), "f4"),
        np.zeros((2, 3), ">f8"),
        np.zeros((3, 2)).T,
        np.zeros((2, 6))[:, ::2],
        np.broadcast_to(0.0, (2, 3)),
        unaligned(),
        np.zeros((2, 3)).view(Sub),
        [np.zeros((2, 3))],
        (np.zeros((2, 3)),),
        1.0,
    ],
)
def test_an_out_that_does_not_fit_goes_through_python(plan, out):
    assert plan(A, B, C, out=out) == "python"
    assert plan.calls[0][1]["out"] is out


def test_an_out_that_shares_memory_goes_through_python(plan):
    memory = np.arange(20.0)
    here, behind = memory[:6].reshape(2, 3), memory[6:12].reshape(2, 3)
    for out in (here, memory[5:11].reshape(2, 3), memory[3:9].reshape(2, 3)):
        assert plan(here, B, C, out=out) == plan(A, here, C, out=out) == plan(A, B, here, out=out) == "python"
    expected = here * B + C
    assert plan(here, B, C, out=behind) is behind
    np.testing.assert_array_equal(behind, expected)
    assert len(plan.calls) == 9


def test_out_is_a_tree_like_the_result():
    args = (A, 2.5, 7, np.float32(1.5))
    outs = plain_form(copying(*map(type_of, args)).results)
    copies = bound_copying(args, {"a": outs[0], "rest": [outs[1], (outs[2],)], "f": outs[3]})

    def trees():
        return {"a": np.zeros((2, 3)), "rest": [np.zeros(()), (np.zeros((), int),)], "f": np.zeros((), "f4")}

    out = trees()
    assert copies(*args, out=out) is out
    np.testing.assert_array_equal(out["a"], A)
    assert out["rest"][0] == 2.5
    assert out["rest"][1][0] == 7
    assert out["f"] == 1.5
    plain = copies(A, 3.5, 8, np.float32(2.5))
    assert plain["rest"] == [3.5, (8,)]
    assert out["rest"][0] == 2.5
    memory = np.zeros(7)
    overlapping = trees() | {"a": memory[:6].reshape(2, 3), "rest": [memory[5:6].reshape(()), (np.zeros((), int),)]}
    for other in (
        trees() | {"f": np.zeros(())},
        trees() | {"g": 1},
        [trees()],
        overlapping,
        dict(reversed(trees().items())),
    ):
        assert copies(*args, out=other) == "python"


def test_out_has_a_place_for_every_output_once():
    outs = plain_form(copying(type_of(A), type_of(C)).results)
    for form, out in ((outs[:1], (np.zeros((2, 3)),)), ((*outs, outs[0]), tuple(np.zeros((2, 3)) for _ in range(3)))):
        copies = bound_copying((A, C), form)
        assert copies(A, C, out=out) == "python"
        np.testing.assert_array_equal(copies(A, C)[-1], A)


# --- guards, recursion, threads --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seen", "type_", "same", "other"),
    [
        (True, "b1", True, False),
        (False, "b1", False, True),
        (True, "f8", float("nan"), 0.0),
        (False, "f4", -0.0, 1e-45),
        (True, "i4", -1, 0),
        (3, "i8", 3, -3),
        (-2, "i4", -2, 2),
    ],
)
def test_a_run_that_sees_something_else_is_not_what_was_asked_for(seen, type_, same, other):
    number = ArrayType((), np.dtype(type_))
    copies = copying(ArrayType((2, 3), F8), number)
    program = NativeProgram(copies.address, copies.inputs, copies.outputs, (seen,), owner=copies)
    instance = bound(program, (A, np.zeros((), type_)))
    np.testing.assert_array_equal(instance(A, np.array(same, type_)), A)
    assert instance(A, np.array(other, type_)) == "python"
    np.testing.assert_array_equal(instance(B, np.array(same, type_)), B)


def test_arrays_that_have_to_be_apart_are_looked_at():
    """One may be overwritten for a time before the other is read."""
    instance = bound(fma((2, 3)), (A, B, C), apart=[(0, 1), (0, 2)])
    assert instance(A, A, C) == instance(A, B, A) == "python"
    np.testing.assert_array_equal(instance(A, B, B), A * B + B)
    memory = np.arange(20.0)
    assert instance(memory[:6].reshape(2, 3), memory[5:11].reshape(2, 3), C) == "python"
    assert isinstance(instance(memory[:6].reshape(2, 3), memory[6:12].reshape(2, 3), C), np.ndarray)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("size", "count", "step"), [(1, 0, 1), (5, 4, 1), (1000, 250, 4), (1000, 143, 7)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "b1"])
def test_arrays_that_were_given_are_watched(size, count, step, dtype):
    array = np.ones(size, dtype)
    program = copying(type_of(array))
    form = plain_form(program.results)[0]
    template = Template(program, 0, [], form, watched=[entry.WatchedInput(0, count, step)])
    frame = Frame(template)
    line = array[::step] if size > 1000 else array
    seen = [*range(0, count * step, step), size - 1]
    line = array[seen]
    frame.give({0: array}, {0: line.tobytes()})
    instance = entry.native_subclass(Recorder)()
    entry.bind(instance, [frame])
    np.testing.assert_array_equal(instance(), array)
    for place in {seen[0], seen[len(seen) // 2], seen[-1]}:
        array[place] = 0
        assert instance() == "python"
        array[place] = 1
    np.testing.assert_array_equal(instance(), array)
    array.resize(size + (1 << 26) // array.itemsize, refcheck=False)  # so large that it is moved
    assert instance() == "python"


CALLING = """
declare ptr @PyObject_CallNoArgs(ptr)
declare void @Py_DecRef(ptr)
define i64 @program(ptr %table) {
  %in = load ptr, ptr %table
  %callable = load ptr, ptr %in
  %out.at = getelementptr ptr, ptr %table, i64 1
  %out = load ptr, ptr %out.at
  %result = call ptr @PyObject_CallNoArgs(ptr %callable)
  call void @Py_DecRef(ptr %result)
  %word = load i64, ptr %in
  store i64 %word, ptr %out
  ret i64 0
}
"""


def test_a_call_inside_a_run_goes_through_python():
    loaded = load(CALLING)
    word = ArrayType((1,), np.dtype("i8"))
    instance = bound(NativeProgram(loaded.address("program"), (word,), (word,), owner=loaded), (np.zeros(1, "i8"),))
    inner = []
    function = lambda: inner.append(instance(given))  # noqa: E731 - its address is what counts
    given = np.array([id(function)])
    assert instance(given)[0] == id(function)
    assert inner == ["python"]
    assert instance(given)[0] == id(function)


def test_threads_get_their_own_answers():
    """The program gives the interpreter up; who finds the frame taken goes on to the next one, or through Python."""
    shape = (50_000,)
    program = fma(shape, releases=True)
    steps = [Step(Fetch.ARGUMENT, place, Check.ARRAY, np.ndarray, place=place) for place in range(3)]
    instance = entry.native_subclass(Recorder)()
    template = Template(program, 3, steps, Out(0, F8, np.ndarray))
    entry.bind(instance, [Frame(template), Frame(template)])
    wrong = []

    def hammer(number):
        a = np.full(shape, float(number))
        for k in range(200):
            y = instance(a, a, np.full(shape, float(k)))
            if not isinstance(y, str) and not (y == number * number + k).all():
                wrong.append((number, k))

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not any(frame.is_busy for frame in entry.bound_frames(instance))


def test_a_result_that_cannot_be_allocated_is_an_error_and_leaves_the_frame_usable(plan, monkeypatch):
    frame = entry.bound_frames(plan)[0]
    shape_at = frame.words[frame._memory.template.outputs + 4] // 8
    frame.words[shape_at] = 2**40
    with pytest.raises(MemoryError):
        plan(A, B, C)
    frame.words[shape_at] = 2
    np.testing.assert_array_equal(plan(A, B, C), A * B + C)


# --- the types -----------------------------------------------------------------------------------------------------------
ENTRY_C = Path(machine_code.__file__).with_name("entry.c").read_text(encoding="utf-8")


def test_the_parts_of_a_frame_are_as_large_as_the_entry_takes_them_for():
    assert {name: int(count) for name, count in re.findall(r"^WORDS\((\w+), (\d+)\);$", ENTRY_C, re.MULTILINE)} == {
        "frame": len(templates.Head),
        "table": templates.DICT,
        "held": templates.HELD,
        "step": templates.STEP,
        "output": templates.OUTPUT,
        "making": templates.MAKING,
        "watch": templates.WATCH,
        "pair": templates.PAIR,
        "guard": templates.GUARD,
        "question": templates.QUESTION,
    }


@pytest.mark.parametrize("kinds", [Fetch, Check, Make])
def test_what_steps_and_makings_do_has_the_numbers_that_the_entry_knows_it_by(kinds):
    name = kinds.__name__.lower()
    members = re.search(rf"^enum {name} {{(.*?)}};", ENTRY_C, re.MULTILINE | re.DOTALL)[1]
    assert re.findall(r"\w+", members) == [f"{name}_{kind.name}".upper() for kind in sorted(kinds)]
    assert sorted(kinds) == list(range(len(kinds)))


def test_an_instance_that_is_not_bound_is_an_ordinary_one():
    class Base:
        """What it is."""

        def __init__(self, word):
            self.word = word

        def __call__(self, *args):
            return self.word, args

        def method(self):
            return self.word

    native = entry.native_subclass(Base)
    instance = native("word")
    assert entry.native_subclass(Base) is native
    assert native.__doc__ == "What it is."
    assert native.__module__ == Base.__module__
    assert isinstance(instance, Base)
    assert instance(1, 2) == ("word", (1, 2))
    assert instance.method() == "word"
    assert weakref.ref(instance)() is instance
    assert native.__mro__ == (native, Base, object)


def test_where_objects_are_laid_out_otherwise_nothing_is_native(monkeypatch):
    monkeypatch.setattr(entry.callables, "why_unknown", lambda: "not here")
    assert entry.native_subclass(Recorder) is Recorder
    assert not entry.is_native(Recorder())


def test_a_field_that_is_elsewhere_is_noticed(monkeypatch):
    monkeypatch.setattr(entry.offsets, "SHAPE", 40)
    assert entry.offsets._probe()["shape"] is False
    assert "shape of an object" in entry.offsets.why_unknown.__wrapped__()
