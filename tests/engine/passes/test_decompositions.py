"""Decompositions in plans: one for each matrix, vectors where they are read, and what is written in terms of them."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.errors import DifferentiationError
from pullback.rules.quotients import one_unless

TIERS = ("fused", "stateful", "native")
native_only = pytest.mark.skipif(availability.why_not() is not None, reason="no native programs")


def matrices(*shape):
    return np.random.default_rng(shape).normal(size=shape)


def decompositions_of(function, *args, tier="native"):
    """How often each decomposition is in the plan of a function, loops included."""
    plan = pb.compile(function, tier=tier)
    plan(*args)
    found = {}

    def count(graph):
        for node in graph.nodes:
            if node.primitive.name in ("eigh", "eigvalsh", "svd", "svdvals", "qr", "pinv", "lu"):
                found[node.primitive.name] = found.get(node.primitive.name, 0) + 1
            for _, body in node.bodies():
                count(body)

    count(plan._last.stages.graphs[-1][1])
    return found


def agree(function, *args, tolerance=1e-9):
    """Value and gradients of a plan of each tier are those of the tape."""
    gradient = pb.value_and_grad(lambda *args: np.sum(np.sin(function(*args))), wrt=tuple(range(len(args))))
    expected, slopes = gradient(*args)
    for tier in TIERS:
        plan = pb.compile(gradient, tier=tier)
        for _ in range(2):
            value, found = plan(*args)
            np.testing.assert_allclose(value, expected, rtol=tolerance)
            for one, other in zip(found, slopes, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * max(1, np.abs(other).max()))
    assert bool(plan.summary()["fallbacks"]) == (availability.why_not() is not None)


# --- one of each matrix -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tier", TIERS)
def test_eigenvalues_and_their_gradient_share_one_decomposition(tier):
    found = decompositions_of(
        pb.value_and_grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 3)), matrices(4, 4), tier=tier
    )
    assert found == {"eigh": 1}


@pytest.mark.parametrize("tier", TIERS)
def test_vectors_that_nobody_reads_are_not_computed(tier):
    for function, name in (
        (lambda a: np.linalg.eigh(a)[0] * np.linalg.eigvalsh(a), "eigvalsh"),
        (lambda a: np.linalg.svd(a)[1] + np.linalg.svdvals(a), "svdvals"),
        (lambda a: pb.scan(lambda h, _: (h + np.linalg.eigh(a * h[0])[0], None), np.ones(4), length=3)[0], "eigvalsh"),
    ):
        assert decompositions_of(function, matrices(4, 4), tier=tier) == {name: 1}


@native_only
def test_whatever_is_asked_of_the_singular_values_of_a_matrix_shares_one_decomposition():
    def asked(a, b):
        x, _, rank, s = np.linalg.lstsq(a, b)
        return (
            np.sum(x) * rank + np.sum(s) + np.sum(np.linalg.pinv(a)) + np.linalg.norm(a, 2) + np.linalg.matrix_rank(a)
        )

    gradient = pb.value_and_grad(asked, wrt=(0, 1))
    assert decompositions_of(gradient, matrices(5, 3), np.ones(5)) == {"svd": 1}
    agree(asked, matrices(5, 3), np.ones(5))


@native_only
def test_a_decomposition_of_what_no_step_changes_is_computed_before_the_loop():
    def steps(a, b):
        return pb.scan(lambda x, _: (np.linalg.pinv(a) @ x * np.linalg.eigvalsh(a @ a.T), None), b, length=4)[0]

    a, b = matrices(4, 4), np.ones(4)
    plan = pb.compile(pb.grad(lambda a, b: np.sum(steps(a, b)), wrt=(0, 1)))
    plan(a, b)
    names = [node.primitive.name for node in plan._last.stages.graphs[-1][1].nodes]
    assert (names.count("svd"), names.count("eigh")) == (1, 1)
    agree(steps, a, b)


@native_only
def test_the_triangle_of_qr_factors_is_solved_as_it_is():
    found = decompositions_of(pb.grad(lambda a: np.sum(np.linalg.qr(a)[0] ** 3)), matrices(6, 3))
    assert found == {"qr": 1}


# --- values and gradients ---------------------------------------------------------------------------------------------------
SHAPES = [(1, 1), (4, 4), (7, 3), (3, 7), (20, 20), (5, 4, 4), (2, 3, 2, 4)]


def vectors(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.matmul(u**2, s[..., None] * vh**2)


FUNCTIONS = {
    "svdvals": np.linalg.svdvals,
    "vectors": vectors,
    "q": lambda a: np.linalg.qr(a)[0],
    "r": lambda a: np.linalg.qr(a, "r"),
    "pinv": np.linalg.pinv,
    "rank": lambda a: np.linalg.matrix_rank(a)[..., None, None] * a,
    "nuclear": lambda a: np.linalg.norm(a, "nuc", axis=(-2, -1)),
}


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_any_shape_have_the_gradients_of_the_tape(name, shape):
    agree(FUNCTIONS[name], matrices(*shape))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("triangle", ["L", "U"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (6, 6), (30, 30), (5, 4, 4)], ids=str)
def test_eigenvalues_and_vectors_have_the_gradients_of_the_tape(shape, triangle):
    agree(
        lambda a: np.linalg.eigh(a, triangle)[1] ** 2 * np.linalg.eigvalsh(a, triangle)[..., None, :], matrices(*shape)
    )
    agree(
        lambda a: np.linalg.pinv(a, hermitian=True) * np.linalg.matrix_rank(a, hermitian=True)[..., None, None],
        matrices(*shape),
    )


def test_single_precision_stays_single():
    agree(lambda a: np.linalg.svdvals(a) + np.linalg.eigvalsh(a), matrices(4, 4).astype("f4"), tolerance=1e-3)
    agree(lambda a: np.linalg.qr(a)[1] @ np.linalg.pinv(a), matrices(5, 3).astype("f4"), tolerance=1e-3)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)], ids=str)
@pytest.mark.parametrize("rcond", [None, 0.5, 0.0, -1.0])
def test_least_squares_of_one_or_several_right_sides_have_the_gradients_of_the_tape(shape, rcond):
    for right in (np.cos(np.arange(shape[0])), matrices(shape[0], 2)):
        agree(lambda a, b: np.linalg.lstsq(a, b, rcond)[0], matrices(*shape), right)


@pytest.mark.parametrize("tier", ["unfused", *TIERS])
def test_columns_that_depend_on_others_count_for_nothing_in_gradients_of_least_squares(tier):
    thin = matrices(60, 2)
    a, b = thin @ matrices(2, 30), matrices(60)  # of rank 2: its other singular values are rounding errors

    def solution(a, b):
        return np.sum(np.linalg.lstsq(a, b)[0] ** 2)

    gradient = pb.grad(solution, wrt=1)
    found = (gradient if tier == "unfused" else pb.compile(gradient, tier=tier))(a, b)
    inverse = np.linalg.pinv(a, 1e-10)
    np.testing.assert_allclose(found, 2 * inverse.T @ inverse @ b, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("tier", TIERS)
def test_tolerances_are_numpys(tier):
    a = np.diag([1.0, 1e-3, 1e-9, 3e-16, 0.0])
    for function in (
        np.linalg.pinv,
        lambda a: np.linalg.pinv(a, 1e-2),
        lambda a: np.linalg.pinv(a, rtol=None),
        lambda a: np.linalg.pinv(-a, 1e-5, hermitian=True),
        lambda a: np.linalg.lstsq(a, np.ones(5))[0],
        lambda a: np.linalg.lstsq(a, np.ones(5), 1e-5)[0],
        np.linalg.matrix_rank,
        lambda a: np.linalg.matrix_rank(a, 1e-2),
        lambda a: np.linalg.matrix_rank(a, rtol=1e-5),
        lambda a: np.linalg.matrix_rank(-a, 1e-10, hermitian=True),
    ):
        np.testing.assert_allclose(pb.compile(function, tier=tier)(a), function(a), rtol=1e-12)
        tiny = a * 1e-200
        np.testing.assert_allclose(pb.compile(function, tier=tier)(tiny), function(tiny), rtol=1e-12)


def test_second_derivatives_are_those_of_the_tape():
    a, v = matrices(4, 4), matrices(4, 4).T

    def loss(a):
        w, vectors = np.linalg.eigh(a)
        return (
            np.sum(vectors[0] ** 2 * w)
            + np.linalg.norm(a, "nuc")
            + np.sum(np.linalg.qr(a)[1] ** 2)
            + np.sum(np.linalg.pinv(a))
        )

    expected = pb.hvp(loss, a, v)
    step = 1e-6
    slope = (pb.grad(loss)(a + step * v) - pb.grad(loss)(a - step * v)) / (2 * step)
    for tier in TIERS:
        plan = pb.compile(lambda a, v: pb.hvp(loss, a, v), tier=tier)
        np.testing.assert_allclose(plan(a, v), expected, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(plan(a, v), slope, rtol=1e-4, atol=1e-4 * np.abs(slope).max())
    assert bool(plan.summary()["fallbacks"]) == (availability.why_not() is not None)


def test_tangents_are_those_of_the_tape():
    a, v = matrices(2, 4, 3), matrices(4, 3)
    for function in (
        np.linalg.svdvals,
        np.linalg.pinv,
        lambda a: np.linalg.qr(a)[0],
        lambda a: np.linalg.svd(a, False)[2] ** 2,
    ):
        expected = pb.jvp(function, (a,), (v * np.ones_like(a),))
        plan = pb.compile(lambda a, v, function=function: pb.jvp(function, (a,), (v,)))
        for one, other in zip(plan(a, v * np.ones_like(a)), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


# --- what has no derivative, or is complex -----------------------------------------------------------------------------------
@pytest.mark.parametrize("tier", TIERS)
def test_values_that_are_repeated_have_a_gradient_as_a_whole_and_vectors_have_none(tier):
    again = np.diag([2.0, 1.0, 1.0])
    whole = pb.compile(
        pb.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2) + np.sum(np.linalg.svdvals(a) ** 2)), tier=tier
    )
    np.testing.assert_allclose(whole(again), 4 * again, atol=1e-14)
    weights = matrices(3, 3)
    for function in (lambda a: np.sum(weights * np.linalg.eigh(a)[1]), lambda a: np.sum(weights * np.linalg.svd(a)[0])):
        plan = pb.compile(pb.grad(function), tier=tier)
        good = matrices(3, 3)
        expected = pb.grad(function)(good)
        np.testing.assert_allclose(plan(good), expected, rtol=1e-9)
        for _ in range(2):
            with pytest.raises(DifferentiationError, match="repeated eigenvalues"):
                plan(again)
        np.testing.assert_allclose(plan(good), expected, rtol=1e-9)


@pytest.mark.parametrize("tier", TIERS)
def test_gaps_of_values_that_rounding_made_are_none(tier):
    q = np.linalg.qr(matrices(3, 3))[0]
    again = q @ np.diag([2.0, 1.0, 1.0]) @ q.T
    plan = pb.compile(pb.grad(lambda a: np.sum(np.linalg.eigh(a)[1] ** 3)), tier=tier)
    with pytest.raises(DifferentiationError, match="repeated eigenvalues"):
        plan(again)


@pytest.mark.parametrize("tier", ["unfused", *TIERS])
def test_the_second_derivative_of_a_norm_at_zero_is_refused(tier):
    def slope(x):
        return pb.hvp(np.linalg.norm, x, np.ones(3))

    slope = slope if tier == "unfused" else pb.compile(slope, tier=tier)
    np.testing.assert_allclose(slope(np.array([3.0, 0.0, 4.0])), np.array([0.032, 0.2, -0.024]), atol=1e-15)
    with pytest.raises(DifferentiationError):
        slope(np.zeros(3))


def test_one_is_given_unless_something_is_true():
    assert one_unless(np.bool_(False), dtype=np.dtype("f4")).dtype == np.float32
    with pytest.raises(DifferentiationError):
        one_unless(np.bool_(True), dtype=np.dtype("f4"))


@pytest.mark.parametrize("tier", TIERS)
def test_complex_matrices_are_decomposed_by_the_interpreter(tier):
    a = matrices(4, 3) + 1j * matrices(3, 4).T
    for function in (
        lambda a: np.sum(np.linalg.svdvals(a) ** 3),
        lambda a: np.sum(np.abs(np.linalg.pinv(a)) ** 2),
        lambda a: np.sum(np.linalg.eigvalsh(a[:3] + np.conj(a[:3].T)) ** 3) + np.linalg.matrix_rank(a),
        lambda a: np.sum(np.abs(np.linalg.eigh(a[:3] + np.conj(a[:3].T))[1]) ** 4),
        lambda a: np.sum(np.abs(np.linalg.lstsq(a, np.ones(4))[0])),
    ):
        expected = pb.grad(function)(a)
        np.testing.assert_allclose(pb.compile(pb.grad(function), tier=tier)(a), expected, rtol=1e-9, atol=1e-12)
