"""Plans that keep their memory: nothing is allocated after the first calls, and nobody's array is written to."""

import threading
import weakref

import numpy as np
import pytest

import pullback as pb
from pullback.core.cases import ALL
from pullback.nn.activation_choice import FUNCTIONS
from pullback_runners.workloads import find_workload

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))


def stateful(function):
    return pb.compile(function, tier="stateful")


def _layer(act, n):
    def loss(w, x, b):
        return np.sum(pb.nn.dense_bias_act(w, x, b, act=act) ** 2)

    args = [RNG.normal(size=shape).astype("f4") for shape in ((n, n), (n, n), (n,))]
    return pb.value_and_grad(loss, wrt=("w", "x", "b")), args


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("act", sorted(set(FUNCTIONS) - {"rrelu", "gelu_erf", "logcosh"}))
def test_a_dense_layer_allocates_nothing_whatever_its_activation(act, arrays_in_steady_state):
    gradient, args = _layer(act, 32)
    plan = stateful(gradient)
    for held in (False, True):
        assert arrays_in_steady_state(lambda: plan(*args), held=held) == {0}
    summary = plan.summary()
    assert (summary["arrays"], summary["bytes"], summary["fallbacks"], summary["transient"]) == (0, 0, [], [])
    value, gradients = plan(*args)
    expected_value, expected = gradient(*args)
    np.testing.assert_allclose(value, expected_value, rtol=1e-5)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.cumsum(x)[-1].reshape(-1),
        lambda x: np.sin(x)[0][None],
        lambda x: np.reshape(x[1] * 1.0, (1, 1)).T,
        lambda x: np.broadcast_to((x * 2)[2], (3,)),
        lambda x: np.expand_dims(np.sum(x), 0),
    ],
)
def test_results_made_of_one_element_are_held_unchanged(function, arrays_in_steady_state):
    plan = stateful(function)
    held = [(plan(x), np.array(function(x))) for x in (X[0], -X[0], X[1], X[2])]
    for found, expected in held:
        np.testing.assert_array_equal(found, expected)
    assert arrays_in_steady_state(lambda: plan(X[0])) == {plan.summary()["arrays"]} == {0}


@pytest.mark.parametrize("name", ["dense_bias_act", "mul_restore", "poly9_broadcast", "touch_large_array"])
def test_the_workloads_allocate_nothing(name, arrays_in_steady_state):
    workload = find_workload(name)
    for case in workload.cases("standard"):
        inputs = workload.draw_inputs(case)
        plan = stateful(pb.value_and_grad(workload(**dict(case.params)), wrt=workload.wrt))
        assert arrays_in_steady_state(lambda plan=plan, inputs=inputs: plan(**inputs)) == {0}, case
        assert plan.summary()["fallbacks"] == []


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.primitive.name)
def test_every_rule_gives_in_kept_memory_what_the_tape_gives(case):
    primitive, params = case.primitive, tuple(case.params)
    weights = np.random.default_rng(1).normal(size=np.shape(primitive(*case.operands(), **dict(params))))
    loss = _weighted(primitive, dict(params))
    wrt = tuple(k for k, x in enumerate(case.operands(), start=1) if x.dtype.kind == "f")
    gradient = pb.value_and_grad(loss, wrt=wrt)
    expected_value, expected = gradient(weights, *case.operands())
    plan = stateful(gradient)
    held = []
    for _ in range(4):
        value, gradients = plan(weights, *case.operands())
        held.append(gradients)
        np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for gradients in held:
        for ours, theirs in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def _weighted(primitive, params):
    def loss(weights, *operands, primitive=primitive, params=params):
        return np.sum(weights * primitive(*operands, **params))

    return loss


def test_what_the_caller_holds_is_never_written_to():
    plan = stateful(lambda x: (np.tanh(x), np.exp(x).T, x.reshape(-1)))
    kept = [plan(X * k) for k in range(5)]
    views = [plan(X * k)[0][1:] for k in range(5)]
    buffers = [memoryview(plan(X * k)[0]) for k in range(5)]
    for k, (tanh, exp, flat) in enumerate(kept):
        np.testing.assert_array_equal(tanh, np.tanh(X * k))
        np.testing.assert_array_equal(exp, np.exp(X * k).T)
        np.testing.assert_array_equal(flat, (X * k).reshape(-1))
        np.testing.assert_array_equal(views[k], np.tanh(X * k)[1:])
        np.testing.assert_array_equal(np.asarray(buffers[k]), np.tanh(X * k))


