"""Seed 1: a layer with bias and activation in one rule, S1-1 to S1-8 by number.

The seed is NNlib.jl's pull request 346: gradients for conv_bias_act and dense_bias_act.
"""

from functools import partial

import numpy as np
import pytest

import pullback as pb
from pullback.core.primitive import Primitive
from pullback.nn.activation_choice import FUNCTIONS, ActivationRule, activation, reads_output_only
from pullback.rules import activations
from pullback_runners.allocations.arrays import ArrayCounter

RNG = np.random.default_rng(0)
ACTIVATIONS = sorted(FUNCTIONS.keys() - {"rrelu"})  # rrelu draws its slopes; it has a test of its own


def draw(*shape):
    return RNG.normal(size=shape)


LAYERS = {
    "dense": (pb.nn.dense_bias_act, draw(4, 5), draw(5, 3)),
    "dense on one sample": (pb.nn.dense_bias_act, draw(4, 5), draw(5)),
    "conv 1-D": (partial(pb.nn.conv_bias_act, stride=2), draw(4, 2, 3), draw(2, 2, 9)),
    "conv 2-D": (partial(pb.nn.conv_bias_act, pad=(1, (0, 2)), dilation=(1, 2)), draw(4, 2, 2, 3), draw(2, 2, 4, 5)),
    "conv 3-D": (partial(pb.nn.conv_bias_act, groups=2), draw(4, 1, 2, 2, 2), draw(2, 2, 3, 4, 3)),
}
every_activation = pytest.mark.parametrize("act", ACTIVATIONS)


def cube_root(y):
    return np.sign(y) * np.abs(y / 3) ** (1 / 3)


def value_and_gradients(loss, operands, tier):
    with pb.tier(tier):
        return pb.value_and_grad(loss, wrt=tuple(range(len(operands))))(*operands)


def assert_same(ours, theirs, rtol=1e-11):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13)


def peak_in_arrays(function, array_bytes):
    """How many arrays of a size live at once, at most, while a function runs; small ones do not add up to one."""
    counter = ArrayCounter()
    function()
    with counter.window():
        function()
        return counter.read().peak_bytes / array_bytes


# --- S1-1 -----------------------------------------------------------------------------------------------------------
WITH_BIAS = [(act, layer, True) for act in ACTIVATIONS for layer in LAYERS]
# Without one every activation, and every layer: which of them meet is told by those with a bias.
WITHOUT = [(act, [*LAYERS][place % len(LAYERS)], False) for place, act in enumerate(ACTIVATIONS)]


@pytest.mark.sample(every=7)
@pytest.mark.parametrize(("act", "layer", "bias"), WITH_BIAS + WITHOUT)
def test_s1_1_fused_layers_equal_their_expression(act, layer, bias):
    function, w, x = LAYERS[layer]
    operands = (w, x, draw(4)) if bias else (w, x)

    def loss(*operands):
        return np.sum(function(*operands, act=act) ** 2)

    value, gradients = value_and_gradients(loss, operands, "unfused")
    for tier in pb.TIERS:
        fused_value, fused = value_and_gradients(loss, operands, tier)
        np.testing.assert_allclose(fused_value, value, rtol=1e-12)
        assert_same(fused, gradients)
        with pb.tier(tier):  # on the tape, where the once-only pullback writes over what it saved
            tape_value, pullback = pb.vjp(loss, *operands, once=True)
            np.testing.assert_allclose(tape_value, value, rtol=1e-12)
            assert_same(pullback(1.0), gradients)


# --- S1-2 -----------------------------------------------------------------------------------------------------------
def layer_of(act):
    return lambda w, x, b: pb.nn.dense_bias_act(w, x, b, act=act)


def test_s1_2_an_output_the_caller_kept_is_not_overwritten():
    kept = []

    def loss(w, x, b):
        y = layer_of("tanh")(w, x, b)
        kept.append(y)
        return np.sum(y)

    operands = (draw(4, 5), draw(5, 3), draw(4))
    with pb.tier("fused"):
        _, pullback = pb.vjp(loss, *operands, once=True)
        before = kept[0].value.copy()
        pullback(1.0)
    np.testing.assert_array_equal(kept[0].value, before)


