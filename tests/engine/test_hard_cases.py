"""Corners of NumPy, Python and memory where a gradient, a value or an array could quietly come out wrong."""

import copy
import functools
import gc
import math
import sys
import threading
import types
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest

import pullback as pb
from pullback.compiling import plan as compiling
from pullback.errors import DifferentiationError, OverwrittenError, TracingError

TIERS = pytest.mark.parametrize("tier", pb.TIERS)
A = np.array([[1.0, 2.0], [3.0, 4.0]])
B = np.array([[1.0, -1.0], [2.0, 0.5]])
THREE = np.array([1.0, 2.0, 3.0])


def fused(function):
    return pb.compile(function, tier="fused")


def nines():
    return np.full((2, 2), 9.0)


# --- pb.inplace: what is overwritten is put back, and nothing reads it meanwhile under another name ---------------------


@TIERS
def test_a_cotangent_that_is_the_product_itself_is_taken_before_it_is_restored(tier):
    with pb.tier(tier):
        a_bar, d_bar = pb.grad(lambda c, a, d: np.sum(pb.inplace.matmul(c, a, B) * d), wrt=(1, 2))(nines(), A, A)
    np.testing.assert_allclose(a_bar, A @ B.T)
    np.testing.assert_allclose(d_bar, A @ B)


@TIERS
def test_two_products_multiplied_give_the_gradient_of_two_products(tier):
    def function(c, d, a):
        return np.sum(pb.inplace.matmul(c, a, B) * pb.inplace.matmul(d, a, a))

    with pb.tier(tier):
        gradient = pb.grad(function, wrt=2)(nines(), nines(), A)
    np.testing.assert_allclose(gradient, pb.grad(lambda a: np.sum((a @ B) * (a @ a)))(A))


@TIERS
def test_a_product_of_constants_is_undone_too(tier):
    c = nines()
    with pb.tier(tier):
        gradient = pb.grad(lambda x, c, a: np.sum(x * pb.inplace.matmul(c, a, B)))
        for _ in range(2):
            np.testing.assert_allclose(gradient(np.ones((2, 2)), c, A), A @ B)
            np.testing.assert_array_equal(c, nines())


def test_a_product_of_captured_arrays_is_computed_on_each_call():
    c = nines()
    gradient = fused(pb.grad(lambda x: np.sum(x * pb.inplace.matmul(c, A, B))))
    for _ in range(2):
        np.testing.assert_allclose(gradient(np.ones((2, 2))), A @ B)
        c[...] = 0


@TIERS
def test_a_copy_made_before_the_overwrite_keeps_its_contents(tier):
    """Times one is a copy to NumPy, so it must not become another name of what is overwritten."""

    def function(c, a):
        before = c * 1.0
        return np.sum(before * pb.inplace.matmul(c, a, B))

    with pb.tier(tier):
        assert pb.value_and_grad(function, wrt=1)(nines(), A)[0] == pytest.approx(9 * np.sum(A @ B))


def test_overwriting_a_temporary_leaves_the_argument_alone():
    x = nines()
    fused(lambda x: np.sum(pb.inplace.matmul(x * 1.0, A, B)))(x)
    np.testing.assert_array_equal(x, nines())


@TIERS
def test_overwriting_one_of_two_equal_temporaries_leaves_the_other(tier):
    def function(x, a):
        first, second = np.tanh(x), np.tanh(x)
        return np.sum(pb.inplace.matmul(first, a, B) * second)

    with pb.tier(tier):
        assert pb.value_and_grad(function, wrt=1)(nines(), A)[0] == pytest.approx(np.sum(np.tanh(9.0) * (A @ B)))


@TIERS
def test_reading_the_overwritten_array_through_another_argument_is_refused(tier):
    """The new contents would come without their derivative."""

    def function(c, a, d):
        before = np.sum(d * a)
        pb.inplace.matmul(c, a, B)
        return before + np.sum(d * a)

    c = nines()
    with pb.tier(tier), pytest.raises(OverwrittenError):
        pb.grad(function, wrt=1)(c, A, c)
    np.testing.assert_array_equal(c, nines())