VIEWS_OF_NUMBERS = {
    "an element": lambda x: np.cumsum(x)[-1].reshape(-1),
    "an element of an argument": lambda x: x[0][None],
    "a sum": lambda x: np.sum(x).reshape(1, 1),
    "a product": lambda x: (x @ x)[None],
    "a ufunc": lambda x: np.sin(x[0]).reshape(1)[::-1],
    "broadcast": lambda x: np.broadcast_to(np.sum(x), (3,)),
    "at least": lambda x: np.atleast_2d(np.max(x) * 2).T,
    "diagonal": lambda x: np.diagonal(np.reshape(np.sum(x), (1, 1))),
    "complex": lambda x: np.real(np.reshape(np.sum(x) + 1j, (1,))),
    "in a loop": lambda x: pb.scan(lambda c, e: (c + e, c.reshape(1)), x[0], x)[1],
    "a carry": lambda x: pb.fori_loop(0, 3, lambda _, c: (np.sum(c) + x[0]).reshape(1), x[:1]),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("case", VIEWS_OF_NUMBERS)
def test_an_array_made_of_a_number_is_not_written_to_while_it_is_held(case, tier):
    """NumPy gives numbers for elements and sums; an array made of one looks at memory that the plan keeps."""
    function = VIEWS_OF_NUMBERS[case]
    plan = pb.compile(function, tier=tier)
    arguments = [np.arange(1.0, 4.0) * k for k in range(1, 5)]
    held = [plan(x) for x in arguments]
    for x, result in zip(arguments, held, strict=True):
        np.testing.assert_allclose(result, function(x), rtol=1e-14)
    pullbacks = [plan.vjp(x)[1] for x in arguments]
    for x, pullback in zip(arguments, pullbacks, strict=True):
        value, tape = pb.vjp(function, x)
        np.testing.assert_allclose(pullback(np.ones_like(value))[0], tape(np.ones_like(value))[0], rtol=1e-13)


def test_a_result_may_be_the_next_argument():
    plan = stateful(lambda x: np.tanh(x) + 1)
    x = expected = X
    for _ in range(6):
        x, expected = plan(x), np.tanh(expected) + 1
        np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(plan(plan(plan(X))), np.tanh(np.tanh(np.tanh(X) + 1) + 1) + 1)
    np.testing.assert_array_equal(plan(X) - plan(-X), (np.tanh(X) + 1) - (np.tanh(-X) + 1))


def test_a_result_that_was_dropped_is_used_again():
    plan = stateful(np.tanh)
    first = plan(X)
    address = first.ctypes.data
    del first
    assert plan(X).ctypes.data == address


def test_a_result_that_is_weakly_referred_to_is_gone_or_as_it_was():
    plan = stateful(np.tanh)
    reference = weakref.ref(plan(X))
    for k in range(4):
        plan(X * k)
        assert reference() is None or (reference() == np.tanh(X)).all()


def test_out_takes_the_result(arrays_in_steady_state):
    plan = stateful(pb.value_and_grad(lambda x: np.sum(x * x)))
    out = (np.zeros(()), np.zeros_like(X))
    assert plan(X, out=out) is out
    assert out[0] == np.sum(X * X)
    np.testing.assert_array_equal(out[1], 2 * X)
    assert arrays_in_steady_state(lambda: plan(X, out=out)) == {0}
    for wrong in (np.zeros(3), (np.zeros(()), np.zeros(3)), (np.zeros(()), X.astype("f4"))):
        with pytest.raises(ValueError, match="out has"):
            plan(X, out=wrong)
    x = X.copy()
    np.testing.assert_array_equal(stateful(lambda x: x[::-1] * 2)(x, out=x), X[::-1] * 2)


def test_threads_have_memory_of_their_own():
    plan = stateful(pb.grad(lambda x: np.sum(np.tanh(x) * np.exp(x))))
    inputs = [X * k for k in range(4)]
    expected = [pb.grad(lambda x: np.sum(np.tanh(x) * np.exp(x)))(x) for x in inputs]
    wrong = []

    def work(k):
        wrong.extend(k for _ in range(200) if not np.array_equal(plan(inputs[k]), expected[k]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_exception_leaves_the_memory_as_good_as_new(arrays_in_steady_state):
    plan = stateful(lambda x, p: np.tanh(x) * (1.0 / p))
    with pytest.raises(ZeroDivisionError):
        plan(X, 0.0)
    assert arrays_in_steady_state(lambda: plan(X, 2.0)) == {0}
    np.testing.assert_array_equal(plan(X, 2.0), np.tanh(X) * 0.5)


def test_a_run_inside_a_run_has_memory_of_its_own():
    inner_results = []
    plan = stateful(lambda x: np.tanh(np.tanh(x) + 1))
    plan(X)
    ((family,),) = plan._families.values()
    state = family.programs[0].compiled.state
    outer = state.take()
    inner_results.extend([plan(X), plan(2 * X)])
    inner = state.take()
    assert all(not np.shares_memory(a, b) for a in outer.arrays for b in inner.arrays)
    state.give_back(inner)
    state.give_back(outer)
    np.testing.assert_array_equal(inner_results[0], np.tanh(np.tanh(X) + 1))


def test_guards_captures_and_overwrites_in_kept_memory():
    w = np.ones((4, 5))

    def function(x):
        return np.sum(x * w) if x[0, 0] > 0 else np.sum(x * w * w)

    gradient = pb.grad(function)
    plan = stateful(gradient)
    for factor in (1.0, -1.0, 2.0):
        w[...] = factor + 3
        np.testing.assert_array_equal(plan(X * factor), gradient(X * factor))
    assert plan.summary()["fallbacks"] == []


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("number", [2, 2.5, -0.0, True, 1j, np.float32(0.1)])
def test_numbers_keep_their_part_in_promotion(dtype, number):
    x = np.ones((2, 3), dtype)

    def function(x, number):
        return x + number, number * x, x * 3, x > 0, np.sum(x) * number, np.sum(x, axis=0)

    expected = function(x, number)
    for ours, theirs in zip(stateful(function)(x, number), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert getattr(ours, "dtype", None) == theirs.dtype


@pytest.mark.parametrize(
    "x", [np.zeros((0, 3)), X[::2, ::-1], np.asfortranarray(X), X.T, np.broadcast_to(1.5, (4, 5))], ids=range(5)
)
def test_layouts_and_zero_sizes(x):
    def function(x):
        y = np.tanh(x) * 2 + x
        return y @ y.T, y.reshape(-1), np.sum(y, axis=1), y.T

    for _ in range(2):
        for ours, theirs in zip(stateful(function)(x), function(x), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_the_arena_is_smaller_than_its_buffers_where_they_live_one_after_the_other():
    def function(x):
        y = np.tanh(x @ x.T)
        z = np.exp(np.sum(y, axis=0))
        return np.sum(z[:, None] * y.astype("f4"))

    plan = stateful(function)
    np.testing.assert_allclose(plan(X), function(X), rtol=1e-6)
    assert plan.summary()["state_bytes"] > 0


def _lock(result):
    result.flags.writeable = False


def _turn(result):
    result.resize((5, 4), refcheck=False)


def _recast(result):
    result.dtype = np.int64


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", [_lock, _turn, _recast])
def test_a_result_that_the_caller_changed_is_not_used_again(change):
    plan = stateful(np.sin)
    for _ in range(3):
        result = plan(X)
        np.testing.assert_array_equal(result, np.sin(X))
        assert (result.shape, result.dtype, result.flags.writeable) == (X.shape, X.dtype, True)
        change(result)
        del result


@pytest.mark.parametrize("thread_count", [16])
def test_loops_and_guards_of_many_threads(thread_count):
    w = np.linspace(-0.5, 0.5, 16).reshape(4, 4)

    def loss(x):
        carry, ys = pb.scan(lambda h, row: (np.tanh(h @ w + row),) * 2, np.zeros(4), x)
        last = pb.fori_loop(0, 3, lambda _, h: np.sin(h @ w), carry)
        return (
            np.sum(ys * ys) + np.sum(last) if np.sum(x) > 0 else np.sum(pb.cond(np.sum(carry) > 0, np.sin, np.cos, ys))
        )

    gradient = pb.grad(loss)
    plan = stateful(gradient)
    held = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for number in range(6):
            x = rng.normal(size=(3 + number % 2, 4))
            held.append((plan(x), gradient(x)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(thread_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 6 * thread_count
    for found, expected in held:
        np.testing.assert_allclose(found, expected)
