"""Every rule on device arrays over CPU tensors: values and derivatives, in both modes and two orders, are NumPy's."""

import os

import numpy as np
import pytest
from tests.engine.cuda.on_the_host import ON_THE_HOST

import pullback as pb
from pullback import control, nn, rules
from pullback.core.cases import ALL, Case
from pullback.rules import special
from pullback.transforms import elementwise_maps

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
eager = pytest.importorskip("pullback.devices.cuda.eager")

assert all((rules, special, control, elementwise_maps, nn))  # importing them fills the table

#: Where the arrays lie: "cuda" on a machine that has one.
DEVICE = os.environ.get("PULLBACK_TEST_DEVICE", "cpu")


def _name(case: Case) -> str:
    shapes = ",".join("x".join(map(str, x.shape)) or "number" for x in case.operands())
    return f"{case.primitive.name}({shapes}){case.because and ': ' + case.because}"


every_case = pytest.mark.parametrize("case", ALL, ids=_name)


def _moves(x):
    return x.dtype.kind == "f"


def _function(case, operands):
    """The rule as a function of its moving operands; the others lie where `operands` do."""

    def function(*moving):
        values = iter(moving)
        return case.primitive(*[next(values) if _moves(x) else x for x in operands], **dict(case.params))

    return function


class _Both:
    """A case on NumPy arrays, and the same on device arrays."""

    def __init__(self, case, dtype=np.float64):
        operands = [x.astype(dtype) if _moves(x) else x for x in case.operands()]
        there = pb.put(operands, DEVICE)
        self.function, self.moving = _function(case, operands), [x for x in operands if _moves(x)]
        self.function_there, self.moving_there = _function(case, there), [x for x in there if _moves(x)]


def _agree(there, here, rtol):
    here = np.asarray(here)
    assert there.on_device
    assert (there.shape, there.dtype) == (here.shape, here.dtype)
    largest = np.max(np.abs(here), initial=1)
    np.testing.assert_allclose(pb.fetch(there), here, rtol=rtol, atol=rtol * largest)


@every_case
def test_values_and_both_modes_are_those_of_numpy(case):
    both, rng = _Both(case), np.random.default_rng(5)
    y, pullback = pb.vjp(both.function, *both.moving)
    y_there, pullback_there = pb.vjp(both.function_there, *both.moving_there)
    _agree(y_there, y, 1e-10)
    y_bar = rng.normal(size=np.shape(y))
    for x_bar_there, x_bar in zip(pullback_there(pb.put(y_bar, DEVICE)), pullback(y_bar), strict=True):
        _agree(x_bar_there, x_bar, 1e-9)
    moves = [rng.normal(size=x.shape) for x in both.moving]
    dy = pb.jvp(both.function, both.moving, moves)[1]
    _agree(pb.jvp(both.function_there, both.moving_there, pb.put(moves, DEVICE))[1], dy, 1e-9)


@every_case
def test_second_order_is_that_of_numpy(case):
    both = _Both(case)
    weights = np.random.default_rng(2).normal(size=np.shape(both.function(*both.moving)))

    def derivative(function, weights, moving):
        every = tuple(range(len(moving)))

        def norm(*xs):
            return sum(np.sum(g * g) for g in pb.grad(lambda *xs: np.sum(weights * function(*xs)), wrt=every)(*xs))

        return pb.grad(norm, wrt=every)(*moving)

    here = derivative(both.function, weights, both.moving)
    there = derivative(both.function_there, pb.put(weights, DEVICE), both.moving_there)
    for x_bar_there, x_bar in zip(there, here, strict=True):
        _agree(x_bar_there, x_bar, 1e-7)


SINGLE_IS_REFUSED = {"scatter", "scatter_add", "put_along", "on_diagonal"}  # their dtype is a parameter of the case


@every_case
def test_single_precision_stays_single(case):
    """PyTorch's promotion is not NumPy's: results have the type that the rule infers, whatever it gives."""
    if case.primitive.name in SINGLE_IS_REFUSED:
        return
    both = _Both(case, np.float32)
    y = both.function(*both.moving)
    _agree(both.function_there(*both.moving_there), y, 2e-4)


