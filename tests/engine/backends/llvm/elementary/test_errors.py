"""Errors of the elementary functions on samples; `python -m benchmarks.elementary --exhaustive` looks at every single."""

import numpy as np
import pytest

F4, F8 = np.dtype("f4"), np.dtype("f8")
NAMES = (
    *("exp", "exp2", "exp10", "expm1", "log", "log1p", "log2", "log10"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
    *("expit", "log_expit", "softplus", "logit", "sqrt", "cbrt", "erf", "erfc", "ndtr"),
)
BOUND = 2.5


def worst(in_units, references, program, name, x):
    with np.errstate(all="ignore"):
        error = in_units(program(name, x), references.reference(name, x))
    place = int(np.argmax(error))
    return error[place], x[place]


def test_every_function_whose_error_is_measured_is_here(references):
    assert sorted(NAMES) == sorted(references.MEASURED)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("name", NAMES)
def test_singles_are_right_to_two_and_a_half_units(program, references, in_units, name):
    step = 4099 * 16
    x = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(F4)
    low, high = references.MEASURED[name]
    more = np.random.default_rng(0).uniform(low, high, 50_000).astype(F4)
    error, where = worst(in_units, references, program, name, np.concatenate([x, more]))
    assert error <= BOUND, where


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("name", NAMES)
def test_doubles_are_right_to_two_and_a_half_units(program, references, in_units, name):
    if not references.is_wider():
        pytest.skip("long doubles have no more digits than doubles here")
    rng = np.random.default_rng(1)
    low, high = references.MEASURED[name]
    near = np.exp(rng.uniform(-20, 3, 5000))
    x = np.concatenate(
        [
            rng.integers(0, 2**64, 5000, dtype=np.uint64).view(F8),
            near * rng.choice([-1.0, 1.0], 5000),
            rng.uniform(low / 16, high / 16, 5000),
            rng.uniform(low, high, 10_000),
        ]
    )
    error, where = worst(in_units, references, program, name, x)
    assert error <= BOUND, where


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("dtype", [F4, F8], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_edges_are_as_in_numpy(program, references, in_units, name, dtype):
    x = references.edges(dtype)
    y = program(name, x)
    with np.errstate(all="ignore"):
        reference = references.reference(name, x)
        error = in_units(y, reference)
        assert error.max() <= BOUND, x[np.argmax(error)]
        numpys = getattr(np, name, None)
        if numpys is not None:
            theirs = numpys(x)
            zero = y == 0
            assert np.array_equal(np.signbit(y[zero]), np.signbit(theirs[zero])), x[zero]
            assert np.array_equal(np.isinf(y), np.isinf(theirs)), x[np.isinf(y) != np.isinf(theirs)]
