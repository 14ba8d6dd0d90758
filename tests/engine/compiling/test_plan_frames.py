"""Plans of the native tier: which calls are entered natively, and that all of them give what the function gives."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import tracemalloc
import types
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.backends.native.entry import bound_frames, latest_frame, why_unknown
from pullback.compiling.plan import FAMILIES_KEPT
from pullback.errors import ChangedError, DifferentiationError, PullbackReuseError

pytestmark = pytest.mark.skipif(
    not availability.is_available() or why_unknown() is not None,
    reason=str(availability.why_not() or why_unknown()),
)

W, X, B = (np.linspace(-1.0, 2.0, 6).reshape(2, 3) + k for k in range(3))
SCALE = 2.0
TABLE = np.arange(3.0)
NESTED = {"list": [np.ones(3), 2.0], "tuple": (TABLE,)}


@dataclass
class Parameters:
    w: object
    b: object


def compiled(function):
    return pb.compile(function, tier="native")


def close(ours, theirs):
    ours, theirs = pb.trees.flatten(ours)[0], pb.trees.flatten(theirs)[0]
    assert list(map(type, ours)) == list(map(type, theirs))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def entered(plan, *args, **keywords):
    """The result of a call, which was native."""
    plan._native_latest = 0
    result = plan(*args, **keywords)
    assert latest_frame(plan) is not None
    return result


def through_python(plan, *args, **keywords):
    """The result of a call, which was not."""
    plan._native_latest = 0
    result = plan(*args, **keywords)
    assert latest_frame(plan) is None
    return result


def loss(w, x, b):
    return np.sum(np.square(w * x + b))


# --- arguments and results -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (loss, (W, X, B)),
        (pb.grad(loss), (W, X, B)),
        (pb.value_and_grad(loss), (W, X, B)),
        (pb.grad(loss, wrt=("w", "b")), (W, X, B)),
        (pb.value_and_grad(loss, wrt=(0, 1, 2)), (W, X, B)),
        (pb.value_and_grad(loss, wrt=(0, 2)), (W, X, 2.0)),
        (pb.grad(loss), (2.0, 3.0, 1.0)),
        (lambda x, k: {"a": x * k, "b": [x + k, (k, None)]}, (X, 3)),
        (lambda p: p["w"] * p["x"] + p["more"][1], ({"w": W, "x": X, "more": [1.0, B]},)),
        (pb.grad(lambda p: np.sum(p["w"] * p["x"] + p["more"][1])), ({"w": W, "x": X, "more": [1.0, B]},)),
        (lambda x: x.astype(np.float32), (X,)),
        (lambda x, flag: x * flag, (X, True)),
        (lambda x, k: x * k, (X, np.float64(2.0))),
        (lambda x, k: x * k, (X.astype(np.float32), np.float32(2.0))),
        (lambda x: (x, x), (X,)),
        (lambda x: x > 0, (X,)),
        (pb.value_and_grad(lambda p, x: np.sum(np.square(p.w * x + p.b))), (pb.Block({"w": W, "b": B}), X)),
        (lambda p: p["block"].w * p["scale"], ({"block": pb.Block({"w": W}), "other": X, "scale": 2.0},)),
        (lambda p, x: p.w * x + p.b, (Parameters(W, 1.0), X)),
        (pb.value_and_grad(lambda x: (np.sum(x * x), x + 1), has_aux=True), (X,)),
    ],
)
def test_the_second_call_is_native_and_gives_the_same(function, args):
    plan = compiled(function)
    first = plan(*args)
    expected = function(*args)
    close(first, expected)
    for _ in range(3):
        close(entered(plan, *args), expected)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (pb.grad(lambda x, y: np.sum(x * x), wrt=(0, 1)), (X, W)),
        (lambda x: Parameters(x * 2, x + 1), (X,)),
    ],
)
def test_what_python_makes_of_the_results_is_made_in_a_native_call(function, args):
    plan = compiled(function)
    for _ in range(2):  # the class of what is returned is first looked at while recording
        plan(*args)
    for _ in range(3):
        ours, theirs = entered(plan, *args), function(*args)
        assert type(ours) is type(theirs)
        close(ours, theirs)


def test_blocks_and_dataclasses_are_looked_at():
    plan = compiled(pb.grad(lambda p, x: np.sum(p.w * x)))
    block, other = pb.Block({"w": W}), pb.Block({"w": (2, 3), "b": (2,)})
    for p in (block, other, Parameters(W, 1.0)):
        close(plan(p, X), pb.grad(lambda p, x: np.sum(p.w * x))(p, X))
    close(entered(plan, block, X), plan.function(block, X))
    gradient = entered(plan, block, X)
    close(entered(plan, gradient, X), plan.function(gradient, X))
    assert gradient.w.base is gradient.array
    out = pb.Block({"w": (2, 3)})
    assert entered(plan, gradient, X, out=gradient.map(np.zeros_like)).layout is gradient.layout
    assert plan(block, X, out=out) is out
    np.testing.assert_array_equal(out.w, X)

    class Sub(Parameters):
        pass

    for p in (Sub(W, 1.0), Parameters(W[:1], 1.0), pb.Block({"v": (6,), "w": (2, 3)})):
        close(through_python(plan, p, X), plan.function(p, X))


def test_each_kind_of_arguments_has_a_frame():
    plan = compiled(loss)
    calls = [(W, X, B), (W[0], X[0], B[0]), (W.astype("f4"), X, B), (W, X, 1.0), (W, 2, 1.0), (W, X, B[:1])]
    for args in calls * 2:
        close(plan(*args), loss(*args))
    for args in calls:
        close(entered(plan, *args), loss(*args))
    assert len(bound_frames(plan)) == len(calls)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[::-1],
        np.asfortranarray,
        lambda x: np.broadcast_to(x[0], (2, 3)),
        lambda x: x.astype(">f8"),
        lambda x: x.view(np.recarray),
        lambda x: np.ma.masked_array(x, x > 0),
        lambda x: x.tolist(),
    ],
)
def test_arrays_of_another_kind_give_what_the_function_gives(change):
    def function(w, x):
        return w * x if not isinstance(x, list) else w * x[0][0]

    plan = compiled(function)
    plan(W, X)
    other = change(X)
    close(through_python(plan, W, other), function(W, other))
    close(entered(plan, W, X), function(W, X))


def test_wrong_arguments_raise_what_the_function_raises():
    plan = compiled(loss)
    plan(W, X, B)
    for _ in range(2):
        with pytest.raises(TypeError, match="positional argument"):
            plan(W, X)
        with pytest.raises(TypeError, match="unexpected keyword|takes 3|multiple"):
            plan(W, X, B, c=1)
        close(plan(W, X, b=B), loss(W, X, B))
        close(plan(W, b=B, x=X), loss(W, X, B))


def test_a_plan_may_be_traced_through():
    plan = compiled(loss)
    plan(W, X, B)
    for _ in range(2):
        close(pb.grad(lambda w: plan(w, X, B))(W), pb.grad(loss)(W, X, B))
        close(pb.jvp(lambda w: plan(w, X, B), (W,), (B,))[1], pb.jvp(lambda w: loss(w, X, B), (W,), (B,))[1])
        close(entered(plan, W, X, B), loss(W, X, B))


# --- what is around ----------------------------------------------------------------------------------------------------------
def test_globals_are_looked_at(monkeypatch):
    def function(x):
        return x * SCALE + TABLE

    plan = compiled(function)
    plan(X)
    close(entered(plan, X), function(X))
    TABLE[1] += 5.0
    close(entered(plan, X), function(X))  # read again, not recorded again
    monkeypatch.setitem(globals(), "TABLE", TABLE * 2)
    close(entered(plan, X), function(X))
    monkeypatch.setitem(globals(), "TABLE", np.ones((2, 3)))
    close(through_python(plan, X), function(X))
    close(entered(plan, X), function(X))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    close(through_python(plan, X), function(X))
    close(entered(plan, X), function(X))


def test_closures_and_defaults_are_looked_at():
    w, k = W.copy(), 2.0

    def function(x, shift=X):
        return x * w * k + shift

    plan = compiled(function)
    plan(X)
    close(entered(plan, X), function(X))
    w[0] = 7.0
    close(entered(plan, X), function(X))
    w = w + 1
    close(entered(plan, X), function(X))
    k = 3.0
    close(through_python(plan, X), function(X))
    close(entered(plan, X), function(X))
    function.__defaults__ = (X * 2,)
    close(entered(plan, X), function(X))
    function.__defaults__ = (2.0,)
    close(through_python(plan, X), function(X))
    close(entered(plan, X), function(X))
    function.__code__ = (lambda x, shift=X: x * w * k - shift).__code__
    close(through_python(plan, X), function(X))
    close(entered(plan, X), function(X))


def test_what_is_exchanged_for_its_like_is_looked_for_from_then_on(monkeypatch):
    def function(x):
        return x * SCALE

    plan = compiled(function)
    plan(X)
    for k in range(12):
        monkeypatch.setitem(globals(), "SCALE", float(str(2.0)))  # another object each time
        close(through_python(plan, X), X * 2)
        close(plan(X), X * 2)
        assert (latest_frame(plan) is not None) == (k < 7)
    assert len(bound_frames(plan)) == 1


def test_containers_are_looked_at():
    def function(x):
        return x * NESTED["list"][0] * NESTED["list"][1] + NESTED["tuple"][0]

    plan = compiled(function)
    plan(X)
    close(entered(plan, X), function(X))
    NESTED["list"][0] = np.arange(3.0)
    close(entered(plan, X), function(X))
    for change in (
        lambda: NESTED["list"].append(1.0),
        lambda: NESTED["list"].pop(),
        lambda: NESTED["list"].__setitem__(1, 5.0),
        lambda: NESTED.update(tuple=[TABLE]),
        lambda: NESTED.update(other=1),
        lambda: NESTED.pop("other"),
    ):
        change()
        close(plan(X), function(X))  # through Python, if it is not as it was before
        close(entered(plan, X), function(X))
    NESTED["tuple"] = ()
    with pytest.raises(IndexError):
        plan(X)
    NESTED["tuple"] = (TABLE,)
    close(plan(X), function(X))


class Model:
    factor = 2.0

    def __init__(self, w):
        self.w = w
        self.steps = 2

    def predict(self, x):
        return self.helped(x) * self.factor

    def helped(self, x):
        return x * self.w * self.steps


def test_objects_and_their_classes_are_looked_at(monkeypatch):
    model = Model(W.copy())
    plan = compiled(model.predict)
    plan(X)
    close(entered(plan, X), model.predict(X))
    model.w += 1
    close(entered(plan, X), model.predict(X))
    model.w = model.w * 2
    close(entered(plan, X), model.predict(X))
    for change in (
        lambda: setattr(model, "steps", 3),
        lambda: setattr(model, "more", 3),
        lambda: delattr(model, "more"),
        lambda: monkeypatch.setattr(Model, "factor", 5.0),
        lambda: monkeypatch.setattr(Model, "helped", lambda self, x: x + self.w),
        lambda: setattr(model, "factor", 9.0),
        lambda: setattr(model, "__dict__", {"w": W, "steps": 1}),
    ):
        change()
        close(plan(X), model.predict(X))  # through Python, if it is not as it was before
        close(entered(plan, X), model.predict(X))


def test_what_cannot_be_looked_at_natively_is_looked_at_in_python():
    class WithArray:
        w = np.ones(3)

        def apply(self, x):
            return x * self.w

    model = WithArray()
    plan = compiled(model.apply)
    for value in (1.0, 2.0, 2.0):
        WithArray.w[0] = value
        close(through_python(plan, X), model.apply(X))
    assert "calls go through Python: an array of a class is compared" in plan.explain()


def test_why_calls_by_keyword_are_not_native_is_told():
    class WithArray:
        w = np.ones(3)

        def apply(self, *, x):
            return x * self.w

    plan = compiled(WithArray().apply)
    for value in (1.0, 2.0, 2.0):
        WithArray.w[0] = value
        close(plan(x=X), WithArray().apply(x=X))
    assert "calls go through Python: an array of a class is compared" in plan.explain()


# --- ways, memory, threads ---------------------------------------------------------------------------------------------------
def test_guards_choose_among_native_programs():
    def function(x):
        return x * 2 if x[0, 0] > 0 else x - 1

    plan = compiled(function)
    calls = (X, -X, X + 1, -X - 1)
    for x in calls * 2:
        close(plan(x), function(x))
    for x in calls * 2:
        close(entered(plan, x), function(x))
        assert plan.summary()["fallbacks"] == []


def test_no_array_is_made_in_steady_state(arrays_in_steady_state):
    plan = compiled(pb.value_and_grad(loss, wrt=(0, 1, 2)))
    assert arrays_in_steady_state(lambda: plan(W, X, B)) == {0}
    assert arrays_in_steady_state(lambda: plan(W, X, B), held=True) == {0}
    out = (np.zeros(()), tuple(np.zeros((2, 3)) for _ in range(3)))
    assert arrays_in_steady_state(lambda: plan(W, X, B, out=out)) == {0}


def test_calls_leak_nothing():
    plan = compiled(pb.value_and_grad(loss, wrt=("w", "b")))
    w, x, b = W.copy(), X.copy(), B.copy()
    for _ in range(5):
        plan(w, x, b)
    gc.collect()
    counts = [sys.getrefcount(thing) for thing in (w, x, b, plan, W.dtype)]
    tracemalloc.start()
    try:
        for _ in range(3):
            plan(w, x, b)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10_000):
            plan(w, x, b)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 10_000  # a byte a call, less than any object: what Python keeps for itself is not ours
    assert [sys.getrefcount(thing) for thing in (w, x, b, plan, W.dtype)] == counts


def test_out_is_written_natively():
    plan = compiled(pb.value_and_grad(loss, wrt=("w", "b")))
    expected = plan(W, X, B)
    out = (np.zeros(()), (np.zeros((2, 3)), np.zeros((2, 3))))
    assert entered(plan, W, X, B, out=out) is out
    close(pb.trees.flatten(out)[0][1:], pb.trees.flatten(expected)[0][1:])
    assert out[0] == expected[0]
    w = W.copy()
    expected = plan(w, X, B)
    given = (np.zeros(()), (w, np.zeros((2, 3))))
    assert through_python(plan, w, X, B, out=given) is given
    np.testing.assert_allclose(w, expected[1][0])
    with pytest.raises(ValueError, match="another structure"):
        plan(W, X, B, out=np.zeros(()))
    with pytest.raises(ValueError, match="writeable"):
        plan(W, X, B, out=(np.zeros(()), (np.zeros((2, 3)), np.broadcast_to(0.0, (2, 3)))))


def test_long_programs_alone_run_without_the_interpreters_lock():
    square = np.ones((128, 128))
    for args, long in (((W, X), False), ((square[:32, :32].copy(),) * 2, False), ((square.repeat(4, 0),) * 2, True)):
        plan = compiled(lambda w, x: w * x + 1)
        plan(*args)
        assert bound_frames(plan)[0].program.releases == long
    plan = compiled(lambda w, x: w @ x)
    plan(square, square)
    assert bound_frames(plan)[0].program.releases


def test_threads_have_their_own_results():
    def function(w, x):
        return np.tanh(w * x) + w

    x = np.linspace(0.0, 1.0, 50_000)
    plan = compiled(function)
    plan(x, x)
    wrong = []

    def hammer(number):
        w = np.full_like(x, float(number))
        expected = plan.function(w, x)
        wrong.extend(number for _ in range(60) if not np.allclose(plan(w, x), expected, rtol=1e-12))

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not any(frame.is_busy for frame in bound_frames(plan))


@pytest.mark.long
def test_a_plan_that_changes_its_mind_keeps_few_frames():
    scale = [1.0]
    plan = compiled(lambda x: x * scale[0])
    for k in range(40):
        scale[0] = float(k)
        close(plan(X), X * k)
        close(entered(plan, X), X * k)
    assert len(bound_frames(plan)) == 2  # of a number, and of the number as an input
    mode = ["a"]
    plan = compiled(lambda x: x * (len(mode[0]) + 1.0))
    for k in range(40):
        mode[0] = "a" * k
        close(plan(X), X * (k + 1))
        close(entered(plan, X), X * (k + 1))
    assert len(bound_frames(plan)) == FAMILIES_KEPT


# --- the plan as an object -----------------------------------------------------------------------------------------------------
def test_summary_and_explanation_are_of_the_latest_call():
    plan = compiled(loss)
    plan(W, X, B)
    plan(W[0], X[0], B[0])
    small = plan.summary()
    entered(plan, W, X, B)
    assert plan.summary()["hash"] != small["hash"]
    entered(plan, W[0], X[0], B[0])
    assert plan.summary() == small
    assert "f8[3]" in plan.explain()
    assert "calls are native" in plan.explain()
    assert "2 programs for 2 signatures" in repr(plan)


def test_a_native_plan_is_a_plan():
    plan = compiled(loss)
    plan(W, X, B)
    assert isinstance(plan, type(pb.compile(loss, tier="fused")))
    assert type(plan).__name__ == "Plan"
    reference = weakref.ref(plan)
    for copied in (pickle.loads(pickle.dumps(plan)), copy.copy(plan), copy.deepcopy(plan)):  # noqa: S301 (our own bytes)
        assert copied.tier == "native"
        assert bound_frames(copied) == ()
        close(copied(W, X, B), loss(W, X, B))
        close(entered(copied, W, X, B), loss(W, X, B))
    del plan
    gc.collect()
    assert reference() is None


def test_poisoning_is_honoured():
    plan = compiled(loss)
    plan(W, X, B)
    with pb.debug.poisoning():
        close(through_python(plan, W, X, B), loss(W, X, B))
    close(entered(plan, W, X, B), loss(W, X, B))


def test_where_objects_are_laid_out_otherwise_plans_are_called_in_python(monkeypatch):
    monkeypatch.setattr("pullback.backends.native.entry.callables.why_unknown", lambda: "not here")
    plan = compiled(pb.grad(loss))
    for _ in range(4):
        close(plan(W, X, B), pb.grad(loss)(W, X, B))
    _, pullback = compiled(loss).vjp(W, X, B)
    close(pullback(1.0), pb.vjp(loss, W, X, B)[1](1.0))
    assert bound_frames(plan) == ()


# --- pullbacks ---------------------------------------------------------------------------------------------------------------
def natively(pullback, *args):
    """The result of a pullback whose Python is not run."""
    kept, pullback._derivative = pullback._derivative, None
    try:
        return pullback(*args)
    finally:
        pullback._derivative = kept


def test_values_that_pullbacks_belong_to_are_native():
    plan = compiled(loss)
    for once in (False, True):
        plan.vjp(W, X, B, once=once)
        value, pullback = entered(plan.pullbacks[once], W, X, B)
        close(value, loss(W, X, B))
        close(natively(pullback, 1.0), pb.vjp(loss, W, X, B)[1](1.0))


def several(w, x):
    y = np.square(w * x)
    return {"y": y, "parts": (np.sum(y * y), [y + 1.0])}


@pytest.mark.parametrize(
    ("function", "args", "y_bar"),
    [
        (loss, (W, X, B), 1.0),
        (loss, (W, X, B), np.float64(2.0)),
        (lambda w, x: w * x, (W, X), B),
        (lambda p: p * TABLE[1], (3.0,), 2.0),
        (lambda p: np.float32(2) * p, (np.float32(3.0),), 2.0),
        (several, (W, X), {"y": B, "parts": (0.5, [W])}),
    ],
)
def test_pullbacks_are_native(function, args, y_bar):
    plan = compiled(function)
    for once in (False, True):
        for _ in range(3):
            value, pullback = plan.vjp(*args, once=once)
            expected_value, expected = pb.vjp(function, *args)
            close(value, expected_value)
            close(natively(pullback, y_bar), expected(y_bar))
            if not once:
                close(natively(pullback, y_bar), expected(y_bar))
            else:
                with pytest.raises(PullbackReuseError, match="once=True"):
                    pullback(y_bar)


def test_cotangents_that_do_not_fit_are_what_they_are_in_python():
    plan = compiled(lambda w, x: w * x)
    _, pullback = plan.vjp(W, X)
    for y_bar in (B.astype("f4"), np.asfortranarray(B), B.astype(int)):
        close(pullback(y_bar), (y_bar * X, W * y_bar))
    for y_bar in (1.0, B[0], (B,), None):
        with pytest.raises(DifferentiationError):
            pullback(y_bar)
    close(natively(pullback, B), (B * X, W * B))


def test_pullbacks_of_several_calls_are_apart_and_leave_their_frames():
    plan = compiled(lambda w, x: np.square(w) * x)
    derivative = None
    for _ in range(3):
        pairs = [(W * k, plan.vjp(W * k, X)[1]) for k in range(1, 5)]
        for w, pullback in pairs:
            close(natively(pullback, B), (2 * w * X * B, np.square(w) * B))
        derivative = pairs[0][1]._derivative
        del pairs, pullback
    assert len(derivative.idle) == 4


def test_a_pullback_may_be_called_by_what_is_finalised_with_it():
    seen = []

    class Caller:
        def __init__(self, pullback):
            self.pullback = pullback

        def __del__(self):
            seen.append(self.pullback(1.0))

    plan = compiled(lambda p: p * TABLE[1])
    for once in (False, True):
        caller = Caller(plan.vjp(2.0, once=once)[1])
        caller.itself = caller.pullback.itself = caller
        del caller
        gc.collect()
    assert seen == [(TABLE[1],)] * 2


def test_what_is_left_when_python_exits_goes_without_a_word():
    program = """if True:
        import sys
        import numpy as np, pullback as pb
        from pullback.backends.native.entry import frames

        x = np.ones(3)
        plan = pb.compile(lambda x: np.sum(np.tanh(x)), tier="native")
        for _ in range(3):
            sys.left = [plan(x), plan, plan.vjp(x)[1], plan.vjp(x, once=True)[1]]  # goes after all modules
        vars(frames).update({name: None for name in vars(frames) if not name.startswith("__")})  # as Python does then
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_frame_in_which_a_run_is_on_is_no_other_pullbacks():
    plan = compiled(lambda w, x: w * x)
    _, pullback = plan.vjp(W, X, once=True)
    frame = bound_frames(pullback)[0]
    frame.words[0] = 1  # as a thread does that runs the program without the interpreter's lock
    close(pullback(B), (B * X, W * B))
    assert frame not in pullback._derivative.idle
    with pytest.raises(PullbackReuseError):
        pullback(B)
    frame.words[0] = 0