def test_s1_2_a_view_of_an_output_that_was_kept_is_not_overwritten():
    kept = []

    def loss(w, x, b):
        y = layer_of("tanh")(w, x, b)
        kept.append(y[1:])
        return np.sum(y)

    operands = (draw(4, 5), draw(5, 3), draw(4))
    with pb.tier("fused"):
        _, pullback = pb.vjp(loss, *operands, once=True)
        before = kept[0].value.copy()
        pullback(1.0)
    np.testing.assert_array_equal(kept[0].value, before)


@pytest.mark.parametrize("act", ["tanh", "relu", "gelu", "softplus"])
def test_s1_2_an_output_with_two_consumers_is_right_for_both(act):
    def loss(w, x, b):
        y = layer_of(act)(w, x, b)
        z = layer_of(act)(w, y, b)
        return np.sum(y * z) + np.sum(np.exp(y) * np.tanh(y.T @ z))

    operands = (draw(4, 4), draw(4, 4), draw(4))
    value, gradients = value_and_gradients(loss, operands, "unfused")
    with pb.tier("fused"):
        fused_value, pullback = pb.vjp(loss, *operands, once=True)
        fused = pullback(1.0)
    np.testing.assert_allclose(fused_value, value, rtol=1e-12)
    assert_same(fused, gradients)


def test_s1_2_inputs_are_left_as_they_were():
    operands = (draw(4, 5), draw(5, 3), draw(4))
    before = [operand.copy() for operand in operands]
    for tier in pb.TIERS:
        value_and_gradients(lambda *a: np.sum(layer_of("relu")(*a)), operands, tier)
        value_and_gradients(lambda w, x, b: np.sum(pb.nn.bias_act("relu", w, b[:, None])), operands, tier)
    for operand, old in zip(operands, before, strict=True):
        np.testing.assert_array_equal(operand, old)


# --- S1-3 -----------------------------------------------------------------------------------------------------------
def test_s1_3_a_new_rule_overwrites_if_its_derivative_reads_the_output():
    from_output = activations.Activation("root_of_output", np.cbrt, lambda v, x, y: v / (3 * y * y))
    from_input = activations.Activation("root_of_input", np.cbrt, lambda v, x, y: v / (3 * np.abs(x) ** (2 / 3)))
    try:
        assert reads_output_only(ActivationRule(from_output))
        assert not reads_output_only(ActivationRule(from_input))
        operands = (draw(4, 5), draw(5, 3))
        results = []
        for act in (from_output, from_input):
            for tier in pb.TIERS:
                loss = lambda *a, act=act: np.sum(pb.nn.dense_bias_act(*a, act=act) ** 2)  # noqa: E731
                results.append(value_and_gradients(loss, operands, tier)[1])
        for other in results[1:]:
            assert_same(other, results[0], rtol=1e-9)
    finally:
        for rule in (from_output, from_input):
            del Primitive.table[rule.name]


# --- S1-4 and the table of the seed -----------------------------------------------------------------------------------
def arrays_of_a_layer(act, *, tier, once, size):
    w, x, b = (draw(*shape).astype(np.float32) for shape in ((size, size), (size, size), (size,)))

    def run():
        with pb.tier(tier):
            _, pullback = pb.vjp(lambda *a: np.sum(layer_of(act)(*a)), w, x, b, once=once)
            return pullback(np.float32(1))

    return int(peak_in_arrays(run, w.nbytes))  # a bias and its gradient are a hundredth of an array


@pytest.mark.parametrize("act", ["tanh", "relu", "sigmoid", "leakyrelu", "softplus"])
def test_s1_arrays_of_the_layer_go_from_six_to_four_to_three(act):
    assert arrays_of_a_layer(act, tier="unfused", once=False, size=100) == 6
    assert arrays_of_a_layer(act, tier="fused", once=False, size=100) == 4
    assert arrays_of_a_layer(act, tier="fused", once=True, size=100) == 3


@pytest.mark.parametrize("act", [act for act in ACTIVATIONS if not reads_output_only(activation(act))])
def test_s1_4_one_extra_array_where_the_input_is_needed(act):
    size = 400  # the pieces that an activation is evaluated in are small beside an array of this size
    assert arrays_of_a_layer(act, tier="fused", once=False, size=size) == 5
    assert arrays_of_a_layer(act, tier="fused", once=True, size=size) == 4