@every_case
def test_what_runs_on_the_host_is_told_and_known(case):
    both = _Both(case)
    eager.DEVICE.on_the_host.clear()
    both.function_there(*both.moving_there)
    assert set(eager.DEVICE.on_the_host) == {case.primitive.name} & ON_THE_HOST


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values_are_those_of_numpy(dtype):
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -2.5, 1e30, 1e-40], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(x, x))
    there = pb.put(a, DEVICE), pb.put(b, DEVICE)
    binary = [
        np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.fmax, np.fmin, np.arctan2, np.hypot,
        np.power, np.copysign, np.less, np.greater_equal, np.equal, np.logaddexp, np.heaviside, np.logical_and,
    ]  # fmt: skip
    unary = [
        np.sign, np.sqrt, np.exp, np.log, np.tanh, np.abs, np.floor, np.ceil, np.trunc, np.rint, np.square, np.expm1,
        np.log1p, np.isnan, np.isfinite, np.signbit, np.cbrt, np.reciprocal, np.logical_not, np.negative, np.sin,
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        for function in binary:
            np.testing.assert_allclose(pb.fetch(function(*there)), function(a, b), rtol=1e-5, err_msg=function.__name__)
        for function in unary:
            np.testing.assert_allclose(pb.fetch(function(there[0])), function(a), rtol=1e-5, err_msg=function.__name__)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.mean, np.cumsum, np.max, np.any, np.argsort, np.sqrt])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "complex64"])
def test_dtypes_of_results_are_those_of_numpy(function, dtype):
    if function is np.argsort and dtype == "complex64":
        return  # no stable order is promised
    x = np.array([1, 0, 3]).astype(dtype)
    here, there = function(x), pb.fetch(function(pb.put(x, DEVICE)))
    assert np.asarray(there).dtype == np.asarray(here).dtype
    np.testing.assert_allclose(there, here, rtol=2e-3)


@pytest.mark.parametrize(
    "key",
    [
        2, -1, (slice(None), 1), slice(4, 0, -2), (..., None, slice(None, None, -1)), (slice(1, 1), 0), (None, 3),
        (np.array([0, 2, 2, -1]),), (slice(None), np.array([[1], [0]])), (np.array([1, 3]), slice(None, None, -2), 1),
        (np.array([1, 3]), 0), (slice(3, 0, -1), np.array([2, 2, 0])), (1, slice(None), np.array([0, 1])),
        (slice(None), None, np.array([0, 3])), (np.array([1, 3]), None, np.array([2, -1])), (None, np.array([4, 1]), slice(1, 3)),
    ],
    ids=str,
)  # fmt: skip
def test_keys_read_and_write_what_they_do_in_numpy(key):
    x = np.arange(60.0).reshape(5, 4, 3)
    there = pb.put(x, DEVICE)
    np.testing.assert_array_equal(pb.fetch(there[key]), x[key])
    value = np.random.default_rng(0).normal(size=x[key].shape)

    def loss(x, value):
        y = x * 1
        y[key] = value
        y[key] += x[key]
        return np.sum(y * y * np.arange(60).reshape(5, 4, 3))

    here = pb.value_and_grad(loss, wrt=(0, 1))(x, value)
    np.testing.assert_allclose(pb.fetch(pb.value_and_grad(loss, wrt=(0, 1))(there, pb.put(value, DEVICE))[0]), here[0])
    for ours, theirs in zip(pb.grad(loss, wrt=(0, 1))(there, pb.put(value, DEVICE)), here[1], strict=True):
        np.testing.assert_allclose(pb.fetch(ours), theirs)


def test_a_position_out_of_bounds_is_numpys_error():
    x = pb.put(np.ones((2, 3)), DEVICE)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 with size 3"):
        x[:, np.array([0, 3])]
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 with size 3"):
        x[:, None, np.array([0, 3])]
    with pytest.raises(IndexError, match="index -4 is out of bounds"):
        np.take_along_axis(x, pb.put(np.array([[-4], [0]]), DEVICE), 1)