def test_a_pullback_notices_that_what_it_reads_has_changed():
    w, x = W.copy(), X.copy()
    _, pullback = compiled(lambda w, x: w * x).vjp(w, x)
    expected = natively(pullback, B)
    w[1, 2] += 1
    for _ in range(2):
        with pytest.raises(ChangedError, match="argument w"):
            pullback(B)
    w[1, 2] -= 1
    close(natively(pullback, B), expected)


def test_a_pullback_that_reads_nothing_of_the_callers_looks_at_nothing():
    table = np.arange(1000.0)
    _, pullback = compiled(lambda p: table[3] * p).vjp(2.0)
    table[:] = 0.0
    assert natively(pullback, 1.0) == (3.0,)


def test_trees_that_are_made_in_python_are_right_too():
    plan = compiled(pb.grad(lambda p, x: np.sum(p.w * x + p.b)))
    parameters = Parameters(W, B)
    for _ in range(3):
        gradient = plan(parameters, X)
        close((gradient.w, gradient.b), (X, np.ones((2, 3))))


# --- names that have to be what they were ------------------------------------------------------------------------------------
def module_of(**names):
    made = types.ModuleType("held")
    made.__dict__.update(names)
    return made


def test_names_and_functions_of_modules_are_words_and_no_steps():
    parts = module_of(**{f"rate{k}": 0.5 + k for k in range(10)})
    parts.helper = lambda x: x + 1.0

    def names(x):
        return x * parts.rate0 * parts.rate1 + parts.rate2 * parts.rate3 * parts.rate4 + parts.rate5

    def functions(x):
        return parts.helper(parts.helper(x)) * parts.rate9

    for function, names_held in ((names, 6), (functions, 2)):
        plan = compiled(function)
        plan(X)
        close(entered(plan, X), function(X))
        template = bound_frames(plan)[0].template
        assert [step.fetch.name for step in template.steps] == ["ARGUMENT", "CELL", "ARGUMENT"]  # the last is out=
        assert len(template.held.tables) == 1
        pairs_of_functions = 2 * (1 + (function is functions))  # the function itself, and the helper
        assert len(template.held.pairs) == names_held + pairs_of_functions


