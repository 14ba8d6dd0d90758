"""Pooling as kernels, against the interpreter's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.backends.native import availability
from pullback.backends.native.linking import forced_width
from pullback.backends.native.linking.target import available_widths
from pullback.rules.pooling import max_pool, max_select, max_spread, mean_pool, mean_spread

if not availability.is_available():
    pytest.skip(str(availability.why_not()), allow_module_level=True)


@pytest.fixture(scope="session")
def check_all(run_node):
    """`check_all(x, window, stride, pad)`: both poolings and what belongs to their derivatives."""

    def check(primitive, operands, params):
        given_by_kernel = run_node(primitive, operands, params)
        wanted = primitive.evaluate(*operands, **params)
        tolerance = 16 * np.finfo(wanted.dtype).eps
        np.testing.assert_allclose(given_by_kernel, wanted, rtol=tolerance, atol=tolerance)

    def check_all(x, window, stride, pad):
        params = {"window": window, "stride": stride, "pad": pad}
        random = np.random.default_rng(x.size)
        mean, largest = (pool.evaluate(x, **params) for pool in (mean_pool, max_pool))
        v, dx = random.standard_normal(mean.shape).astype(x.dtype), random.standard_normal(x.shape).astype(x.dtype)
        check(mean_pool, (x,), params)
        check(max_pool, (x,), params)
        check(mean_spread, (v,), {"size": x.shape[2:], **params})
        check(max_select, (dx, x, largest), params)
        check(max_spread, (v, x, largest), params)

    return check_all


def normal(shape, dtype):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


GEOMETRIES = {
    "one axis": ((2, 3, 40), (2,), (2,), ((0, 0),)),
    "halves": ((2, 3, 8, 34), (2, 2), (2, 2), ((0, 0),) * 2),
    "what is left over": ((1, 2, 7, 9), (2, 2), (2, 2), ((0, 0),) * 2),
    "long rows of pairs": ((2, 3, 4, 75), (2, 2), (2, 2), ((0, 0),) * 2),
    "pairs of three axes": ((2, 2, 5, 3, 12), (3, 1, 2), (3, 1, 2), ((0, 0),) * 3),
    "padding beyond the pairs": ((1, 2, 7, 9), (2, 2), (2, 2), ((0, 1), (0, 1))),
    "overlapping": ((2, 2, 7, 20), (3, 3), (2, 2), ((1, 1),) * 2),
    "uneven": ((1, 2, 5, 6), (3, 2), (2, 1), ((1, 0), (0, 1))),
    "gaps between windows": ((1, 2, 8, 9), (2, 1), (3, 2), ((0, 0),) * 2),
    "elements of a phase that no window meets": ((2, 1, 7, 7), (4, 4), (3, 3), ((0, 0),) * 2),
    "everything": ((3, 2, 7, 7), (7, 7), (1, 1), ((0, 0),) * 2),
    "large windows": ((1, 1, 9, 40), (4, 4), (1, 3), ((2, 1),) * 2),
    "three axes": ((1, 2, 4, 3, 5), (2, 3, 2), (2, 1, 1), ((0, 0), (1, 1), (0, 1))),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    ("geometry", "dtype"), [*((name, "f4") for name in GEOMETRIES), ("overlapping", "f8"), ("halves", "f8")]
)
def test_every_geometry_gives_what_the_interpreter_gives(check_all, geometry, dtype):
    shape, *params = GEOMETRIES[geometry]
    check_all(normal(shape, dtype), *params)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("bits", available_widths())
@pytest.mark.parametrize("geometry", ["overlapping", "what is left over"])
def test_vectors_of_every_width_give_the_same(check_all, bits, geometry):
    shape, *params = GEOMETRIES[geometry]
    with forced_width(bits):
        check_all(normal(shape, "f4"), *params)


def test_elements_that_tie_share_and_a_nan_is_the_largest(check_all):
    x = np.round(normal((2, 3, 8, 20), "f4"))
    x[0, 0, 1, 2] = x[1, 2, 0, 0] = np.nan
    x[0, 1, :2, :4] = -np.inf
    check_all(x, (2, 2), (1, 2), ((1, 0), (0, 0)))
    check_all(x, (2, 2), (2, 2), ((0, 0), (0, 0)))


@pytest.mark.parametrize("geometry", ["overlapping", "halves"])
def test_operands_may_have_gaps(check_all, geometry):
    shape, *params = GEOMETRIES[geometry]
    check_all(normal((*shape[:-1], 2 * shape[-1]), "f4")[..., ::2], *params)


@st.composite
def poolings(draw):
    """Shapes and windows that have a place."""
    dims = draw(st.integers(1, 3))
    window = tuple(draw(st.integers(1, 4)) for _ in range(dims))
    pad = tuple((draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1))) for k in window)
    size = tuple(draw(st.integers(k, 8)) for k in window)
    stride = tuple(draw(st.integers(1, 3)) for _ in range(dims))
    return (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *size), window, stride, pad


@settings(max_examples=6, deadline=None)
@given(poolings(), st.sampled_from(["f4", "f8"]))
def test_small_poolings_give_what_the_interpreter_gives(check_all, problem, dtype):
    shape, *params = problem
    check_all(normal(shape, dtype), *params)