def test_s1_4_a_function_of_the_caller_takes_the_generic_path():
    scale = draw()

    def loss(w, x, b, scale):
        return np.sum(pb.nn.dense_bias_act(w, x, b, act=lambda z: np.sin(scale * z)) ** 2)

    operands = (draw(4, 5), draw(5, 3), draw(4), scale)
    value, gradients = value_and_gradients(loss, operands, "unfused")
    fused_value, fused = value_and_gradients(loss, operands, "fused")
    np.testing.assert_allclose(fused_value, value, rtol=1e-12)
    assert_same(fused, gradients)
    assert abs(gradients[3]) > 1e-3, "the value that the activation closes over has its gradient"


@pytest.mark.parametrize("tier", pb.TIERS)
def test_s1_4_a_parameter_that_is_differentiated_has_its_gradient(tier):
    def loss(w, x, slope):
        return np.sum(pb.nn.dense_bias_act(w, x, act=partial(pb.nn.leakyrelu, a=slope)))

    w, x = draw(4, 5), draw(5, 3)
    z = w @ x
    with pb.tier(tier):
        slope_bar = pb.grad(loss, wrt=2)(w, x, 0.3)
    np.testing.assert_allclose(slope_bar, np.sum(np.minimum(z, 0)))


# --- S1-5 -----------------------------------------------------------------------------------------------------------
@pytest.mark.sample(every=4)
@every_activation
@pytest.mark.parametrize("tier", pb.TIERS)
def test_s1_5_a_pullback_gives_the_same_rows_every_time(act, tier):
    operands = (draw(2, 3), draw(3, 2), draw(2))
    with pb.tier("unfused"):
        expected = [pb.jvp(layer_of(act), operands, direction)[1] for direction in directions(operands)]
    with pb.tier(tier):
        y, pullback = pb.vjp(layer_of(act), *operands)
    for _ in range(2):
        rows = [pullback(one_hot) for one_hot in units(y)]
        for direction, column in zip(directions(operands), expected, strict=True):
            for row, one_hot in zip(rows, units(y), strict=True):
                along = sum(np.sum(a * b) for a, b in zip(row, direction, strict=True))
                np.testing.assert_allclose(along, np.sum(one_hot * column), rtol=1e-10, atol=1e-13)


def units(y):
    for position in np.ndindex(*y.shape):
        one_hot = np.zeros_like(y)
        one_hot[position] = 1
        yield one_hot


def directions(operands):
    rng = np.random.default_rng(3)
    for _ in range(3):
        yield [rng.normal(size=operand.shape) for operand in operands]


def test_s1_5_once_is_the_callers_choice_and_a_second_call_raises():
    with pb.tier("fused"):
        _, pullback = pb.vjp(layer_of("tanh"), draw(2, 3), draw(3, 2), draw(2), once=True)
    pullback(np.ones((2, 2)))
    with pytest.raises(pb.errors.PullbackReuseError, match="once"):
        pullback(np.ones((2, 2)))


# --- S1-6 -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "act", ["relu", "swish", "tanh", "softplus", cube_root], ids=lambda act: getattr(act, "__name__", act)
)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("layer", ["dense", "conv 2-D"])
def test_s1_6_second_order_is_right(act, tier, layer):
    function, w, x = LAYERS[layer]
    b = draw(4)

    def slope(w, x, b):
        gradients = pb.grad(lambda *a: np.sum(function(*a, act=act) ** 3), wrt=(0, 1, 2))(w, x, b)
        return sum(np.sum(gradient * gradient) for gradient in gradients)

    with pb.tier(tier):
        _, pullback = pb.vjp(slope, w, x, b)
        reverse = pullback(1.0)
        direction = [np.cos(operand) for operand in (w, x, b)]
        _, forward = pb.jvp(slope, (w, x, b), direction)
    along = sum(np.sum(a * v) for a, v in zip(reverse, direction, strict=True))
    np.testing.assert_allclose(along, forward, rtol=1e-9)
    step = 1e-6
    ahead = slope(*(a + step * v for a, v in zip((w, x, b), direction, strict=True)))
    behind = slope(*(a - step * v for a, v in zip((w, x, b), direction, strict=True)))
    np.testing.assert_allclose(along, (ahead - behind) / (2 * step), rtol=1e-4)


