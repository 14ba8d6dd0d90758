"""Ufuncs, their keywords and methods, and Python's operators."""

import operator

import numpy as np
import pytest

import pullback as pb
from pullback.errors import NoRuleError, TracingError

X = np.array([[0.3, -0.7, 0.2], [0.9, -0.4, 0.6]])
POSITIVE = np.abs(X) + 0.5
ROW = np.array([1.31, 0.43, 2.17])

ANYWHERE = [
    np.negative, np.positive, np.square, np.reciprocal, np.absolute, np.fabs, np.exp, np.exp2, np.expm1, np.sin, np.cos,
    np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arctanh, np.deg2rad, np.radians,
    np.rad2deg, np.degrees, np.cbrt, np.sinc, np.conj, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.nan_to_num,
    np.real, np.unwrap,
]  # fmt: skip
RIGHT_OF_ZERO = [np.log, np.log2, np.log10, np.log1p, np.sqrt]
OF_TWO = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.float_power, np.maximum, np.minimum, np.fmax, np.fmin,
    np.arctan2, np.hypot, np.logaddexp, np.logaddexp2, np.copysign, np.remainder, np.fmod, np.floor_divide,
    np.heaviside,
]  # fmt: skip


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("function", ANYWHERE, ids=lambda f: f.__name__)
def test_of_one(function, like_numpy):
    like_numpy(function, X)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # since NumPy 2.5
def test_fix(like_numpy):
    like_numpy(np.fix, X)


@pytest.mark.parametrize("function", RIGHT_OF_ZERO, ids=lambda f: f.__name__)
def test_of_one_right_of_zero(function, like_numpy):
    like_numpy(function, POSITIVE)


def test_arccosh(like_numpy):
    like_numpy(np.arccosh, POSITIVE + 1)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("function", OF_TWO, ids=lambda f: f.__name__)
def test_of_two_with_broadcasting(function, like_numpy):
    like_numpy(function, POSITIVE, ROW)
    like_numpy(lambda a: function(a, 1.7), POSITIVE, fused=False)
    like_numpy(lambda b: function(1.7, b), ROW, fused=False)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "function",
    [
        np.divmod,
        np.modf,
        lambda x: np.frexp(x)[0],
        lambda x: np.ldexp(x, np.array([1, -2, 3])),
        lambda x: np.clip(x, -0.5, 0.5),
        lambda x: np.clip(x, None, 0.5),
        lambda x: np.clip(x, min=-0.5),
        lambda x: x.clip(-0.5, 0.5),
        lambda x: np.round(x, 1) + x,
        lambda x: x * x.round(),
        lambda x: np.add(x, x, dtype=np.float64),
        lambda x: np.multiply.outer(x, x[0]),
        lambda x: np.maximum.outer(x[0], x[1] + 0.05),
        lambda x: np.add.reduce(x) + np.add.accumulate(x)[1] + np.multiply.accumulate(x, axis=1)[0],
        lambda x: np.isnan(x) + np.isfinite(x) * x + np.isinf(x) + np.signbit(x),
        lambda x: x * ((x > 0) & (x < 0.5)) + x * ((x > 0) | ~(x < 0.5)) + x * ((x > 0) ^ (x > 0.5)),
        lambda x: np.logical_and(x > 0, x < 0.5) * x + np.logical_not(x) + np.logical_xor(x, x) + np.logical_or(x, 0),
        lambda x: np.sinc(x * 0.01) + np.sinc(3 * x),
        lambda x: np.nan_to_num(np.where(x > 0, x, np.nan), nan=2.0),
        lambda x: x * np.isclose(x, x + 1e-9) + np.allclose(x, x) + np.array_equal(x, x),
        lambda x: np.vecdot(x, x) + np.matvec(x @ x.T, x[:, 0]) + np.vecmat(x[:, 1], x @ x.T),
    ],
)
def test_of_their_own(function, like_numpy):
    like_numpy(function if not isinstance(function, np.ufunc) or function.nin == 1 else lambda x: function(x, 0.37), X)


@pytest.mark.parametrize(
    "op",
    [
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
        divmod,
    ],
)  # fmt: skip
def test_operators_and_their_reflections(op, like_numpy):
    like_numpy(lambda a, b: op(a, b), POSITIVE, ROW)
    like_numpy(lambda a: op(a, 1.7), POSITIVE, fused=False)
    like_numpy(lambda a: op(1.7, a), POSITIVE, fused=False)
    like_numpy(lambda a: op(POSITIVE * 1.1, a), POSITIVE, fused=False)
    value = op(2.5, 0.7)
    ours = []
    pb.grad(lambda a: ours.append(op(a, 0.7)) or a)(2.5)
    plain = ours[0] if isinstance(ours[0], tuple) else (ours[0],)
    expected = value if isinstance(value, tuple) else (value,)
    np.testing.assert_allclose([getattr(part, "value", part) for part in plain], expected)