def test_the_array_is_restored_when_a_plan_raises():
    def function(a, c, p, q):
        return np.sum(pb.inplace.matmul(c, a, B)) * (p / q)

    c = nines()
    gradient = fused(pb.grad(function))
    with pytest.raises(ZeroDivisionError):
        gradient(A, c, 1.0, 0.0)
    np.testing.assert_array_equal(c, nines())


@pytest.mark.parametrize("tier", [tier for tier in pb.TIERS if tier != "native"])  # native code does not trap
def test_the_array_is_restored_when_the_backward_pass_raises(tier):
    c = nines()
    with pb.tier(tier), np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        pb.grad(lambda a, c: np.sum(np.sqrt(pb.inplace.matmul(c, a, B))))(np.zeros((2, 2)), c)
    np.testing.assert_array_equal(c, nines())


def test_the_array_is_restored_when_vjp_refuses_what_the_function_returned():
    c = nines()
    with pytest.raises(DifferentiationError):
        pb.vjp(lambda a: (pb.inplace.matmul(c, a, B), object()), A)
    np.testing.assert_array_equal(c, nines())


def test_a_second_pullback_is_right_or_refused():
    c = nines()

    def function(a):
        product = pb.inplace.matmul(c, a, B)
        return np.sum(product * product)

    _, pullback = pb.vjp(function, A)
    first = pullback(1.0)[0]
    np.testing.assert_allclose(first, 2 * A @ B @ B.T)
    try:
        second = pullback(1.0)[0]
    except pb.errors.PullbackError:
        return
    np.testing.assert_allclose(second, first)


@TIERS
def test_second_derivatives_are_right_or_refused(tier):
    c = nines()

    def function(a):
        product = pb.inplace.matmul(c, a, B)
        return np.sum(product * product * product)

    def hessian_times(inner):
        return pb.grad(lambda a: np.sum(pb.grad(inner)(a) * B))(A)

    with pb.tier(tier):
        try:
            second = hessian_times(function)
        except pb.errors.PullbackError:
            return
    np.testing.assert_allclose(second, hessian_times(lambda a: np.sum((a @ B) ** 3)))


@TIERS
def test_reading_the_array_under_its_old_name_is_refused(tier):
    captured = nines()

    def by_argument(c, a):
        return np.sum(pb.inplace.matmul(c, a, B) * c)

    def by_closure(a):
        pb.inplace.matmul(captured, a, B)
        return np.sum(captured * a)

    with pb.tier(tier):
        with pytest.raises(OverwrittenError):
            pb.grad(by_argument, wrt=(0, 1))(nines(), A)
        with pytest.raises(OverwrittenError):
            pb.grad(by_closure)(A)
    np.testing.assert_array_equal(captured, nines())


def test_rows_that_alternate_share_no_memory():
    both = np.ones((4, 2))
    gradient = pb.grad(lambda a, c: np.sum(pb.inplace.matmul(c, a, B)))(both[1::2], both[::2])
    np.testing.assert_allclose(gradient, np.ones((2, 2)) @ B.T)


# --- plans: never yesterday's value -----------------------------------------------------------------------------------


class Config:
    rate = 2.0

    def scaled(self, x):
        return x * self.rate


def _array_element():
    w = np.full(1, 2.0)
    return lambda x: x * w[0], lambda: w.fill(3.0)


def _array_reduced():
    w = np.full(1, 2.0)
    return lambda x: x * np.sum(w), lambda: w.fill(3.0)


def _array_compared():
    w = np.ones(1)
    return lambda x: x * 2.0 if w[0] > 0 else x * 3.0, lambda: w.fill(-1.0)


def _array_length():
    w = np.ones(2)

    def longer():
        nonlocal w
        w = np.ones(3)

    return lambda x: x * float(len(w)), longer


def _array_computed_into_another():
    w, twice = np.ones(1), np.ones(1)

    def function(x):
        np.multiply(w, 2.0, out=twice)
        return np.sum(x * twice)

    return function, lambda: w.fill(1.5)


def _two_names_of_one_array():
    a = b = np.ones(())

    def rebind():
        nonlocal a
        a = np.full((), 2.0)

    return lambda x: np.sum(x * a) + np.sum(x * b), rebind


def _two_names_of_one_function():
    def same(x):
        return x

    f = g = same

    def rebind():
        nonlocal g
        g = lambda x: 2.0 * x  # noqa: E731 (an assignment is the point)

    return lambda x: f(x) + g(x), rebind


