"""grad, value_and_grad, vjp and jvp as their users call them."""

import threading

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DifferentiationError, NoRuleError, PullbackReuseError, TierError, TracingError
from pullback.tiers import current_tier

TIERS = pytest.mark.parametrize("tier", pb.TIERS)


@pytest.fixture
def layer():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 5)), rng.normal(size=(5, 3)), rng.normal(size=(4, 1))


def loss(w, x, b):
    return np.sum(np.tanh(w @ x + b) ** 2)


@TIERS
def test_one_name_gives_one_gradient_and_a_tuple_gives_a_tuple(layer, tier):
    with pb.tier(tier):
        single = pb.grad(loss, wrt="b")(*layer)
        value, (dw, db) = pb.value_and_grad(loss, wrt=("w", "b"))(*layer)
    np.testing.assert_allclose(single, db, rtol=0 if tier != "native" else 1e-15)
    np.testing.assert_allclose(value, loss(*layer), rtol=0 if tier != "native" else 1e-15)
    assert dw.shape == layer[0].shape


@TIERS
def test_arguments_may_come_by_name(layer, tier):
    w, x, b = layer
    with pb.tier(tier):
        np.testing.assert_array_equal(pb.grad(loss, wrt="x")(b=b, x=x, w=w), pb.grad(loss, wrt=1)(w, x, b))


@TIERS
def test_gradients_of_nested_arguments_are_nested_alike(layer, tier):
    w, x, b = layer

    def nested(params, x):
        return loss(params["w"], x, params["rest"][0])

    with pb.tier(tier):
        gradient = pb.grad(nested)({"w": w, "rest": [b, None]}, x)
    assert list(gradient) == ["w", "rest"]
    assert gradient["rest"][1] is None
    np.testing.assert_allclose(gradient["w"], pb.grad(loss)(w, x, b))


@TIERS
def test_a_python_float_gets_a_python_float(tier):
    with pb.tier(tier):
        gradient = pb.grad(lambda p: 3.0 * p * p)(2.0)
    assert type(gradient) is float
    assert gradient == 12.0


@TIERS
def test_single_precision_stays_single(layer, tier):
    w, x, b = (part.astype(np.float32) for part in layer)
    with pb.tier(tier):
        value, gradient = pb.value_and_grad(loss)(w, x, b)
    assert value.dtype == gradient.dtype == np.float32


@TIERS
def test_python_numbers_do_not_raise_the_precision(tier):
    x = np.ones(3, np.float32)
    with pb.tier(tier):
        assert pb.grad(lambda x, p: np.sum(p * x * 2.0))(x, 3.0).dtype == np.float32


@TIERS
def test_an_argument_that_leads_nowhere_has_a_zero_gradient(tier):
    with pb.tier(tier):
        a_bar, p_bar = pb.grad(lambda x, a, p: np.sum(x), wrt=(1, 2))(np.ones(3), np.ones((2, 2)), 1.5)
    np.testing.assert_array_equal(a_bar, np.zeros((2, 2)))
    assert p_bar == 0.0


@TIERS
def test_a_constant_function_has_a_zero_gradient(tier):
    with pb.tier(tier):
        np.testing.assert_array_equal(pb.grad(lambda x: 3.0)(np.ones(2)), [0.0, 0.0])


@TIERS
def test_zero_size_arrays_have_zero_size_gradients(tier):
    with pb.tier(tier):
        assert pb.grad(lambda x: np.sum(np.tanh(x) ** 2))(np.empty((0, 3))).shape == (0, 3)


@TIERS
def test_nan_goes_through(tier):
    with pb.tier(tier):
        gradient = pb.grad(lambda x: np.sum(x * x))(np.array([1.0, np.nan]))
    assert gradient[0] == 2.0
    assert np.isnan(gradient[1])