# --- S1-7 -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "layer", [pb.nn.dense_bias_act, pb.nn.conv_bias_act, lambda w, x, b: pb.nn.bias_act("relu", x, b)]
)
@pytest.mark.parametrize("truth", [True, False, np.True_])
def test_s1_7_a_truth_value_is_no_bias(layer, truth):
    with pytest.raises(TypeError, match="b is an array or None"):
        layer(draw(4, 5), draw(5, 3), truth)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_s1_7_no_bias_is_no_array_and_no_gradient(tier):
    w, x = draw(4, 5), draw(5, 3)
    with pb.tier(tier):
        y, pullback = pb.vjp(lambda w, x: pb.nn.dense_bias_act(w, x, None, act="tanh"), w, x)
    np.testing.assert_allclose(y, np.tanh(w @ x), rtol=1e-12)
    assert len(pullback(np.ones_like(y))) == 2


@pytest.mark.parametrize("tier", pb.TIERS)
def test_s1_7_a_bias_of_truth_values_is_added_and_has_no_gradient(tier):
    w, x, b = draw(4, 5), draw(5, 3), np.array([True, False, True, False])
    with pb.tier(tier):
        np.testing.assert_allclose(pb.nn.dense_bias_act(w, x, b, act="tanh"), np.tanh(w @ x + b[:, None]), rtol=1e-12)
        pb.grad(lambda w: np.sum(pb.nn.dense_bias_act(w, x, b, act="tanh")))(w)
        with pytest.raises(pb.errors.DifferentiationError, match="dtype bool"):
            pb.grad(lambda b: np.sum(pb.nn.dense_bias_act(w, x, b, act="tanh")))(b)


# --- S1-8 -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tier", pb.TIERS)
def test_s1_8_integers_are_not_overwritten(tier):
    w, x, b = np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2) - 2, np.array([1, -40])
    before = [operand.copy() for operand in (w, x, b)]
    with pb.tier(tier):
        np.testing.assert_array_equal(pb.nn.dense_bias_act(w, x, b, act="relu"), np.maximum(w @ x + b[:, None], 0))
        np.testing.assert_allclose(pb.nn.bias_act("tanh", x, b), np.tanh(x + b))
    for operand, old in zip((w, x, b), before, strict=True):
        np.testing.assert_array_equal(operand, old)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("act", ["identity", pb.nn.identity])
def test_s1_8_identity_without_bias_is_the_input_itself(tier, act):
    x = draw(3, 4)
    with pb.tier(tier):
        assert pb.nn.bias_act(act, x) is x
        assert pb.nn.identity(x) is x


# --- convolutions, and layers on top of each other --------------------------------------------------------------------
def test_s1_arrays_of_a_convolution_go_from_five_to_three_to_two():
    """The input is as large as the output; the weights, the bias and the buffer of windows are small."""
    w, x, b = (draw(*shape).astype(np.float32) for shape in ((8, 8, 3, 3), (32, 8, 32, 64), (8,)))

    def arrays(*, tier, once):
        def run():
            with pb.tier(tier):
                _, pullback = pb.vjp(lambda *a: np.sum(pb.nn.conv_bias_act(*a, act="relu", pad=1)), w, x, b, once=once)
                return pullback(np.float32(1))

        return int(peak_in_arrays(run, x.nbytes))

    assert arrays(tier="unfused", once=False) == 5
    assert arrays(tier="fused", once=False) == 3
    assert arrays(tier="fused", once=True) == 2