def _ufunc():
    act = np.add

    def rebind():
        nonlocal act
        act = np.subtract

    return lambda x: act(2.5 * x, -0.5 * x), rebind


def _partial():
    scale = functools.partial(np.multiply, 2.0)

    def rebind():
        nonlocal scale
        scale = functools.partial(np.multiply, 3.0)

    return lambda x: scale(x), rebind


def _bound_method():
    config = Config()
    return config.scaled, lambda: setattr(config, "rate", 3.0)


def _bound_method_in_a_closure():
    config = Config()
    method = config.scaled
    return lambda x: method(x), lambda: setattr(config, "rate", 3.0)


def _class_attribute():
    kind = type("Kind", (), {"rate": 2.0})
    return lambda x: x * kind.rate, lambda: setattr(kind, "rate", 3.0)


def _module_attribute():
    module = types.ModuleType("settings")
    module.rate = 2.0
    return lambda x: x * module.rate, lambda: setattr(module, "rate", 3.0)


def _imported_inside():
    module = types.ModuleType("settings_of_hard_cases")
    module.rate = 2.0
    sys.modules[module.__name__] = module

    def function(x):
        from settings_of_hard_cases import rate

        return x * rate

    return function, lambda: setattr(module, "rate", 3.0)


def _function_attribute():
    def function(x):
        return x * function.rate

    function.rate = 2.0
    return function, lambda: setattr(function, "rate", 3.0)


def _set():
    numbers = {2.0}
    return lambda x: x * sum(numbers), lambda: numbers.add(1.0)


def _cached_function():
    rate = 2.0

    @functools.lru_cache
    def cached():
        return rate

    def change():
        nonlocal rate
        rate = 3.0
        cached.cache_clear()

    return lambda x: x * cached(), change


def _gradient_of_a_function():
    rate = 2.0
    inner = pb.grad(lambda y: y * rate)

    def change():
        nonlocal rate
        rate = 3.0

    return lambda x: inner(x) * x, change


def _function_that_wraps_one_of_numpy():
    rate = 2.0

    @functools.wraps(np.sum)
    def function(x):
        return x * rate

    def change():
        nonlocal rate
        rate = 3.0

    return function, change


def _name_defined_later():
    def function(x):
        try:
            return x * hard_case_rate
        except NameError:
            return x * 2.0

    return function, lambda: globals().__setitem__("hard_case_rate", 3.0)


def _iterator():
    numbers = iter([2.0, 3.0])
    return lambda x: x * next(numbers), lambda: None


@pytest.mark.parametrize(
    "make",
    [
        _array_element,
        _array_reduced,
        _array_compared,
        _array_length,
        _array_computed_into_another,
        _two_names_of_one_array,
        _two_names_of_one_function,
        _ufunc,
        _partial,
        _bound_method,
        _bound_method_in_a_closure,
        _class_attribute,
        _module_attribute,
        _imported_inside,
        _function_attribute,
        _set,
        _cached_function,
        _gradient_of_a_function,
        _function_that_wraps_one_of_numpy,
        _name_defined_later,
        _iterator,
    ],
    ids=lambda make: make.__name__[1:],
)
def test_a_change_around_the_function_is_seen(make):
    """Each function is 2 x before the change and 3 x after it; a plan may follow or stay on the tape."""
    globals().pop("hard_case_rate", None)
    function, change = make()
    plan = fused(lambda x: function(x)) if make is _gradient_of_a_function else fused(pb.grad(function))
    assert plan(1.0) == 2.0
    change()
    assert plan(1.0) == 3.0


def test_a_second_derivative_watches_the_function_below():
    rate = 1.0
    plan = fused(pb.grad(pb.grad(lambda x: x * x * rate)))
    assert plan(1.0) == 2.0
    rate = 1.5
    assert plan(1.0) == 3.0


def test_a_zero_that_changes_its_sign_is_a_change():
    zero = 0.0
    plan = fused(lambda x: x / zero)
    with np.errstate(divide="ignore"):
        assert plan(np.ones(1))[0] == np.inf
        zero = -0.0
        assert plan(np.ones(1))[0] == -np.inf