def test_dicts_that_grow_shrink_and_begin_anew_are_read_where_their_entries_are():
    parts = module_of(rate=2.0, shift=1.0)
    plan = compiled(lambda x: x * parts.rate + parts.shift)
    plan(X)
    close(entered(plan, X), X * 2 + 1)
    for size in (3, 50, 400, 3000):
        parts.__dict__.update((f"name {k}", k) for k in range(size))  # tables that are exchanged for larger ones
        close(plan(X), X * 2 + 1)
        close(entered(plan, X), X * 2 + 1)
    for name in [name for name in parts.__dict__ if name.startswith("name")]:
        del parts.__dict__[name]
    close(plan(X), X * 2 + 1)
    del parts.shift
    with pytest.raises(AttributeError):
        plan(X)
    parts.shift = 3.0  # in another place of the table
    close(plan(X), X * 2 + 3)
    for k in range(20):
        parts.__dict__.clear()  # tables of the same size, again and again in the same memory
        parts.__dict__.update(
            {"other": 1, "rate": 2.0, "shift": float(k)} if k % 2 else {"shift": float(k), "rate": 2.0}
        )
        close(plan(X), X * 2 + k)
        close(plan(X), X * 2 + k)


def test_a_function_whose_code_or_defaults_are_exchanged_is_another_one():
    parts = module_of()
    parts.plain = lambda x: x
    plan = compiled(lambda x: parts.plain(x) + 1.0)
    plan(X)
    close(entered(plan, X), X + 1)
    parts.plain.__code__ = (lambda x: x * 2).__code__
    close(through_python(plan, X), X * 2 + 1)
    parts.plain.__code__ = (lambda x, k: x * k).__code__
    parts.plain.__defaults__ = (3.0,)
    close(through_python(plan, X), X * 3 + 1)
    parts.plain.__defaults__ = None
    parts.plain.__code__ = (lambda x, *, k: x * k).__code__
    parts.plain.__kwdefaults__ = {"k": 4.0}
    close(through_python(plan, X), X * 4 + 1)