def test_a_network_of_convolutions_pools_and_layers_has_its_gradients():
    """LeNet's shape, small: two convolutions with pools, two dense layers, the cross-entropy of classes."""
    shapes = {"k1": (3, 1, 3, 3), "c1": (3,), "k2": (4, 3, 3, 3), "c2": (4,), "w1": (6, 16), "b1": (6,), "w2": (5, 6)}
    parameters = {name: 0.5 * draw(*shape) for name, shape in shapes.items()}
    images, labels = draw(3, 1, 14, 14), np.array([0, 4, 2])

    def loss(p, images, labels):
        h = pb.nn.max_pool(pb.nn.conv_bias_act(p["k1"], images, p["c1"], act="relu", pad=1), 2)
        h = pb.nn.mean_pool(pb.nn.conv_bias_act(p["k2"], h, p["c2"], act="tanh"), 2)
        h = pb.nn.dense_bias_act(p["w1"], np.reshape(h, (3, 16)).T, p["b1"], act="gelu")
        return pb.nn.logitcrossentropy(pb.nn.dense_bias_act(p["w2"], h), labels, axis=0)

    with pb.tier("unfused"):
        value, expected = pb.value_and_grad(loss)(parameters, images, labels)
    direction = {name: draw(*shape) for name, shape in shapes.items()}
    step = 1e-6
    ahead, behind = (
        loss({name: parameters[name] + sign * step * direction[name] for name in shapes}, images, labels)
        for sign in (1, -1)
    )
    along = sum(np.sum(expected[name] * direction[name]) for name in shapes)
    np.testing.assert_allclose(along, (ahead - behind) / (2 * step), rtol=1e-5)
    for tier in pb.TIERS:
        with pb.tier(tier):
            tier_value, gradients = pb.value_and_grad(loss)(parameters, images, labels)
        np.testing.assert_allclose(tier_value, value, rtol=1e-12)
        for name in shapes:
            np.testing.assert_allclose(gradients[name], expected[name], rtol=1e-9, atol=1e-13)


# --- S1-2 on programs nobody wrote ------------------------------------------------------------------------------------
def random_program(seed):
    """A function of w, x and b that uses layers in an order, and their outputs as often, as the seed says; it keeps some."""
    kept = []

    def program(w, x, b):
        rng = np.random.default_rng(seed)
        values = [x, np.tanh(w)]
        for _ in range(7):
            a, c = (values[rng.integers(len(values))] for _ in range(2))
            act = ("tanh", "relu", "softplus", "swish", "identity", "leakyrelu")[rng.integers(6)]
            match rng.integers(7):
                case 0 | 1:
                    y = pb.nn.dense_bias_act(0.5 * w, a, b, act=act)
                case 2:
                    y = pb.nn.dense_bias_act(a, c, act=act)
                case 3:
                    y = pb.nn.bias_act(act, a, b[:, None])
                case 4:
                    y = a * c
                case 5:
                    y = np.transpose(a)
                case _:
                    y = getattr(pb.nn, act)(a)
            values.append(y)
            if rng.random() < 0.3:
                kept.append(y)
        return sum(np.sum(value * np.cos(value)) for value in values[-3:])

    return program, kept


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("seed", range(60))
def test_s1_2_random_programs_are_right_and_what_they_keep_stays(seed):
    program, kept = random_program(seed)
    operands = (draw(4, 4), draw(4, 4), draw(4))
    value, gradients = value_and_gradients(program, operands, "unfused")
    kept.clear()
    with pb.tier("fused"):
        fused_value, pullback = pb.vjp(program, *operands, once=True)
        before = [np.array(y.value) for y in kept if hasattr(y, "value")]
        fused = pullback(1.0)
    np.testing.assert_allclose(fused_value, value, rtol=1e-10)
    for ours, theirs in zip(fused, gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10 * np.max(np.abs(theirs), initial=1))
    for y, old in zip((y for y in kept if hasattr(y, "value")), before, strict=True):
        np.testing.assert_array_equal(y.value, old)


def test_s1_a_convolution_in_a_plan_that_keeps_its_memory_makes_no_array_of_its_results():
    def loss(w, x, b):
        return np.sum(pb.nn.conv_bias_act(w, x, b, act="relu", pad=1) ** 2)

    operands = (draw(4, 2, 3, 3), draw(2, 2, 6, 6), draw(4))
    plan = pb.compile(pb.value_and_grad(loss, wrt=(0, 1, 2)), tier="stateful")
    with pb.tier("unfused"):
        value, gradients = pb.value_and_grad(loss, wrt=(0, 1, 2))(*operands)
    for _ in range(2):
        kept_value, kept = plan(*operands)
        np.testing.assert_allclose(kept_value, value, rtol=1e-12)
        assert_same(kept, gradients)
    summary = plan.summary()
    assert summary["arrays"] == 0
    assert summary["transient"] == []
