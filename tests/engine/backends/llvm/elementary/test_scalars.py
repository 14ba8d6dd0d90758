"""The table of scalars: exact rows against NumPy, what is refused, conversions, and every row against its primitive."""

import ctypes
import functools
import importlib
import operator
import pkgutil
import sys

import numpy as np
import pytest

import pullback.rules
from pullback.backends.llvm.builder.lanes import DTYPES, Lanes
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.llvm.elementary import scalars
from pullback.backends.llvm.elementary.scalars import ROWS
from pullback.backends.native.linking import host_target, load
from pullback.core.kinds import Scalar
from pullback.rules import elementwise, rounding, shapes
from pullback.rules.activations import Activation
from pullback.rules.softmax import quiet_log

F4, F8, I4, I8, BOOL = DTYPES

NUMPY_NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negative",
    "identity": "positive",
}
EXACT = (
    *("add", "sub", "mul", "div", "neg", "square", "reciprocal", "absolute", "identity", "sign", "copysign"),
    *("heaviside", "maximum", "minimum", "fmax", "fmin", "floor", "ceil", "trunc", "rint"),
    *("floor_divide", "remainder", "fmod"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("isnan", "isinf", "isfinite", "signbit", "logical_and", "logical_or", "logical_xor", "logical_not"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"),
)
# Which of two zeros is the larger is nobody's business.
SIGN_OF_ZERO_IS_FREE = ("maximum", "minimum", "fmax", "fmin")


def numbers(dtype):
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind == "i":
        ends = np.iinfo(dtype)
        return np.array([0, 1, -1, 2, -2, 3, -7, 31, 32, 63, 64, 100, ends.max, ends.min, ends.min + 1], dtype)
    with np.errstate(all="ignore"):
        some = np.array([0, 0.5, 1, 1.5, 2, 2.5, 3, 0.1, 0.3, 7, 1e-45, 5e-324, 1e-38, 1e-308, 1e10, 2**24, 2**53 + 2])
        ends = np.array([3e38, 1e300, np.inf, np.nan])
        return np.concatenate([some, -some, ends, -ends]).astype(dtype)


def pairs(dtype, rng):
    a, b = (side.ravel() for side in np.meshgrid(numbers(dtype), numbers(dtype)))
    if dtype.kind != "f":
        return a, b
    quarters = rng.integers(-50, 50, 500) / 4
    tenths = rng.integers(-50, 50, 500) / 10
    close = rng.normal(size=500)
    more_a = np.concatenate([quarters, tenths, close, close * 1e6])
    more_b = np.concatenate([quarters[::-1], tenths[::-1], close * (1 + 1e-7), close[::-1]])
    return np.concatenate([a, more_a.astype(dtype)]), np.concatenate([b, more_b.astype(dtype)])


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", EXACT)
def test_exact_rows_are_numpys_to_the_last_bit(program, name):
    theirs = getattr(np, NUMPY_NAMES.get(name, name))
    rng = np.random.default_rng(0)
    tried = 0
    for dtype in DTYPES:
        if dtype.kind not in ROWS[name].kinds:
            continue
        operands = pairs(dtype, rng) if ROWS[name].operands == 2 else (numbers(dtype),)
        with np.errstate(all="ignore"):
            wanted = theirs(*operands)
        result_dtype = BOOL if ROWS[name].asks else dtype
        assert wanted.dtype == result_dtype
        got = program(name, *operands)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name} of {dtype}")
        if dtype.kind == "f" and not ROWS[name].asks and name not in SIGN_OF_ZERO_IS_FREE:
            zero = wanted == 0
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))
        tried += 1
    assert tried == sum(dtype.kind in ROWS[name].kinds for dtype in DTYPES)


@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
@pytest.mark.parametrize("name", ["arctan2", "hypot", "power"])
def test_functions_of_two_numbers_are_right_to_two_and_a_half_units(program, references, in_units, name, dtype):
    if dtype == F8 and not references.is_wider():
        pytest.skip("long doubles have no more digits than doubles here")
    rng = np.random.default_rng(0)
    a, b = pairs(dtype, rng)
    wide = np.exp(rng.uniform(-80, 80, (2, 3000))) * rng.choice([-1, 1], (2, 3000))
    near = rng.normal(size=(2, 3000))
    bases, exponents = np.exp(rng.uniform(-3, 3, 3000)), rng.uniform(-200, 200, 3000)
    whole = rng.uniform(-5, 5, 3000), rng.integers(-40, 40, 3000)
    x = np.concatenate([a, wide[0], near[0], bases, whole[0]]).astype(dtype)
    y = np.concatenate([b, wide[1], near[1], exponents, whole[1]]).astype(dtype)
    got = program(name, x, y)
    with np.errstate(all="ignore"):
        error = in_units(got, references.reference(name, x, y))
        theirs = getattr(np, name)(x, y)
    assert error.max() <= 2.5, (x[np.argmax(error)], y[np.argmax(error)])
    zero = (got == 0) & (theirs == 0)
    assert np.array_equal(np.signbit(got[zero]), np.signbit(theirs[zero]))


