"""Activations: what docs/activations.md promises of values, dtypes, kinks and errors."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.nn.activation_choice import FUNCTIONS, ActivationRule, activation, reads_output_only
from pullback.rules import activations as rules

NAMES = sorted(FUNCTIONS.keys() - {"rrelu"})
every_activation = pytest.mark.parametrize("name", NAMES)
FINITE = np.concatenate([np.linspace(-20, 20, 4001), np.geomspace(1e-6, 20, 2000), -np.geomspace(1e-6, 20, 2000)])

#: Textbook definitions in double precision, well away from overflow.
TEXTBOOK = {
    "celu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "gelu": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "gelu_sigmoid": lambda x: x / (1 + np.exp(-1.702 * x)),
    "hardsigmoid": lambda x: np.clip((x + 3) / 6, 0, 1),
    "hardswish": lambda x: x * np.clip((x + 3) / 6, 0, 1),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "identity": lambda x: x,
    "leakyrelu": lambda x: np.where(x > 0, x, 0.01 * x),
    "lisht": lambda x: x * np.tanh(x),
    "logcosh": lambda x: np.log(np.cosh(x)),
    "logsigmoid": lambda x: np.log(1 / (1 + np.exp(-x))),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sigmoid_fast": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "tanh_fast": np.tanh,
    "tanhshrink": lambda x: x - np.tanh(x),
    "trelu": lambda x: np.where(x > 1, x, 0),
}
TEXTBOOK["gelu_tanh"] = TEXTBOOK["gelu"]


def gelu_erf(x):
    from math import erf, sqrt

    return np.array([value * (1 + erf(value / sqrt(2))) / 2 for value in x])


TEXTBOOK["gelu_erf"] = gelu_erf


def ulps(value, exact):
    """Error in units in the last place of the value's own precision."""
    return np.abs(value.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(value.dtype)).astype(np.float64)


@every_activation
def test_values_are_those_of_the_textbook(name):
    np.testing.assert_allclose(FUNCTIONS[name](FINITE), TEXTBOOK[name](FINITE), rtol=1e-9, atol=1e-14)


@pytest.mark.sample(every=3)
@every_activation
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (7,), (100, 100), (0, 3)], ids=str)
def test_precision_is_kept_forward_and_backward(name, dtype, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)[()]
    y, pullback = pb.vjp(FUNCTIONS[name], x)
    (x_bar,) = pullback(np.ones_like(y))
    assert (y.dtype, np.shape(y)) == (x.dtype, shape)
    assert (x_bar.dtype, np.shape(x_bar)) == (x.dtype, shape)
    assert pb.jvp(FUNCTIONS[name], [x], [x])[1].dtype == x.dtype


@every_activation
def test_half_precision_is_rounded_once(name):
    x = np.linspace(-8, 8, 1001).astype(np.float16)
    np.testing.assert_array_equal(FUNCTIONS[name](x), FUNCTIONS[name](x.astype(np.float32)).astype(np.float16))


@every_activation
def test_integers_become_what_numpy_makes_of_them(name):
    x = np.arange(-3, 4)
    y = FUNCTIONS[name](x)
    straight = name in {"identity", "hardtanh", "relu", "relu6", "trelu"}
    assert y.dtype == (np.int64 if straight else np.float64)
    np.testing.assert_allclose(y, FUNCTIONS[name](x.astype(float)), rtol=1e-15)
    unsigned = x[x >= 0].astype(np.uint8)
    np.testing.assert_allclose(FUNCTIONS[name](unsigned), FUNCTIONS[name](unsigned.astype(np.float16)), rtol=1e-2)


@every_activation
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_ends_of_the_line_are_right(name, dtype):
    ends = np.array([-np.inf, np.inf, np.nan, np.finfo(dtype).min / 2, np.finfo(dtype).max / 2], dtype)
    y, pullback = pb.vjp(FUNCTIONS[name], ends)
    (slopes,) = pullback(np.ones_like(y))
    assert np.isnan(y[2])
    below, above = LIMITS[name]
    np.testing.assert_array_equal(y[:2].astype(float), np.array([below, above]).astype(dtype))
    lowest, highest = SLOPES[name]
    np.testing.assert_allclose(slopes[[0, 3]].astype(float), lowest, atol=2e-3 if dtype == np.float16 else 1e-7)
    np.testing.assert_allclose(slopes[[1, 4]].astype(float), highest, atol=2e-3 if dtype == np.float16 else 1e-7)


