"""The dense rule against its pattern."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.primitive import Primitive
from pullback.nn.activation_choice import FUNCTIONS, ActivationRule, reads_output_only
from pullback.rules import activations

RNG = np.random.default_rng(0)
W, X, B = RNG.normal(size=(4, 5)), RNG.normal(size=(5, 3)), RNG.normal(size=(4, 1))


def custom(z):
    return z * np.tanh(z)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize(
    "act",
    [*sorted(FUNCTIONS.keys() - {"rrelu"}), np.tanh, np.exp, np.sin, custom],
    ids=lambda a: getattr(a, "__name__", a),
)
@pytest.mark.parametrize(
    ("x", "bias"),
    [(X, None), (X, B), (X, B[:, 0]), (X[:, 0], None), (X[:, 0], B[:, 0])],
    ids=["batch", "batch and column", "batch and vector", "sample", "sample and vector"],
)
def test_the_rule_gives_value_and_gradients_of_its_pattern(act, bias, x):
    operands = (W, x) if bias is None else (W, x, bias)

    def loss(*operands):
        return np.sum(pb.nn.dense_bias_act(*operands, act=act) ** 2)

    wrt = tuple(range(len(operands)))
    value, expected = pb.value_and_grad(loss, wrt=wrt)(*operands)
    with pb.tier("fused"):
        fused_value, gradients = pb.value_and_grad(loss, wrt=wrt)(*operands)
    np.testing.assert_allclose(fused_value, value, rtol=1e-12)
    for ours, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_which_activations_may_overwrite_is_found_by_tracing_their_derivatives():
    from_output = {
        name
        for name, rule in Primitive.table.items()
        if isinstance(rule, activations.Activation) and len(rule.maps) == 1 and reads_output_only(ActivationRule(rule))
    }
    assert from_output == {
        *("hardsigmoid", "hardtanh", "logsigmoid", "relu", "relu6", "selu", "sigmoid", "sigmoid_fast"),
        *("softplus", "softsign", "tanh_fast"),
    }
    shaped = {"celu": 1.0, "elu": 1.0, "leakyrelu": 0.01, "softshrink": 0.5, "trelu": 1.0}
    for name, constant in shaped.items():
        assert reads_output_only(ActivationRule(getattr(activations, name), (constant,)))
    for name in ("elu", "leakyrelu", "trelu"):  # a negative parameter: the sign of the output is not that of the input
        assert not reads_output_only(ActivationRule(getattr(activations, name), (-0.5,)))


def test_inputs_are_left_alone():
    w, x, b = W.copy(), X.copy(), B.copy()
    with pb.tier("fused"):
        pb.grad(lambda *a: np.sum(pb.nn.dense_bias_act(*a, act="relu")), wrt=(0, 1, 2))(w, x, b)
    np.testing.assert_array_equal(w, W)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(b, B)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((W, X, True), TypeError, "True and False say nothing"),
        ((W, X, None, "swoosh"), ValueError, "there is no activation 'swoosh'; there are celu, elu"),
        ((W[0], X), ValueError, r"got shapes \(5,\) and \(5, 3\)"),
        ((W, X, np.ones(7)), ValueError, r"a bias of shape \(7,\) does not fit 4 outputs; give it shape \(4,\)"),
        ((W, X, np.ones((1, 3))), ValueError, r"a bias of shape \(1, 3\) does not fit 4 outputs"),
        ((W, X[:, 0], np.ones((4, 1))), ValueError, r"a bias of shape \(4, 1\) does not fit 4 outputs"),
    ],
)
def test_bad_layers_are_refused(args, error, message):
    for tier in pb.TIERS:
        with pb.tier(tier), pytest.raises(error, match=message):
            pb.grad(lambda w: np.sum(pb.nn.dense_bias_act(w, *args[1:])))(args[0])


@pytest.mark.parametrize("tier", pb.TIERS)
def test_lists_are_arrays_and_numbers_stay_numbers(tier):
    with pb.tier(tier):
        np.testing.assert_array_equal(pb.nn.dense_bias_act([[1.0, 2.0]], [3.0, 4.0], [-20.0], act="relu"), [0])
        np.testing.assert_array_equal(pb.nn.bias_act("relu", [1.0, -2.0], [0.5, 0.5]), [1.5, 0])
        assert pb.nn.dense_bias_act(W.astype("f4"), X.astype("f4"), 0.5, act="tanh").dtype == np.float32
        np.testing.assert_array_equal(pb.nn.sigmoid([0.0, 0.0]), [0.5, 0.5])


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(("w", "x"), [((4, 5), (5, 0)), ((4, 0), (0, 3)), ((0, 5), (5, 3))])
def test_layers_of_nothing(tier, w, x):
    w, x, b = np.ones(w), np.ones(x), np.ones(w[0])
    with pb.tier(tier):
        y, pullback = pb.vjp(lambda *a: pb.nn.dense_bias_act(*a, act="sigmoid"), w, x, b)
        shapes = [cotangent.shape for cotangent in pullback(np.ones_like(y))]
    assert y.shape == (w.shape[0], x.shape[1])
    assert shapes == [w.shape, x.shape, b.shape]