@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
@pytest.mark.parametrize("name", ["deg2rad", "rad2deg"])
def test_angles_are_numpys_to_rounding(program, name, dtype):
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(program(name, x), getattr(np, name)(x), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_in_the_logarithm_are_numpys_to_rounding(program, name):
    a, b = pairs(F8, np.random.default_rng(0))
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(a, b)
    np.testing.assert_allclose(program(name, a, b), wanted, rtol=1e-15, atol=1e-15)


# --- every row is a primitive's -------------------------------------------------------------------------------------
@functools.cache
def every_scalar():
    for found in pkgutil.walk_packages(pullback.rules.__path__, "pullback.rules."):
        importlib.import_module(found.name)
    found = {}
    for module in [module for name, module in sys.modules.items() if name.startswith("pullback.rules.")]:
        for value in vars(module).values():
            if isinstance(value, Scalar):
                assert found.setdefault(value.name, value) is value, f"two primitives are called {value.name}"
    return found


def test_rows_are_named_after_primitives_and_take_as_many_operands():
    primitives = every_scalar()
    others = {quiet_log.name: 1}  # elementwise, but a rule of its own kind
    assert set(ROWS) - set(others) <= set(primitives)
    wanted = {name: len(primitives[name].maps) for name in ROWS if name not in others} | others
    assert {name: row.operands for name, row in ROWS.items()} == wanted


@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
def test_rows_of_one_operand_are_their_primitives_to_rounding(program, dtype):
    primitives = every_scalar()
    x = numbers(dtype)
    x = np.concatenate([x, np.random.default_rng(0).normal(size=200).astype(dtype) * 4])
    tried = 0
    for name, row in ROWS.items():
        primitive = primitives.get(name)
        if row.operands != 1 or "f" not in row.kinds or not isinstance(primitive, Activation):
            continue
        with np.errstate(all="ignore"):
            wanted = primitive.evaluate(x)
        # Where a gate closes its argument is about -20, and what rounding changes there counts as often.
        rtol, atol = 100 * np.finfo(dtype).eps, float(np.finfo(dtype).tiny)
        np.testing.assert_allclose(program(name, x), wanted, rtol=rtol, atol=atol, err_msg=name)
        tried += 1
    assert tried >= 15


# --- what is refused ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("primitive", "dtypes", "result", "reason"),
    [
        (elementwise.add, (F4, F4), F4, None),
        (elementwise.add, (np.dtype("c16"),) * 2, np.dtype("c16"), "complex128"),
        (elementwise.add, (np.dtype("f2"),) * 2, np.dtype("f2"), "float16"),
        (elementwise.power, (I8, I8), I8, "power of int64 and int64"),
        (elementwise.square, (BOOL,), np.dtype("i1"), "int8"),
        (elementwise.sub, (BOOL, BOOL), BOOL, "sub of bool and bool"),
        (rounding.ldexp, (F8, I8), F8, "ldexp is not written"),
        (elementwise.add, (F4, F8), F8, "add of float32 and float64"),
        (elementwise.where, (BOOL, F4, F4), F4, None),
        (shapes.astype, (F8,), I4, None),
    ],
)
def test_what_is_not_computed_here_is_said(primitive, dtypes, result, reason):
    why = scalars.why_not(primitive, dtypes, result)
    assert (why is None) if reason is None else reason in why


def test_every_row_has_a_cost():
    primitives = every_scalar()
    for name, row in ROWS.items():
        assert scalars.cost(primitives.get(name, quiet_log), F4) >= 0
        assert scalars.cost(primitives.get(name, quiet_log), F8) >= row.cost