INF = np.inf
_RISING = (-INF, INF), (1, 1)
_HALF_OPEN = (0, INF), (0, 1)
_STEP = (0, 1), (0, 0)
_SIGN = (-1, 1), (0, 0)
_EVEN = (INF, INF), (-1, 1)
_ENDS = {
    **dict.fromkeys(("identity", "softshrink", "tanhshrink"), _RISING),
    **dict.fromkeys(("relu", "trelu", "swish", "hardswish", "mish", "softplus"), _HALF_OPEN),
    **dict.fromkeys(("gelu", "gelu_tanh", "gelu_sigmoid", "gelu_erf"), _HALF_OPEN),
    **dict.fromkeys(("sigmoid", "sigmoid_fast", "hardsigmoid"), _STEP),
    **dict.fromkeys(("tanh", "tanh_fast", "hardtanh", "softsign"), _SIGN),
    **dict.fromkeys(("lisht", "logcosh"), _EVEN),
    **dict.fromkeys(("elu", "celu"), ((-1, INF), (0, 1))),
    "relu6": ((0, 6), (0, 0)),
    "leakyrelu": ((-INF, INF), (0.01, 1)),
    "logsigmoid": ((-INF, 0), (1, 0)),
    "selu": ((-rules.SELU_SCALE * rules.SELU_ALPHA, INF), (0, rules.SELU_SCALE)),
}
LIMITS = {name: limits for name, (limits, _) in _ENDS.items()}
SLOPES = {name: slopes for name, (_, slopes) in _ENDS.items()}


@pytest.mark.parametrize("name", ["tanh", "tanh_fast", "softsign", "hardtanh", "leakyrelu", "tanhshrink", "identity"])
def test_the_sign_of_zero_is_kept_by_odd_functions(name):
    assert np.signbit(FUNCTIONS[name](np.array([-0.0, 0.0]))).tolist() == [True, False]


SLOPES_AT_KINKS = {
    "relu": {0: 0},
    "relu6": {0: 0, 6: 0},
    "hardtanh": {-1: 0, 1: 0},
    "hardsigmoid": {-3: 0, 3: 0},
    "hardswish": {-3: 0, 3: 1},
    "leakyrelu": {0: 0.01},
    "trelu": {1: 0},
    "softshrink": {-0.5: 0, 0.5: 0},
    "elu": {0: 1},
    "celu": {0: 1},
    "selu": {0: rules.SELU_SCALE * rules.SELU_ALPHA},
}


@pytest.mark.parametrize("name", SLOPES_AT_KINKS)
def test_slopes_at_kinks_are_those_of_the_page(name):
    for kink, slope in SLOPES_AT_KINKS[name].items():
        assert pb.grad(FUNCTIONS[name])(float(kink)) == pytest.approx(slope, rel=1e-15)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "swish", "gelu", "gelu_erf", "mish", "logcosh", "logsigmoid"])
def test_smooth_functions_have_their_second_derivative_at_0(name):
    slope = pb.grad(FUNCTIONS[name])
    step = 1e-5
    expected = (slope(step) - slope(-step)) / (2 * step)
    assert pb.grad(slope)(0.0) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_tanh_fast_in_single_precision_is_within_7_ulps_and_never_beyond_1():
    first, last = (np.float32(end).view(np.int32) for end in (2.0**-20, 10.0))
    x = np.arange(first, last, 61, dtype=np.int32).view(np.float32)  # three million of the numbers in between
    x = np.concatenate([x, np.float32([5.7014, 8.078, 8.124, 8.1241, 1e30])])
    y = pb.nn.tanh_fast(x)
    assert ulps(y, np.tanh(x.astype(np.float64))).max() < 7
    assert y.max() == 1
    assert (1 - y * y).min() >= 0
    np.testing.assert_array_equal(pb.nn.tanh_fast(-x), -y)


def test_tanh_fast_in_double_precision_is_within_5_ulps():
    x = np.concatenate([np.geomspace(1e-8, 30, 200_000), np.linspace(0.12, 0.2, 100_000)])
    assert ulps(pb.nn.tanh_fast(x), np.tanh(x)).max() < 5


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -80), (np.float64, -700)])
def test_sigmoid_fast_is_within_5_ulps(dtype, lowest):
    x = np.linspace(lowest, 40, 400_001).astype(dtype)
    assert ulps(pb.nn.sigmoid_fast(x), 1 / (1 + np.exp(-x.astype(np.float64)))).max() < 5
    np.testing.assert_array_equal(pb.nn.sigmoid_fast(dtype([-1000, 1000])), [0, 1])


def test_tanhshrink_and_logcosh_have_their_digits_near_0():
    x = np.geomspace(1e-6, 1e-2, 100)
    np.testing.assert_allclose(pb.nn.tanhshrink(x), x**3 / 3 - 2 * x**5 / 15 + 17 * x**7 / 315, rtol=1e-12)
    np.testing.assert_allclose(pb.nn.logcosh(x), x**2 / 2 - x**4 / 12 + x**6 / 45, rtol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "tanh_fast", "sigmoid", "sigmoid_fast", "softsign"])
def test_derivatives_from_a_saturated_output_are_right_absolutely(name):
    x = np.linspace(0, 40, 4001)
    exact = {"softsign": 1 / (1 + x) ** 2}.get(name)
    if exact is None:
        exact = np.exp(-x) / (1 + np.exp(-x)) ** 2 if "sigmoid" in name else 1 / np.cosh(x) ** 2
    (slopes,) = pb.vjp(FUNCTIONS[name], x)[1](np.ones_like(x))
    np.testing.assert_allclose(slopes, exact, rtol=0, atol=1e-15)