def test_a_plan_does_not_keep_an_array_that_was_replaced():
    weights = np.ones(1000)
    plan = fused(pb.grad(lambda x: np.sum(x * weights)))
    plan(np.ones(1000))
    replaced = weakref.ref(weights)
    weights = np.zeros(1000)
    plan(np.ones(1000))
    gc.collect()
    assert replaced() is None


def test_a_numbers_gradient_is_not_a_constant_of_the_plan_that_callers_can_write_to():
    plan = fused(pb.grad(lambda x: np.where(True, x, 0.0)))
    first = plan(np.float64(2.0))
    if isinstance(first, np.ndarray):
        first[...] = 99.0
    assert plan(np.float64(2.0)) == 1.0


# --- plans: what does not compile runs on the tape --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, p: x * math.sqrt(p), (1.0, 4.0)),
        (lambda w, x: np.sum(w * np.sort(x)), (THREE, THREE)),
        (lambda w, x, at: np.sum(w * x[at]), (THREE[:2], THREE, np.array([0, 2]))),
        (lambda w, n: w[n] * w[n], (THREE, 1)),
        (lambda w, n: w * THREE[n], (2.0, 1)),
        (lambda x: np.sum(x * [1.0, 2.0, 3.0]), (THREE,)),
        (lambda x: x * pb.grad(lambda y: x + y)(1.0), (1.0,)),
    ],
    ids=[
        "float of a constant",
        "function without a rule",
        "fancy index",
        "integer index",
        "integer index of a captured array",
        "list operand",
        "inner gradient that closes over the outer variable",
    ],
)
def test_what_runs_on_the_tape_runs_in_the_fused_tier(function, args):
    want = pb.grad(function)(*args)
    with pb.tier("fused"):
        np.testing.assert_allclose(pb.grad(function)(*args), want)


def test_a_plan_may_close_over_a_traced_value():
    assert pb.grad(lambda x: fused(lambda y: x * y)(3.0))(1.0) == 3.0
    assert pb.grad(lambda x: fused(pb.grad(lambda y: x * y * y))(3.0))(1.0) == 6.0


def test_a_plan_of_a_plain_function_may_return_a_text():
    assert fused(lambda x: {"x": x, "name": "three"})(THREE)["name"] == "three"


def test_a_function_from_exec_compiles():
    namespace = {}
    exec("def f(x): return x * x", namespace)  # noqa: S102 (it has no module, that is the point)
    assert fused(pb.grad(namespace["f"]))(2.0) == 4.0


@TIERS
def test_a_loss_in_a_list_is_refused(tier):
    with pb.tier(tier), pytest.raises(DifferentiationError, match="returned list"):
        pb.grad(lambda x: [np.sum(x)])(THREE)


@TIERS
def test_a_value_that_becomes_complex_is_refused(tier):
    with pb.tier(tier), pytest.raises(DifferentiationError, match="complex"):
        pb.grad(lambda x: x**0.5)(-2.0)


@TIERS
def test_the_value_has_the_same_type_in_each_tier(tier):
    with pb.tier(tier):
        assert type(pb.value_and_grad(lambda x: x * x)(2.0)[0]) is np.float64


def test_the_summary_is_of_the_latest_call():
    plan = fused(lambda x: x * 2)
    plan(1.0)
    plan(np.ones(2, dtype=">f8"))
    assert plan.summary()["fallbacks"]
    on_the_tape = pb.compile(lambda x: x, tier="unfused")
    on_the_tape(1.0)
    assert on_the_tape.summary()["fallbacks"]


def test_plans_of_several_threads_may_be_evicted_meanwhile(monkeypatch):
    monkeypatch.setattr(compiling, "PLANS_KEPT", 2)
    plan = fused(pb.grad(lambda x: np.sum(x * x)))
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(200):
                size = int(rng.integers(1, 5))
                np.testing.assert_array_equal(plan(np.ones(size)), np.full(size, 2.0))
        except Exception as error:  # noqa: BLE001 (whatever it was is reported below)
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


# --- plans: the text and the memory of the program --------------------------------------------------------------------