def test_where_dicts_are_laid_out_otherwise_names_are_looked_up(monkeypatch):
    monkeypatch.setattr("pullback.backends.native.entry.watched_memory._dicts_are_known", lambda: False)
    monkeypatch.setattr("pullback.backends.native.entry.watched_memory._functions_are_known", lambda: False)
    parts = module_of(rate=2.0)
    plan = compiled(lambda x: x * parts.rate)
    plan(X)
    close(entered(plan, X), X * 2)
    assert bound_frames(plan)[0].template.held.pairs == []
    parts.rate = 3.0
    close(through_python(plan, X), X * 3)


class Text(str):
    """Keys of a class of their own may be compared by code of theirs."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("made", "other"),
    [
        (lambda: {f"w{k}": X + k for k in range(3)}, {"w0": X, "w2": X, "w1": X}),
        (lambda: {int(f"100{k}"): X + k for k in range(3)}, {1000: X, 1001.0: X, 1002: X}),
        (lambda: {f"w{k}".encode(): X + k for k in range(3)}, {"w0": X, "w1": X, "w2": X}),
    ],
    ids=["texts", "numbers", "bytes"],
)
def test_keys_that_are_equal_and_made_anew_are_native(made, other):
    def weighed(parts):
        return sum((place + 1) * np.sum(part) for place, part in enumerate(parts.values()))

    plan = compiled(pb.value_and_grad(weighed))
    plan(made()), plan(made())
    result = entered(plan, made())
    close(result, pb.value_and_grad(weighed)(made()))
    assert list(result[1]) == list(made())
    close(through_python(plan, other), pb.value_and_grad(weighed)(other))


def test_keys_of_classes_of_their_own_are_told_by_identity():
    plan = compiled(lambda parts: sum(map(np.sum, parts.values())))
    kept = {Text("a"): X}
    plan(kept), plan(kept)
    entered(plan, kept)
    close(through_python(plan, {Text("a"): X}), np.sum(X))