def test_rrelu_draws_a_slope_for_each_element():
    x = -np.ones(10_000, np.float32)
    y, pullback = pb.vjp(lambda x: pb.nn.rrelu(x, rng=np.random.default_rng(1)), x)
    assert y.dtype == np.float32
    assert -1 / 3 <= y.min() < y.max() <= -1 / 8
    np.testing.assert_array_equal(pullback(np.ones_like(y))[0], -y)
    np.testing.assert_array_equal(pb.nn.rrelu(-x), 1)
    with pb.tier("fused"):
        layer = pb.nn.dense_bias_act(np.ones((2, 3)), np.ones((3, 4)), act="rrelu")
    np.testing.assert_array_equal(layer, 3)


@pytest.mark.parametrize("parameter", [-0.5, 0.0, 0.5, 2])
@pytest.mark.parametrize("name", ["leakyrelu", "elu", "celu", "trelu", "softshrink"])
def test_parameters_of_any_sign_have_the_right_slopes(name, parameter):
    if (name == "celu" and parameter == 0) or (name == "softshrink" and parameter < 0):
        with pytest.raises(ValueError, match=name):
            FUNCTIONS[name](1.0, parameter)
        return
    x = np.array([-2.5, -0.7, -0.2, 0.2, 0.7, 2.5])
    step = 1e-6
    expected = (FUNCTIONS[name](x + step, parameter) - FUNCTIONS[name](x - step, parameter)) / (2 * step)
    for tier in pb.TIERS:
        with pb.tier(tier):
            act = activation(partial(FUNCTIONS[name], **{parameter_of(name): parameter}))
            (slopes,) = pb.vjp(lambda x, act=act: pb.nn.bias_act(act, x, np.zeros(6)), x)[1](np.ones(6))
        np.testing.assert_allclose(slopes, expected, rtol=1e-8, atol=1e-9)


def parameter_of(name):
    return {"trelu": "theta", "softshrink": "lam"}.get(name, "a")


@pytest.mark.parametrize("name", ["sigmoid", "relu", "gelu", "softplus"])
def test_complex_numbers_are_refused_where_they_have_no_order(name):
    with pytest.raises(TypeError, match="real numbers"):
        FUNCTIONS[name](np.array([1j, 2.0]))


def test_greek_names_and_functions_and_ufuncs_choose_the_same_rules():
    sigma = "\N{GREEK SMALL LETTER SIGMA}"
    assert activation(sigma) == activation("sigmoid") == activation(pb.nn.sigmoid)
    assert activation(f"hard{sigma}") == activation("hardsigmoid")
    assert activation(f"log{sigma}") == activation("logsigmoid")
    assert activation(np.tanh) == activation("tanh") == activation(pb.nn.tanh)
    assert activation(partial(pb.nn.elu, a=2.0)) == ActivationRule(rules.elu, (2.0,))
    assert not isinstance(activation("rrelu"), ActivationRule)
    assert not isinstance(activation(partial(pb.nn.elu, a=np.ones(3))), ActivationRule)
    with pytest.raises(TypeError, match="a function or its name, not a int"):
        activation(3)


@pytest.mark.parametrize("shape", [(300, 301), (301, 300)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_in_any_order_of_memory_give_what_small_ones_give(shape, order):
    x = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    y, pullback = pb.vjp(pb.nn.swish, x)
    (x_bar,) = pullback(np.cos(x))
    for row in (0, 17, shape[0] - 1):
        np.testing.assert_array_equal(y[row], pb.nn.swish(x[row].copy()))
        np.testing.assert_array_equal(x_bar[row], pb.vjp(pb.nn.swish, x[row].copy())[1](np.cos(x[row]))[0])
    np.testing.assert_array_equal(pb.nn.swish(x[::2, ::3]), y[::2, ::3])


def rows_of_the_page():
    page = Path(__file__).parents[3] / "docs" / "activations.md"
    table = page.read_text().split("| name | value |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        name, _, reads, kinks = (cell.strip() for cell in line.replace("\\|", "abs").strip("|").split("|"))
        yield name.strip("`"), reads, dict(map(_kink, kinks.split(", "))) if re.search(r"\d at", kinks) else {}


def _kink(text):
    slope, place = text.split(" at ")
    return float(place), float(slope)


PAGE = {name: (reads, kinks) for name, reads, kinks in rows_of_the_page()}


def test_the_page_names_every_activation():
    assert PAGE.keys() == FUNCTIONS.keys()


@every_activation
def test_the_page_says_what_the_derivative_reads(name):
    reads, _ = PAGE[name]
    assert reads_output_only(activation(name)) == reads.startswith("output")
    if "if" in reads:
        condition = reads.split("if ")[1]
        parameter = condition.split()[0]
        for value in (-1.0, 0.0, 1.0):
            holds = {">=": value >= 0, ">": value > 0}[condition.split()[1]]
            assert reads_output_only(activation(partial(FUNCTIONS[name], **{parameter: value}))) == holds


@every_activation
def test_the_page_says_the_slopes_at_kinks(name):
    _, kinks = PAGE[name]
    assert kinks == pytest.approx(SLOPES_AT_KINKS.get(name, {}), rel=1e-4)