def test_a_negative_base_is_raised_before_it_is_negated():
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(fused(lambda x: (-2.0) ** x)(x), [4.0, -8.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(x[np.int64(1) :] ** 2),
        lambda x: np.sum(np.broadcast_to(x, (np.int64(2), 3)) ** 2),
        lambda x: np.sum(x * 10**30),
    ],
    ids=["slice", "broadcast", "large integer"],
)
def test_integers_of_all_kinds_can_be_written_into_a_program(function):
    want = pb.grad(function)(THREE)
    np.testing.assert_allclose(fused(pb.grad(function))(THREE), want)


def test_gradients_keep_the_byte_order_of_their_arguments():
    swapped = THREE.astype(THREE.dtype.newbyteorder())

    def function(x, y):
        return np.sum(x[1:] * y[1:] ** 2)

    for gradient in (pb.grad(function, wrt=(0, 1)), fused(pb.grad(function, wrt=(0, 1)))):
        x_bar, y_bar = gradient(swapped, THREE)
        assert (x_bar.dtype, y_bar.dtype) == (swapped.dtype, THREE.dtype)
        np.testing.assert_array_equal(x_bar, [0, 4, 9])


def test_a_transposed_broadcast_gradient_is_the_callers():
    with pb.tier("fused"):
        gradient = pb.grad(lambda x: np.sum(np.tanh(np.sum(x.T, axis=1))))(np.ones((2, 3)))
    gradient[0, 0] = 5.0
    assert gradient[1, 0] != 5.0


@pytest.mark.parametrize(
    ("plan", "args"),
    [
        (fused(lambda x, _: x), (np.array(2.0), 0.0)),
        (fused(lambda x, _: x.reshape(())), (np.ones(1), 0.0)),
        (fused(lambda x, _: pb.value_and_grad(lambda x: x)(x)[0]), (np.array(2.0), 0.0)),
        (fused(pb.grad(lambda x, y: x * y, wrt=1)), (np.array(2.0), np.array(3.0))),
    ],
    ids=["identity", "reshape to a number", "value", "gradient"],
)
def test_a_number_that_is_returned_is_not_the_callers_array(plan, args):
    assert not np.shares_memory(plan(*args), args[0])


def test_squares_of_booleans_compile():
    flags = np.array([True, False])
    np.testing.assert_array_equal(fused(lambda x: x * x)(flags), flags * flags)
    np.testing.assert_array_equal(fused(lambda x: x**2)(flags), flags**2)


def test_a_dense_layer_of_integers_is_not_rounded():
    eye = np.eye(2, dtype=int)
    for act in ("sigmoid", "tanh"):
        layer = functools.partial(lambda act, w, x: pb.nn.dense_bias_act(w, x, None, act), act)
        np.testing.assert_allclose(fused(layer)(eye, eye), layer(eye, eye))


@TIERS
def test_a_dense_layer_whose_activation_has_a_zero_derivative(tier):
    with pb.tier(tier):
        gradient = pb.grad(lambda w: np.sum(pb.nn.dense_bias_act(w, B, None, np.sign)))(A)
    np.testing.assert_array_equal(gradient, np.zeros((2, 2)))


@TIERS
def test_a_dense_layer_with_a_number_as_its_bias(tier):
    with pb.tier(tier):
        b_bar = pb.vjp(lambda b: np.sum(pb.nn.dense_bias_act(A, B, b, "tanh")), 0.5)[1](1.0)[0]
    np.testing.assert_allclose(b_bar, np.sum(1 - np.tanh(A @ B + 0.5) ** 2))


# --- traces -----------------------------------------------------------------------------------------------------------


def test_a_traced_value_of_an_earlier_call_is_refused():
    kept = {}

    def function(x):
        if "h" not in kept:
            kept["h"] = np.tanh(x)
        return np.sum(kept["h"] * x)

    gradient = pb.value_and_grad(function)
    gradient(THREE)
    with pytest.raises(TracingError):
        gradient(THREE)


def test_an_inner_gradient_in_another_thread_is_inner():
    with ThreadPoolExecutor(1) as pool:

        def function(x):
            return pool.submit(lambda: pb.grad(lambda y: x * y * y)(3.0)).result()

        assert pb.grad(function)(1.0) == 6.0


def test_writing_to_the_value_does_not_change_the_pullback():
    value, pullback = pb.vjp(np.tanh, THREE)
    value *= 0.0
    np.testing.assert_allclose(pullback(np.ones(3))[0], 1 - np.tanh(THREE) ** 2)