def test_matmul_and_its_reflection(like_numpy):
    like_numpy(lambda a: a @ X.T + X @ a.T, X)


# --- edges -------------------------------------------------------------------------------------------------------------
def gradient(function, x):
    return pb.grad(lambda x: np.sum(function(x)))(np.asarray(x, float))


def test_powers_at_zero():
    np.testing.assert_array_equal(gradient(lambda x: x**2, [0.0]), [0])
    np.testing.assert_array_equal(gradient(lambda x: x**2.0, [0.0]), [0])
    np.testing.assert_array_equal(gradient(lambda x: x**1, [0.0]), [1])
    np.testing.assert_array_equal(gradient(lambda x: x**0, [0.0]), [0])
    np.testing.assert_array_equal(gradient(lambda x: x ** np.array([0.0, 1.0, 2.0]), [0.0, 0.0, 0.0]), [0, 1, 0])
    np.testing.assert_array_equal(gradient(lambda x: np.array([0.0, 0.0]) ** x, [2.0, 3.0]), [0, 0])
    np.testing.assert_array_equal(gradient(lambda x: (-2.0) ** np.array([2.0]) * x, [3.0]), [4])
    np.testing.assert_array_equal(gradient(lambda x: x**3, [-2.0]), [12])


def test_roots_at_zero_are_vertical():
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(gradient(np.sqrt, [0.0]), [np.inf])
        np.testing.assert_array_equal(gradient(np.cbrt, [0.0]), [np.inf])


def test_kinks_take_the_middle():
    np.testing.assert_array_equal(gradient(np.abs, [0.0, -0.0]), [0, 0])
    np.testing.assert_array_equal(gradient(lambda x: np.maximum(x, 0), [0.0]), [0.5])
    np.testing.assert_array_equal(gradient(lambda x: np.clip(x, -1, 1), [-2, -1, 0, 1, 2]), [0, 0.5, 1, 0.5, 0])
    np.testing.assert_array_equal(gradient(lambda x: np.hypot(x, 0.0), [0.0]), [0])
    np.testing.assert_array_equal(gradient(lambda x: np.maximum(x, x), [3.0]), [1])


def test_nan_in_the_branch_that_is_not_taken_stays_there():
    x = np.array([1.0, -1.0])
    safe = gradient(lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0), x)
    np.testing.assert_array_equal(safe, [1, 0])


def test_a_nan_beside_a_number():
    np.testing.assert_array_equal(gradient(lambda x: np.fmax(x, 2.0), [np.nan, 3.0, 1.0]), [0, 1, 0])
    np.testing.assert_array_equal(gradient(lambda x: np.nan_to_num(x), [np.nan, 3.0, np.inf]), [0, 1, 0])


def test_sums_of_exponentials_reach_to_infinity():
    np.testing.assert_array_equal(gradient(lambda x: np.logaddexp(x, 0.0), [-np.inf, np.inf, 1000.0]), [0, 1, 1])
    np.testing.assert_array_equal(gradient(lambda x: np.logaddexp(x, -np.inf), [-np.inf, 2.0]), [1, 1])


def test_sinc_is_smooth_at_zero():
    np.testing.assert_allclose(np.sinc(0.0), pb.value_and_grad(np.sinc)(0.0)[0])
    second = pb.grad(pb.grad(np.sinc))
    np.testing.assert_allclose(second(0.0), -(np.pi**2) / 3)
    np.testing.assert_allclose(pb.grad(pb.grad(second))(0.0), np.pi**4 / 5)


# --- what is refused -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.add(x, x, out=np.zeros((2, 3))), r"numpy.add\(…, out=…\) writes a traced value into a ndarray"),
        (lambda x: np.add(x, x, where=X > 0), "where=…"),
        (lambda x: np.exp(x, dtype=int), "dtype=int64"),
        (lambda x: np.add.at(np.zeros((2, 3)), 0, x), "numpy.add.at writes a traced value into a ndarray"),
        (lambda x: np.multiply.reduceat(x, [0, 1]), "numpy.multiply.reduceat has no rule"),
        (lambda x: np.subtract.reduce(x), "numpy.subtract.reduce has no rule"),
        (lambda x: np.nextafter(x, 1.0), "numpy.nextafter has no rule"),
    ],
)
def test_what_is_not_honoured_is_refused(function, message):
    with pytest.raises(TracingError, match=message):
        pb.grad(lambda x: np.sum(function(x)))(X)


def test_adding_to_a_plain_array_in_place_is_refused():
    def function(x):
        total = np.zeros((2, 3))
        total += x
        return np.sum(total)

    with pytest.raises(TracingError, match=r"numpy.add\(…, out=…\) writes a traced value into a ndarray"):
        pb.grad(function)(X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(operator.iadd(x, 1.0)))(X), np.ones((2, 3)))


