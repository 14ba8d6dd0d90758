"""Eigenvalues, singular values and QR factors in native programs: as NumPy's, of any shape, and NumPy's errors."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.backends.native.kernels.linear import workspaces

pytestmark = pytest.mark.skipif(availability.why_not() is not None, reason="no native programs")

SQUARE = [(1, 1), (2, 2), (3, 3), (9, 9), (33, 33), (70, 70), (5, 4, 4), (2, 3, 9, 9)]
SHAPES = [(1, 1), (1, 5), (5, 1), (4, 3), (3, 4), (40, 3), (3, 40), (70, 65), (65, 70), (7, 4, 3), (2, 2, 3, 4)]


def matrices(*shape, dtype="f8"):
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


def native(function, *args):
    """The results of a plan, none of which came from the interpreter."""
    plan = pb.compile(function, tier="native")
    found = plan(*args)
    assert plan.summary()["fallbacks"] == []
    return found


def same(found, expected):
    """As far as it is settled: signs of vectors are not, and single precision may choose others."""
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        tolerance = 1e-11 if one.dtype == np.float64 else 1e-3
        np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=tolerance, atol=tolerance)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigenvalues_and_vectors_of_one_triangle_are_as_in_numpy(shape, dtype):
    a = matrices(*shape, dtype=dtype)  # not symmetric: the other triangle is not read
    for triangle in "LU":
        w, v = native(lambda a, triangle=triangle: np.linalg.eigh(a, triangle), a)
        same((w, v), np.linalg.eigh(a, triangle))
        same((native(lambda a, triangle=triangle: np.linalg.eigvalsh(a, triangle), a),), (w,))
        one = np.tril(a) if triangle == "L" else np.triu(a)
        whole = one + np.swapaxes(one, -1, -2) - np.eye(shape[-1], dtype=dtype) * a
        tolerance = 1e-12 if dtype == "f8" else 1e-4
        np.testing.assert_allclose(v * w[..., None, :] @ np.swapaxes(v, -1, -2), whole, atol=tolerance * shape[-1])


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_values_and_vectors_are_as_in_numpy(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    u, s, vh = native(lambda a: np.linalg.svd(a, full_matrices=False), a)
    same((u, s, vh), np.linalg.svd(a, full_matrices=False))
    same((native(np.linalg.svdvals, a),), (s,))
    tolerance = 1e-12 if dtype == "f8" else 1e-4
    np.testing.assert_allclose(u * s[..., None, :] @ vh, a, atol=tolerance)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr_factors_are_as_in_numpy(shape, dtype):
    a = matrices(*shape, dtype=dtype)
    q, r = native(np.linalg.qr, a)
    tolerance = 1e-12 if dtype == "f8" else 1e-4
    for one, other in zip((q, r), np.linalg.qr(a), strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance * 10)
    np.testing.assert_array_equal(r, np.triu(r))
    np.testing.assert_allclose(q @ r, a, atol=tolerance)


def decomposed(a):
    w, v = np.linalg.eigh(a)
    u, s, vh = np.linalg.svd(a)
    q, r = np.linalg.qr(a)
    return w, v, u, s, vh, q, r


def test_matrices_may_lie_in_any_order_and_with_gaps():
    a = matrices(6, 6)
    wide = np.zeros((6, 12))
    wide[:, ::2] = a
    plan = pb.compile(decomposed, tier="native")
    expected = plan(a)
    for given in (np.asfortranarray(a), wide[:, ::2], np.flip(np.flip(a).copy())):
        for one, other in zip(plan(given), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    transposed = pb.compile(lambda a: decomposed(a.T), tier="native")
    for one, other in zip(transposed(a.T.copy()), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_of_any_size_are_decomposed():
    for scale in (1e-300, 1e300):
        a = matrices(5, 5) * scale
        same((native(np.linalg.eigvalsh, a) / scale,), (np.linalg.eigvalsh(a) / scale,))
        same((native(np.linalg.svdvals, a) / scale,), (np.linalg.svdvals(a) / scale,))
    zero = np.zeros((4, 4))
    for one, other in zip(native(decomposed, zero), decomposed(zero), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("stack", [(), (5,)], ids=str)
def test_what_is_not_finite_ends_as_in_numpy_and_the_next_call_is_right(name, bad, stack):
    function = getattr(np.linalg, name)
    good = matrices(*stack, 4, 4)
    plan = pb.compile(function, tier="native")
    before = plan(good)
    wrong = np.array(good)
    wrong[(-1,) * len(stack)][2, 1] = bad
    try:
        expected = function(wrong)
    except np.linalg.LinAlgError as error:
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError, match=str(error)):
                plan(wrong)
    else:
        np.testing.assert_array_equal(
            np.hstack([np.ravel(x) for x in plan(wrong)]), np.hstack([*map(np.ravel, expected)])
        )
    for one, other in zip(plan(good), before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 0)], ids=str)
def test_matrices_without_elements_are_left_to_numpy(shape):
    a = np.zeros(shape)
    functions = [np.linalg.svdvals, lambda a: np.linalg.svd(a, full_matrices=False)]
    functions += [np.linalg.qr, np.linalg.eigh][: 2 if shape[-1] == shape[-2] else 1]
    for function in functions:
        for one, other in zip(pb.compile(function, tier="native")(a), function(a), strict=True):
            assert one.shape == other.shape


@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "cholesky"])
def test_matrices_of_whole_numbers_are_decomposed_as_floats(name):
    a = np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]])
    function = getattr(np.linalg, name)
    found, expected = pb.compile(function, tier="native")(a), function(a)
    same(*((y,) if name == "cholesky" else y for y in (found, expected)))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (50, 3), (40, 40), (130, 120)], ids=str)
def test_lapack_gets_at_least_the_room_that_its_algorithm_needs(shape, dtype):
    (rows, columns), least, dtype = shape, min(shape), np.dtype(dtype)
    for size in (rows, columns):
        assert workspaces.eigenvalues(size, dtype, vectors=True) >= (1 + 6 * size + 2 * size**2, 3 + 5 * size)
        assert workspaces.eigenvalues(size, dtype, vectors=False) >= (2 * size + 1, 1)
    values, integers = workspaces.singular_values(rows, columns, dtype, vectors=False)
    assert values >= 3 * least + max(rows, columns, 7 * least)
    vectors, _ = workspaces.singular_values(rows, columns, dtype, vectors=True)
    assert vectors >= 3 * least**2 + 7 * least
    assert integers == 8 * least
    assert workspaces.orthogonal(rows, least, dtype) >= least