def test_a_refused_cotangent_does_not_use_up_the_pullback():
    _, pullback = pb.vjp(np.tanh, THREE, once=True)
    with pytest.raises(DifferentiationError):
        pullback(np.ones(4))
    assert pullback(np.ones(3))[0].shape == (3,)


@pytest.mark.parametrize(
    ("function", "x", "y_bar"),
    [
        (np.sum, THREE.astype(np.float32), 1.0),
        (lambda x: x, THREE, np.ones(3, int)),
        (lambda x: x + 1, np.float32(2), 1.0),
    ],
)
def test_a_pullback_gives_the_dtype_of_the_argument(function, x, y_bar):
    assert pb.vjp(function, x)[1](y_bar)[0].dtype == x.dtype


def test_jvp_of_several_results_gives_a_tangent_for_each():
    y, dy = pb.jvp(lambda x: (x, {"square": x * x}), [THREE], [THREE])
    np.testing.assert_array_equal(dy[0], THREE)
    np.testing.assert_array_equal(dy[1]["square"], 2 * THREE * THREE)
    assert y[1].keys() == dy[1].keys()


# --- arguments --------------------------------------------------------------------------------------------------------


@TIERS
@pytest.mark.parametrize("wrt", [(0, 0), (0, -1), ("x", 0)])
def test_an_argument_asked_for_twice_has_its_gradient_twice_or_is_refused(tier, wrt):
    with pb.tier(tier):
        try:
            gradient = pb.grad(lambda x: x * x, wrt=wrt)(2.0)
        except DifferentiationError:
            return
    assert gradient == (4.0, 4.0)


def with_rest(x, *rest, scale=2.0):
    return x * scale + sum(3.0 * part for part in rest)


def test_the_name_of_all_the_rest_is_refused():
    with pytest.raises(DifferentiationError, match="names no argument of with_rest"):
        pb.grad(with_rest, wrt="rest")(1.0, 1.0, 1.0)


@TIERS
def test_arguments_by_keyword_only_and_by_default_are_chosen_by_name(tier):
    with pb.tier(tier):
        assert pb.grad(with_rest, wrt="scale")(3.0, 1.0) == 3.0
        assert pb.grad(with_rest, wrt=("x", "scale"))(3.0, scale=5.0) == (5.0, 3.0)
        assert pb.grad(lambda x, a=2.0: x * a, wrt="a")(3.0) == 3.0
        assert pb.grad(lambda x, **options: x * options["a"], wrt="a")(3.0, a=2.0) == 3.0
        assert pb.jacobian(with_rest, wrt="scale")(3.0, 1.0) == 3.0
        assert pb.hessian(lambda x, *, a: x * a**3, wrt="a")(2.0, a=1.0) == 12.0


def test_a_keyword_that_is_not_given_is_refused():
    with pytest.raises(DifferentiationError, match="called with no such argument"):
        pb.grad(lambda x, **options: x * options.get("a", 1.0), wrt="a")(3.0)


@pytest.mark.parametrize("wrt", [1.0, (0, None), True])
def test_wrt_that_is_no_position_and_no_name_is_refused(wrt):
    with pytest.raises(DifferentiationError, match="is no position, no name and no tuple of them"):
        pb.grad(lambda x: x, wrt=wrt)


@TIERS
def test_a_default_between_given_arguments_is_used(tier):
    with pb.tier(tier):
        assert pb.grad(lambda x, a=2.0, b=1.0: x * a * b)(1.0, b=3.0) == 6.0


@pytest.mark.parametrize("wrt", [5, "z"])
def test_errors_can_speak_of_a_partial(wrt):
    with pytest.raises(DifferentiationError):
        pb.grad(functools.partial(np.multiply, 2.0) if wrt == 5 else functools.partial(with_rest, 2.0), wrt=wrt)(1.0)


def test_a_dataclass_with_a_field_that_init_does_not_take():
    @dataclass
    class Parameters:
        w: object
        n: object = field(init=False, default=1.0)

    np.testing.assert_array_equal(pb.grad(lambda p: np.sum(p.w * p.n))(Parameters(THREE)).w, np.ones(3))