# --- constants, choices, conversions --------------------------------------------------------------------------------
def run(primitive, operands, result_dtype, size=16):
    """A primitive of arrays and numbers known when it is compiled, with the text of the program."""
    module = Module(host_target().vector_bits)
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    pointers = [("ptr", f"p{k}") for k in range(len(arrays) + 1)]
    function = module.function("run", pointers, internal=False)
    dtype = arrays[-1].dtype
    width = size
    values, dtypes, place = [], [], 0
    for x in operands:
        own = x.dtype if isinstance(x, np.ndarray) else dtype
        lanes = Lanes(function, own, width)
        values.append(lanes.load(f"%p{place}") if isinstance(x, np.ndarray) else lanes.constant(x))
        place += isinstance(x, np.ndarray)
        dtypes.append(own)
    result = scalars.compute(primitive, function, width, values, dtypes, result_dtype)
    Lanes(function, result_dtype, width).store(result, f"%p{place}")
    out = np.zeros(size, result_dtype)
    loaded = load(module.text())
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (place + 1))(loaded.address("run"))
    call(*(x.ctypes.data for x in arrays), out.ctypes.data)
    return out, module.text()


@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 5, 9, 64, 65, -1, -2, -3, -9, 0.5, -0.5, 1.5, 2.5, np.inf, np.nan])
def test_powers_with_known_exponents_are_right(in_units, references, exponent, dtype):
    rng = np.random.default_rng(0)
    x = np.concatenate([[0.0, -0.0, 1.0, -1.0, np.inf, np.nan, 1e-30], rng.normal(size=9)]).astype(dtype)
    if isinstance(exponent, float):
        x = np.abs(x)  # the root of -infinity is NaN, its power 1/2 infinite; NumPy's operator takes the root
    got, text = run(elementwise.power, (x, exponent), dtype)
    with np.errstate(all="ignore"):
        wanted = references.reference("power", x, np.full_like(x, exponent))
        assert in_units(got, wanted).max() <= 2.5
    assert ("0x3FF71547652B82FE" in text) == (exponent in (65, 2.5, np.inf) or np.isnan(exponent))  # 1 / ln 2


@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
@pytest.mark.parametrize("base", [2.0, 3.0, -2.0, 0.0, 1.0, np.inf])
def test_powers_of_known_bases_are_right(in_units, references, base, dtype):
    y = np.array([0.0, -0.0, 1, -1, 2, -3, 0.5, -0.5, 10.25, -20.75, 100, -100, 1e30, np.inf, -np.inf, np.nan], dtype)
    got, _ = run(elementwise.power, (base, y), dtype)
    with np.errstate(all="ignore"):
        assert in_units(got, references.reference("power", np.full_like(y, base), y)).max() <= 2.5


@pytest.mark.parametrize("width", [1, 4])
def test_constants_are_known_and_nothing_else(width):
    function = Module(256).function("f", [])
    for dtype, value in ((F4, 0.1), (F8, -0.0), (F8, np.inf), (I4, -3), (I8, 2**60), (BOOL, True), (BOOL, False)):
        lanes = Lanes(function, dtype, width)
        known = lanes.known(lanes.constant(value))
        assert known == (np.float32(value) if dtype == F4 else value)
        assert type(known) is type(value)
    for unknown in ("%v1", "zeroinitializer", "poison", "<i64 0, i64 1, i64 2, i64 3>"):
        assert Lanes(function, I8, width).known(unknown) is None


def test_a_square_is_one_product():
    _, text = run(elementwise.power, (np.ones(16), 2.0), F8)
    assert text.count("fmul") == 1


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_an_extremum_with_a_known_number_keeps_nan_in_one_choice(name):
    x = np.array([np.nan, -1.0, 0.0, 2.0] * 4)
    for operands in ((x, 0.5), (0.5, x)):
        got, text = run(getattr(elementwise, name), operands, F8)
        np.testing.assert_array_equal(got, getattr(np, name)(*operands))
        assert text.count("select") == 1


@pytest.mark.parametrize("dtype", [F4, F8, I8, BOOL], ids=str)
def test_where_takes_anything_as_a_question(dtype):
    x = np.array([0, 1, 0, 1] * 4).astype(dtype)
    a, b = np.arange(16.0), -np.arange(16.0)
    np.testing.assert_array_equal(run(elementwise.where, (x, a, b), F8)[0], np.where(x, a, b))


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions_are_numpys(dtype, to):
    x = np.resize(numbers(dtype), 48)
    for start in (0, 16, 32):
        part = np.ascontiguousarray(x[start : start + 16])
        with np.errstate(all="ignore"):
            wanted = part.astype(to)
        np.testing.assert_array_equal(run(shapes.astype, (part,), to)[0], wanted)


def test_integers_divide_like_python():
    a = np.array([7, -7, 7, -7] * 4)
    b = np.array([2, 2, -2, -2] * 4)
    assert run(rounding.floor_divide, (a, b), I8)[0].tolist() == list(map(operator.floordiv, a.tolist(), b.tolist()))
    assert run(rounding.remainder, (a, b), I8)[0].tolist() == list(map(operator.mod, a.tolist(), b.tolist()))