@TIERS
def test_gradients_have_memory_of_their_own(tier):
    """Writing into one changes neither another, nor the arguments, nor the next call."""
    c = np.arange(3.0)

    def shared(a, b):
        return np.sum((a + b) * c)

    with pb.tier(tier):
        gradient = pb.grad(shared, wrt=(0, 1))
        a_bar, b_bar = gradient(np.ones(3), np.ones(3))
        a_bar += 100
        np.testing.assert_array_equal(b_bar, [0, 1, 2])
        np.testing.assert_array_equal(c, [0, 1, 2])
        np.testing.assert_array_equal(gradient(np.ones(3), np.ones(3))[0], [0, 1, 2])


@TIERS
def test_a_broadcast_gradient_can_be_written_to(tier):
    with pb.tier(tier):
        gradient = pb.grad(np.sum)(np.ones((2, 3)))
    gradient[0, 0] = 5.0
    assert gradient.sum() == 10.0


@TIERS
def test_control_flow_on_values_takes_the_branch_of_the_values(tier):
    def branchy(x):
        return np.sum(x) if x[0] > 0 else np.sum(-2 * x)

    with pb.tier(tier):
        gradient = pb.grad(branchy)
        assert gradient(np.array([1.0, 1.0])).tolist() == [1.0, 1.0]
        assert gradient(np.array([-1.0, 1.0])).tolist() == [-2.0, -2.0]


def test_derivatives_nest_to_any_order():
    f = np.tanh
    t = np.tanh(0.3)
    second = pb.grad(pb.grad(f))(0.3)
    assert second == pytest.approx(-2 * t * (1 - t * t), rel=1e-14)
    third = pb.grad(pb.grad(pb.grad(f)))(0.3)
    assert third == pytest.approx((1 - t * t) * (6 * t * t - 2), rel=1e-13)


def test_forward_over_reverse_is_reverse_over_reverse(layer):
    w, x, b = layer
    direction = np.random.default_rng(1).normal(size=w.shape)
    forward = pb.jvp(lambda w: pb.grad(loss)(w, x, b), [w], [direction])[1]
    reverse = pb.grad(lambda w: np.sum(pb.grad(loss)(w, x, b) * direction))(w)
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)


def test_a_nested_gradient_is_right_in_the_fused_tier():
    def inner_sum(x):
        return np.sum(pb.grad(lambda y: np.sum(y**3))(x))

    with pb.tier("fused"):
        np.testing.assert_allclose(pb.grad(inner_sum)(np.array([1.0, 2.0])), [6.0, 12.0])


def test_inner_and_outer_variables_are_not_confused():
    """d/dx (x * d/dy (x + y)) = 1: the perturbations must not mix."""
    assert pb.grad(lambda x: x * pb.grad(lambda y: x + y)(1.0))(1.0) == 1.0


def test_a_pullback_may_be_called_again(layer):
    w, x, b = layer
    value, pullback = pb.vjp(lambda w: np.tanh(w @ x + b), w)
    first = pullback(np.ones_like(value))[0]
    pullback(np.zeros_like(value))
    np.testing.assert_array_equal(pullback(np.ones_like(value))[0], first)


def test_a_once_only_pullback_refuses_a_second_call():
    _, pullback = pb.vjp(np.tanh, np.ones(2), once=True)
    pullback(np.ones(2))
    with pytest.raises(PullbackReuseError, match="once=True"):
        pullback(np.ones(2))


def test_a_cotangent_of_another_shape_is_refused():
    with pytest.raises(DifferentiationError, match=r"shape \(3,\).*shape \(2,\)"):
        pb.vjp(np.tanh, np.ones(2))[1](np.ones(3))


def test_reading_elements_adds_into_one_buffer(peak_bytes):
    n = 2000

    x = np.arange(float(n))
    tracers_and_reads = peak_bytes(lambda: pb.vjp(lambda *xs: sum(xs[1:], xs[0]), *x.tolist())[1](1.0))

    def reads(x):
        return sum((x[i] for i in range(1, n)), x[0])

    gradient = pb.grad(reads)
    np.testing.assert_array_equal(gradient(x), np.ones(n))
    # A dense cotangent per read would be n * n numbers, 32 MB; the tape itself is a few hundred bytes a read.
    assert peak_bytes(lambda: gradient(x)) < 3 * tracers_and_reads + 4 * x.nbytes