def test_a_gradient_can_be_copied_after_it_ran_fused():
    rate = 2.0
    gradient = pb.grad(lambda x: x * rate)
    with pb.tier("fused"):
        gradient(1.0)
    assert copy.deepcopy(gradient)(1.0) == 2.0


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@TIERS
def test_a_matrix_is_differentiated_as_what_it_is_or_refused(tier):
    """`*` of numpy.matrix is the matrix product."""
    m = np.matrix(A)
    with pb.tier(tier):
        try:
            gradient = pb.grad(lambda m: (m * m)[0, 0])(m)
        except pb.errors.PullbackError:
            return
    np.testing.assert_allclose(np.asarray(gradient), [[2.0, 3.0], [2.0, 0.0]])


# --- mathematics ------------------------------------------------------------------------------------------------------


@TIERS
def test_casts_to_integers_have_no_slope(tier):
    with pb.tier(tier):
        np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x.astype(int) * 1.5))(THREE), np.zeros(3))
        np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x.astype(bool) * x))(THREE), np.ones(3))


@TIERS
def test_the_zeroth_power_is_constant(tier):
    with pb.tier(tier):
        assert pb.grad(lambda x: x**0)(0.0) == 0.0
        np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x**0))(np.zeros(2)), [0.0, 0.0])
        np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x ** np.array([0.0, 1.0, 2.0])))(np.zeros(3)), [0, 1, 0])
        unsigned = np.array([0, 1, 2], np.uint8)
        np.testing.assert_allclose(pb.grad(lambda x: np.sum(x**unsigned))(np.full(3, 20.0)), [0, 1, 40])


@TIERS
def test_comparisons_of_numbers_count_as_numbers(tier):
    with pb.tier(tier):
        assert pb.value_and_grad(lambda x: x * ((x > 0) + (x > 1)))(2.0) == (4.0, 2.0)
        assert pb.value_and_grad(lambda x: x * ((x > 0) - (x > 5)))(2.0) == (2.0, 1.0)
        x = np.float64(2.0)
        assert pb.value_and_grad(lambda x: x * (np.sum(x > 0) + np.sum(x > 1)))(x) == (4.0, 2.0)


@TIERS
def test_the_mean_of_half_precision_does_not_overflow(tier):
    with pb.tier(tier):
        assert pb.value_and_grad(np.mean)(np.full(100, 1000, np.float16))[0] == 1000


def test_zeros_like_takes_an_empty_shape():
    assert pb.value_and_grad(lambda x: np.sum(np.ones_like(x, shape=())) + 0 * x[0])(THREE)[0] == 1.0


@TIERS
def test_masks_and_counts_have_no_cotangents(tier):
    """Pulling back through a comparison would cast infinities to integers."""
    with pb.tier(tier), warnings.catch_warnings():
        warnings.simplefilter("error")
        pb.grad(lambda x: np.sum(x * np.sum(x > 0)))(np.array([1.0, np.inf]))


@TIERS
def test_the_absolute_value_of_a_python_number_stays_one(tier):
    x = THREE.astype(np.float32)
    with pb.tier(tier):
        assert pb.value_and_grad(lambda p, x: np.sum(abs(p) * x))(2.0, x)[0].dtype == np.float32


# --- what holds -------------------------------------------------------------------------------------------------------


@TIERS
def test_one_array_passed_twice_has_two_gradients(tier):
    with pb.tier(tier):
        first, second = pb.grad(lambda x, y: np.sum(x * y * y), wrt=(0, 1))(THREE, THREE)
    np.testing.assert_array_equal(first, THREE**2)
    np.testing.assert_array_equal(second, 2 * THREE**2)


@TIERS
def test_strided_reversed_and_read_only_arguments(tier):
    base = np.arange(24.0).reshape(4, 6)[::-1, ::2]
    base.flags.writeable = False
    with pb.tier(tier):
        np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x.T.reshape(-1) ** 2))(base), 2 * base)


def test_outputs_of_a_plan_have_memory_of_their_own():
    x = THREE.copy()

    def function(x):
        y = np.tanh(x)
        return y, y, y.reshape(3, 1), x, x[::-1]

    outputs = fused(function)(x)
    assert not any(np.shares_memory(a, b) for i, a in enumerate(outputs) for b in (*outputs[:i], x))


