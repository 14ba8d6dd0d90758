"""Products of vectors, matrices and tensors, and Einstein's sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

RNG = np.random.default_rng(0)
V, W = RNG.normal(size=4), RNG.normal(size=4)
M, N = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
T, U = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(3, 4, 2))
C, D = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (np.dot, (V, W)),
        (np.dot, (M, V)),
        (np.dot, (M, N)),
        (np.dot, (T, V)),
        (np.dot, (T, N)),
        (np.dot, (V, U)),
        (np.dot, (M, U)),
        (np.dot, (T, U)),
        (lambda a, b: a.dot(b) + np.dot(2.0, b[0]), (M, N)),
        (np.vdot, (M, M * 2)),
        (np.inner, (V, W)),
        (np.inner, (M, V)),
        (np.inner, (T, M)),
        (np.outer, (V, M)),
        (lambda a, b: np.tensordot(a, b, 0), (V, C)),
        (lambda a, b: np.tensordot(a, b, 1), (M, N)),
        (lambda a, b: np.tensordot(a, b), (T, U[:, :, :1])),
        (lambda a, b: np.tensordot(a, b, ([1, 2], [0, 1])), (T, U)),
        (lambda a, b: np.tensordot(a, b, (0, 2)), (T, U)),
        (np.kron, (C, M)),
        (np.kron, (V, C)),
        (np.cross, (C, D)),
        (lambda a, b: np.cross(a, b, axis=0), (C.T, D.T)),
        (lambda a, b: np.cross(a, b[0], axisa=1, axisc=0), (C, D)),
        (np.convolve, (V, W[:3])),
        (lambda a, b: np.convolve(a, b, "same"), (W[:3], V)),
        (lambda a, b: np.convolve(a, b, "valid"), (V, W[:2])),
        (np.correlate, (V, W[:3])),
        (lambda a, b: np.correlate(a, b, "full"), (V[:2], W)),
        (lambda a, b: np.correlate(a, b, "same"), (V, W[:3])),
        (lambda a, b: np.correlate(a, b, "same"), (V[:3], W)),
        (np.polyval, (V, M)),
        (lambda x: np.vander(x), (V,)),
        (lambda x: np.vander(x, 3, increasing=True), (V,)),
        (lambda x: np.trace(x, axis1=1, axis2=2), (T,)),
        (np.vecdot, (T, M)),
        (np.matvec, (T, V)),
        (np.vecmat, (V, T.swapaxes(1, 2))),
        (lambda x, f: np.interp(x, [-2.0, -0.5, 0.4, 2.0], f), (V, W)),
        (lambda x, f: np.interp(x, [-0.5, 0.4], f[:2], left=0.0), (V, W)),
        (lambda p, f: np.interp([0.3, 1.2], p, f), (np.cumsum(np.abs(V)), W)),
    ],
)
def test_products(function, args, like_numpy):
    like_numpy(function, *args)


SUBSCRIPTS = [
    ("ij,jk->ik", (M, N)),
    ("ij,jk", (M, N)),
    ("ij,jk->ki", (M, N)),
    ("ij,ij->", (M, M)),
    ("ij,ij->i", (M, M)),
    ("ij,j", (M, V)),
    ("i,j->ij", (V, W)),
    ("i,i", (V, W)),
    ("ij->", (M,)),
    ("ij->j", (M,)),
    ("ij->ji", (M,)),
    ("ba", (M,)),
    ("ii", (M[:, :3],)),
    ("ii->i", (M[:, :3],)),
    ("iji->j", (RNG.normal(size=(2, 3, 2)),)),
    ("iii->i", (RNG.normal(size=(2, 2, 2)),)),
    ("...ij,...jk->...ik", (T, U.transpose(2, 1, 0)[:, :, :2])),
    ("...ij,jk", (T, N)),
    ("i...,i...->...", (T, T)),
    ("...->...", (T,)),
    ("bij,kj->bki", (T, M)),
    ("bij,bij,j->b", (T, T, V)),
    ("ij,jk,kl->il", (M, N, N.T)),
    ("a,b,c,a->bc", (V, W, V, W)),
    ("ij,kl->", (M, C)),
    ("ii,ij->j", (M[:, :3], M)),
    ("ab,ab,ab->ab", (M, M, M)),
    ("i, i -> i", (V, W)),
]


@pytest.mark.sample(every=5)
@pytest.mark.parametrize(("subscripts", "args"), SUBSCRIPTS, ids=[s for s, _ in SUBSCRIPTS])
def test_einsum(subscripts, args, like_numpy):
    like_numpy(lambda *xs: np.einsum(subscripts, *xs), *args)


def test_einsum_takes_lists_of_axes_and_paths(like_numpy):
    like_numpy(lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]), M, N)
    like_numpy(lambda a, b: np.einsum(a, [0, 1], b, [1, 2]), M, N)
    like_numpy(lambda a: np.einsum(a, [Ellipsis, 1], [Ellipsis]), T)
    path = ["einsum_path", (1, 2), (0, 1)]
    like_numpy(lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c, optimize=path), M, N, N.T)
    like_numpy(lambda a, b, c: np.einsum("ij,jk,kl->il", a, b, c, optimize=False), M, N, N.T)


def test_einsum_says_what_does_not_fit():
    for subscripts, message in (
        ("ijk,jk->i", "do not fit"),
        ("ij,jk->im", "no operand has"),
        ("ij->i", "names 1 operands"),
        ("...j,j...->", "no '...'"),
    ):
        with pytest.raises(ValueError, match=message):
            pb.vjp(lambda a, s=subscripts: np.einsum(s, a, N), M)
    with pytest.raises(ValueError, match="has length"):
        pb.vjp(lambda a: np.einsum("ij,ij", a, N), M)


def test_a_product_of_matrices_is_one_product():
    with pb.debug.counting() as counts:
        pb.grad(lambda a: np.sum(np.einsum("ij,jk->ik", a, N)))(M)
    assert (counts.evaluated["matmul"], counts.pulled["matmul"]) == (1, 1)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_einsum(data):
    letters = "abcd"
    lengths = dict(zip(letters, (2, 3, 1, 2), strict=True))
    inputs = data.draw(st.lists(st.text(letters, min_size=0, max_size=3), min_size=1, max_size=3))
    named = sorted(set("".join(inputs)))
    output = "".join(data.draw(st.lists(st.sampled_from(named), unique=True)) if named else [])
    rng = np.random.default_rng(0)
    args = [rng.normal(size=[lengths[letter] for letter in term]) for term in inputs]
    subscripts = f"{','.join(inputs)}->{output}"
    value, _ = pb.vjp(lambda *xs: np.einsum(subscripts, *xs) * 1.0, *args)
    np.testing.assert_allclose(value, np.einsum(subscripts, *args), atol=1e-12)
    pb.testing.check_grads(lambda *xs: np.einsum(subscripts, *xs) * 1.0, args, order=1)


@pytest.mark.parametrize("function", [lambda x: np.matvec(x[0], x[0]), lambda x: np.vecmat(x[0], x[0])])
def test_a_vector_in_the_place_of_a_matrix_is_refused(function):
    with pytest.raises(ValueError, match="operand is a stack of matrices"):
        pb.grad(lambda x: np.sum(function(x)))(np.ones((3, 3)))


OF_SMALL = {
    "ij->": lambda a: (a,),
    "ij->j": lambda a: (a,),
    "ii->": lambda a: (a[:, :2],),
    "ij,ij->": lambda a: (a, a),
    "ij,kj->ik": lambda a: (a, a),
    "ij,i,j->": lambda a: (a, a[:, 0], a[0]),
    "ij,k->i": lambda a: (a, a[0].astype("i1")),
}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u8", "?"])
@pytest.mark.parametrize("subscripts", OF_SMALL)
def test_einsum_of_small_integers_gives_the_dtype_of_numpy(subscripts, dtype, tier):
    operands = OF_SMALL[subscripts](np.array([[100, 7, 3], [90, 50, 0]]).astype(dtype))
    expected = np.einsum(subscripts, *operands)
    found = pb.compile(lambda *xs: np.einsum(subscripts, *xs), tier=tier)(*operands)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_einsum_casts_to_a_dtype_that_holds_all_values_only():
    for tier in pb.TIERS:
        with pytest.raises(TypeError, match="cast"):
            pb.compile(lambda a: np.einsum("ij->i", a, dtype="f4"), tier=tier)(M)
        assert pb.compile(lambda a: np.einsum("i->", a, dtype="f8"), tier=tier)(V.astype("f4")).dtype == "f8"


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("number", [2, 2.5, True, np.float32(2.5), np.int8(3)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_a_number_in_a_product_of_arrays_has_numpys_dtype(dtype, number, tier):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for function in (
        np.dot,
        np.inner,
        lambda a, b: np.dot(b, a),
        lambda a, b: np.inner(b, 2),
        lambda a, b: np.dot(2.5, a),
    ):
        result, expected = pb.compile(function, tier=tier)(x, number), function(x, number)
        np.testing.assert_array_equal(result, expected)
        assert (type(result), result.dtype) == (type(expected), expected.dtype)