def test_constant_operands_cost_nothing_in_the_backward_pass(rule_calls):
    """S2-1 and S2-2: of A @ B @ C @ x by x alone, three products run backward and none for A, B or C."""
    a, b, c, x = (np.eye(3) for _ in range(4))
    with rule_calls() as calls:
        pb.grad(lambda x: np.sum(((a @ b) @ c) @ x))(x)
    assert calls["matmul"] == 1


def test_threads_have_tapes_of_their_own():
    results = {}

    def work(number):
        for _ in range(50):
            results[number] = pb.grad(lambda x: np.sum(x**number))(np.array([2.0]))[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in (2, 3, 4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: number * 2.0 ** (number - 1) for number in (2, 3, 4, 5)}


@TIERS
@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (lambda x: x * 2, [np.ones(3)], r"returned an array of shape \(3,\)"),
        (lambda x: (x, x), [1.0], "returned tuple"),
        (lambda x: x, [np.arange(3)], "dtype int64"),
        (lambda x: x, [3], "dtype int64"),
        (lambda x: x, ["text"], "by a str"),
        (lambda x: np.sum(x), [np.array([object()])], "dtype object"),
        (lambda x: x > 0, [1.0], "returned bool"),
    ],
)
def test_what_has_no_gradient_is_refused_in_one_sentence(tier, function, args, message):
    with pb.tier(tier), pytest.raises(DifferentiationError, match=message) as caught:
        pb.grad(function)(*args)
    assert "\n" not in str(caught.value)


@TIERS
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.sum(np.i0(x)), "numpy.i0 has no rule"),
        (lambda x: np.sum(np.nextafter(x, 1.0)), "numpy.nextafter has no rule"),
        (lambda x: np.sum(np.logaddexp.accumulate(x)), "numpy.logaddexp.accumulate has no rule"),
        (lambda x: x["first"].sum(), "indexed by a str"),
        (lambda x: float(x[0]), "cannot become a float"),
        (lambda x: np.sum(np.asarray(x)), "cannot become a plain array"),
        (lambda x: np.sum(np.add(x, x, out=np.ones(2))), "numpy.zeros_like"),
        (lambda x: np.sum(np.add(x, x, dtype=int)), "dtype=int64"),
        (lambda x: x.__setitem__(0, 1.0), "store into an argument"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(tier, function, message):
    with pb.tier(tier), pytest.raises(TracingError, match=message):
        pb.grad(function)(np.ones(2))


def test_no_rule_is_an_error_of_its_own():
    with pytest.raises(NoRuleError, match="give it a derivative with @pb.primitive"):
        pb.grad(lambda x: np.sum(np.multiply.reduceat(x, [0])))(np.ones(2))


def test_unknown_arguments_and_tiers_are_refused():
    with pytest.raises(DifferentiationError, match="names no argument of loss; it has w, x, b"):
        pb.grad(loss, wrt="v")(1, 2, 3)
    with pytest.raises(DifferentiationError, match="called with 1 arguments"):
        pb.grad(np.sum, wrt=3)(np.ones(2))
    with pytest.raises(TierError, match="it has unfused, fused"):
        pb.tier("fast")  # not only when it is entered
    for name in ("fast", ""):
        with pytest.raises(TierError, match="it has unfused, fused"):
            pb.compile(np.sin, tier=name)
    with pytest.raises(TierError, match="it has unfused, fused"), pb.tier("fast"):
        pass


def test_a_tier_is_in_force_inside_its_block_only():
    with pb.tier("fused"):
        assert current_tier() == "fused"
    assert current_tier() == "unfused"


def test_what_is_listed_as_public_is_there():
    for name in pb.__all__:
        assert getattr(pb, name) is not None
    assert set(pb.__all__) <= set(dir(pb))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pb.nonsense