def test_no_rule_names_the_function():
    with pytest.raises(NoRuleError, match="numpy.i0"):
        pb.grad(lambda x: np.sum(np.i0(x)))(X)


@pytest.mark.parametrize("tier", pb.TIERS)
def test_powers_of_truth_values_have_numpys_dtype(tier):
    functions = [
        lambda b, n: b**2,
        lambda b, n: b**n,
        lambda b, n: b**3,
        lambda b, n: b**b,
        lambda b, n: np.power(b, 2),
    ]
    for function in functions:
        plan = pb.compile(function, tier=tier)
        for b in (np.array([True, False]), np.True_, True):
            for n in (2, 3, 2):
                found, expected = plan(b, n), function(b, n)
                assert np.asarray(found).dtype == np.asarray(expected).dtype
                np.testing.assert_array_equal(found, expected)


OF_NUMBERS = [
    (lambda k: np.divide(1.0, k), 0.0),
    (lambda k: np.power(k, 0.5), -2.0),
    (lambda k: np.power(k, 2000.0), 2.0),
    (lambda k: np.remainder(k, 0.0), 2.5),
    (lambda k: np.floor_divide(k, 0), 3),
    (lambda k: np.add(k, k), 2**62),
    (lambda k: np.add(k, k), True),
    (lambda k: np.left_shift(k, 70), 2),
    (lambda k: np.absolute(k), -2),
    (lambda k: np.conjugate(k), True),
    (lambda k: np.conj(np.ones(2) > k), True),
    (lambda k: (np.ones(2) > np.add(k, [0, 1])).conj(), 0),
    (lambda k: np.dot(k, k), 2**62),
    (lambda k: np.inner(k, k), 2.5),
    (lambda k: np.kron(k, k), True),
    (lambda k: np.einsum(",->", k, k), 2**62),
    (lambda k: np.ones(2, np.float32) * np.multiply(k, k), 2.5),
    (lambda k: np.ones(2, np.float32) * (k * k), 2.5),
]


@pytest.mark.sample(every=4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(("function", "number"), OF_NUMBERS)
def test_a_ufunc_of_numbers_of_python_is_numpys(function, number, tier):
    expected = function(number)
    result = pb.compile(function, tier=tier)(number)
    np.testing.assert_array_equal(result, expected)
    assert (type(result), result.dtype) == (type(expected), expected.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quotient_of_numbers_by_name_is_differentiated_at_its_pole():
    assert pb.value_and_grad(lambda x: np.divide(1.0, x))(0.0) == (np.inf, -np.inf)
    with pytest.raises(ZeroDivisionError):
        pb.value_and_grad(lambda x: 1.0 / x)(0.0)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8"])
@pytest.mark.parametrize("bounds", [(-1, 1), (None, 2**64), (-(2**63), 3), (-(2**70), 2**70)])
def test_a_bound_beyond_the_dtype_bounds_nothing(dtype, bounds):
    for x in (np.array([3, 0, 1], dtype), np.array(3, dtype)):
        expected = np.clip(x, *bounds)
        result = pb.compile(lambda x: np.clip(x, *bounds), tier="fused")(x)
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "f2", "f4", "f8"])
@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2])
def test_sums_of_exponentials_have_the_dtype_of_numpys(ufunc, dtype):
    for x in (np.ones((3, 2), dtype), np.ones(1, dtype)):
        result, expected = pb.compile(ufunc.reduce, tier="fused")(x), ufunc.reduce(x)
        np.testing.assert_allclose(result, expected, rtol=2e-3)
        assert result.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f8"])
@pytest.mark.parametrize("function", [np.nan_to_num, np.angle, np.conj, lambda x: x.conj()])
def test_functions_of_real_numbers_have_numpys_dtype(function, dtype):
    x = np.array([1, 0, 3], dtype)
    plan = pb.compile(function, tier="fused")
    np.testing.assert_array_equal(plan(x), function(x))
    assert plan(x).dtype == function(x).dtype
    assert plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("tier", pb.TIERS)
def test_truth_values_have_no_sign(tier):
    plan = pb.compile(operator.pos, tier=tier)
    with pytest.raises(TypeError):
        plan(np.array([True, False]))
    assert plan(True) == 1
    assert plan(True) is not True


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("x", [np.ones(2, "f4"), np.ones(2, "i1"), 2.5])
def test_a_rounded_number_of_python_stays_one(x, tier):
    def function(x, k):
        return x * round(k)

    plan = pb.compile(function, tier=tier)
    for k in (3, 4, True, 2.5, 3.5, -5.5):
        found, expected = plan(x, k), function(x, k)
        np.testing.assert_array_equal(found, expected)
        assert type(found) is type(expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert pb.value_and_grad(lambda k: k * round(k))(2.5) == (5.0, 2.0)