def test_a_counter_in_the_closure_counts():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x * count

    plan = fused(pb.grad(function))
    assert [plan(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]


@pytest.mark.sample(every=4)
@TIERS
def test_thousands_of_operations_in_a_row(tier):
    def deep(x):
        for _ in range(2000):
            x = np.sin(x) + 0.1
        return np.sum(x)

    with pb.tier(tier):
        assert np.isfinite(pb.grad(deep)(THREE)).all()


@TIERS
def test_an_error_that_the_function_catches_is_caught(tier):
    def inverse(x):
        try:
            return np.linalg.inv(x)
        except np.linalg.LinAlgError:
            return np.linalg.pinv(x)

    def division(x):
        with np.errstate(all="raise"):
            try:
                return np.sum(1 / x)
            except FloatingPointError:
                return np.sum(x)

    for function, good, bad in ((inverse, 2 * np.eye(3), np.ones((3, 3))), (division, THREE + 5, np.zeros(3))):
        plan = pb.compile(function, tier=tier)
        for x in (good, bad, good, bad):
            np.testing.assert_allclose(plan(x), function(x))


@TIERS
def test_warnings_that_the_function_silences_are_silent(tier):
    def logarithm(x):
        with np.errstate(divide="ignore"):
            y = np.log(x)
        return np.where(x > 0, y, 0.0)

    plan = pb.compile(logarithm, tier=tier)
    for x in (np.array([1.0, 2.0]), np.array([0.0, 2.0])):
        np.testing.assert_array_equal(plan(x), logarithm(x))


@TIERS
def test_what_the_function_stores_is_never_a_traced_value(tier):
    class Model:
        last = None

    model, kept, latest = Model(), {"y": None}, None
    model.last = None

    def function(x):
        nonlocal latest
        kept["y"] = model.last = latest = np.sin(x)
        return np.sum(latest)

    plan = pb.compile(function, tier=tier)
    for x in (THREE, THREE + 1, THREE + 2):
        plan(x)
        for stored in (kept["y"], model.last, latest):
            np.testing.assert_array_equal(stored, np.sin(x))


@pytest.mark.parametrize("first", [-1.0, 1.0])
def test_a_call_that_raises_does_not_keep_the_others_on_the_tape(first):
    def function(x):
        if np.sum(x) < 0:
            raise ValueError("negative")
        return np.sin(x)

    plan = fused(function)
    for value in (first, 1.0, -1.0, 1.0):
        x = np.full(3, value)
        if value < 0:
            with pytest.raises(ValueError, match="negative"):
                plan(x)
        else:
            np.testing.assert_array_equal(plan(x), np.sin(x))
            assert plan.summary()["fallbacks"] == []


@TIERS
def test_an_argument_is_asked_whether_it_is_an_array(tier):
    def function(x):
        return x * 2 if isinstance(x, np.ndarray) else x * 3

    np.testing.assert_array_equal(pb.compile(function, tier=tier)(THREE), THREE * 2)


@TIERS
@pytest.mark.parametrize("position", [2, np.int64(2), np.array(2), np.array([2])])
def test_a_position_that_is_an_argument_leaves_the_array_as_it_is(tier, position):
    """Of a number NumPy makes a view, which is not the plan's to write to; and a position stays a whole number."""

    def function(w, i):
        return np.sum(w[i] ** 2)

    w = np.arange(6.0).reshape(3, 2)
    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    for _ in range(2):
        value, slope = plan(w, position)
        np.testing.assert_allclose(value, 41.0)
        np.testing.assert_allclose(slope, [[0, 0], [0, 0], [8, 10]])
    np.testing.assert_array_equal(w, np.arange(6.0).reshape(3, 2))
    assert pb.compile(pb.grad(lambda w, i: w[i, 1]), tier=tier)(w, 2)[2, 1] == 1.0


@TIERS
def test_a_counter_of_a_loop_may_be_a_position(tier):
    def function(w):
        return pb.fori_loop(0, 3, lambda i, total: total + (i + 1) * w[i], 0.0 * w[0])

    w = np.array([1.0, 2.0, 3.0])
    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    value, slope = plan(w)
    np.testing.assert_allclose(value, 14.0)
    np.testing.assert_allclose(slope, [1.0, 2.0, 3.0])
