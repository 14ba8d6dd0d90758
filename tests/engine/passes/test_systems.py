"""Systems of equations in plans: one factorization for each matrix, triangles solved as they are, errors as NumPy's."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability


def rng():
    return np.random.default_rng(4)


def regular(*shape):
    return rng().normal(size=shape) + 2 * np.eye(shape[-1])


def positive(*shape):
    a = regular(*shape)
    return a @ np.swapaxes(a, -1, -2)


def rules_of(function, *args, tier="native"):
    """How often each rule is in the plan of value and gradient by all arguments."""
    plan = pb.compile(pb.value_and_grad(function, wrt=tuple(range(len(args)))), tier=tier)
    plan(*args)
    graph = [graph for name, graph in plan._last.stages.graphs if name != "native regions"][-1]
    found = {}
    for node in graph.nodes:
        found[node.primitive.name] = found.get(node.primitive.name, 0) + 1
    return found


def same_matrix_again(a, b):
    for _ in range(5):
        b = np.linalg.solve(a, b)
    return np.sum(b * b) + np.sum(np.linalg.inv(a)) + np.linalg.slogdet(a)[1] + np.linalg.det(a.T)


@pytest.mark.parametrize("size", [3, 30])
def test_everything_about_one_matrix_shares_one_factorization_forward_and_backward(size, native_only):
    found = rules_of(same_matrix_again, regular(size, size), np.ones(size))
    # The gradient of a larger determinant, which a singular matrix has too, needs the signs of its singular vectors.
    assert found["lu"] == (1 if size == 3 else 1 + 2)
    assert found["lu_solve"] == 5 + 5 + 1  # forward, with the transpose backward, and the inverse
    assert not {"solve", "inv", "slogdet", "det"} & found.keys()


def test_matrices_that_are_computed_alike_share_factors(native_only):
    def diffusion(k, u):
        for _ in range(4):
            u = np.linalg.solve(np.eye(6) + np.diag(k), u)
        return np.sum(u * u)

    assert rules_of(diffusion, np.ones(6), np.ones(6))["lu"] == 1


@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_the_interpreter_has_factors_where_two_solves_share_them(tier):
    def solved(a, b):
        return np.sum(np.linalg.solve(a, b) ** 2)

    shared = rules_of(solved, regular(20, 20), np.ones(20), tier=tier)
    assert (shared["lu"], shared["lu_solve"]) == (1, 2)
    assert "lu" not in rules_of(solved, regular(4, 4), np.ones(4), tier=tier)  # NumPy's solve is one short call
    stacks = rules_of(lambda a, b: np.sum(np.linalg.solve(a, b)), regular(5, 4, 4), np.ones((4, 1)), tier=tier)
    assert "lu" not in stacks  # NumPy goes over a stack in one call


def triangles(a, b):
    factor = np.linalg.cholesky(a)
    x = np.linalg.solve(factor.T, np.linalg.solve(factor, b))
    return np.sum(x * b) + np.sum(np.linalg.solve(np.tril(a), b)) + np.sum(np.linalg.solve(np.triu(a).T, b))


def test_what_the_program_shows_to_be_triangular_is_not_factored(native_only):
    found = rules_of(triangles, positive(5, 5), np.ones(5))
    assert "lu" not in found
    assert found["solve_triangular"] == 7  # the first step back is the solve for b that is there
    assert (found["cholesky"], found["cholesky_pull"]) == (1, 1)


def test_a_triangle_beyond_the_diagonal_is_no_triangle(native_only):
    found = rules_of(lambda a, b: np.sum(np.linalg.solve(np.tril(a, 1), b)), regular(4, 4), np.ones(4))
    assert "solve_triangular" not in found


def test_the_factors_of_a_matrix_that_no_step_changes_are_computed_before_the_loop(native_only):
    def steps(a, b):
        return np.sum(pb.scan(lambda x, _: (np.linalg.solve(a, x), None), b, length=6)[0] ** 2)

    assert rules_of(steps, regular(4, 4), np.ones(4))["lu"] == 1


def test_a_filter_written_as_a_loop_of_python_is_one_native_loop(native_only):
    def likelihood(a, r, observed):
        mean, spread, total = np.zeros(3), np.eye(3), 0.0
        for step in range(30):
            mean, spread = a @ mean, a @ spread @ a.T + np.eye(3)
            seen = spread + np.diag(r)
            missed = observed[step] - mean
            total = total + missed @ np.linalg.solve(seen, missed) + np.linalg.slogdet(seen)[1]
            gain = spread @ np.linalg.inv(seen)
            mean, spread = mean + gain @ missed, spread - gain @ spread
        return total

    args = regular(3, 3) / 3, np.ones(3), rng().normal(size=(30, 3))
    plan = pb.compile(pb.value_and_grad(likelihood, wrt=(0, 1, 2)))
    for found, expected in zip(plan(*args)[1], pb.grad(likelihood, wrt=(0, 1, 2))(*args), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert plan.summary()["fallbacks"] == []
    names = [node.primitive.name for node in plan._last.stages.graphs[-1][1].nodes]
    assert names.count("scan") == 2
    assert names.count("lu") < 5  # of steps that are not as the others; 30 as written


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("stack", [(), (11,)], ids=str)
def test_determinants_have_their_gradient_at_singular_matrices_too(size, stack):
    a = rng().normal(size=(*stack, size, size))
    a[..., -1, :] = a[..., 0, :] if size > 1 else 0
    plan = pb.compile(pb.grad(lambda a: np.sum(np.linalg.det(a))))
    np.testing.assert_allclose(plan(a), pb.grad(lambda a: np.sum(np.linalg.det(a)))(a), rtol=1e-9, atol=1e-12)
    assert bool(plan.summary()["fallbacks"]) == (availability.why_not() is not None)


def test_large_determinants_have_their_gradient_in_loops_and_in_tangents():
    def summed(a):
        def step(b, _):
            det = np.linalg.det(b)
            return 0.9 * b + 0.1 * det * np.eye(6), det

        return np.sum(pb.scan(step, a, None, length=4)[1])

    a = rng().normal(size=(6, 6))
    pb.testing.check_grads(summed, (a,))
    gradient = pb.compile(pb.grad(summed))
    np.testing.assert_allclose(gradient(a), pb.grad(summed)(a), rtol=1e-9, atol=1e-12)
    assert availability.why_not() or gradient.summary()["fallbacks"] == []
    along = pb.compile(lambda a: pb.jvp(pb.grad(np.linalg.det), (a,), (np.ones((6, 6)),))[1])
    np.testing.assert_allclose(along(a), pb.jvp(pb.grad(np.linalg.det), (a,), (np.ones((6, 6)),))[1], atol=1e-11)


@pytest.fixture
def native_only():
    if availability.why_not():
        pytest.skip(f"no native programs: {availability.why_not()}")


# --- values -----------------------------------------------------------------------------------------------------------------
FUNCTIONS = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "solve the transpose": lambda a, b: np.linalg.solve(np.swapaxes(a, -1, -2), b),
    "both": lambda a, b: np.linalg.solve(np.swapaxes(a, -1, -2), b) * np.linalg.solve(a, b),
    "inv": lambda a, b: np.linalg.inv(a) @ b,
    "slogdet": lambda a, b: np.linalg.slogdet(a)[1][..., None, None] * np.linalg.slogdet(a)[0][..., None, None] * b,
    "det": lambda a, b: np.linalg.det(a)[..., None, None] * b,
    "lower": lambda a, b: np.linalg.solve(np.tril(a), b),
    "upper": lambda a, b: np.linalg.solve(np.triu(a), b),
    "cholesky": lambda a, b: np.linalg.cholesky(a @ np.swapaxes(a, -1, -2)) @ b,
    "by the factor": lambda a, b: np.linalg.solve(np.linalg.cholesky(a @ np.swapaxes(a, -1, -2)), b),
}


def scaled(size, dtype, stack=()):
    """Well-conditioned, and so are its triangles; the largest numbers of some columns are not on the diagonal."""
    a = rng().normal(size=(*stack, size, size)) / size**0.5 + np.diag(np.linspace(1.0, 2.5, size))
    a[..., -1, 0] = 2.8
    return a.astype(dtype)


def agree(function, a, b, tier, tolerance):
    def loss(a, b):
        return np.sum(np.sin(function(a, b)))

    expected, slopes = pb.value_and_grad(loss, wrt=(0, 1))(a, b)
    value, found = pb.compile(pb.value_and_grad(loss, wrt=(0, 1)), tier=tier)(a, b)
    assert value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance * b.size)
    for slope, other in zip(found, slopes, strict=True):
        assert slope.dtype == other.dtype
        np.testing.assert_allclose(slope, other, rtol=tolerance, atol=tolerance * max(1, np.abs(other).max()))


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9, 17, 40, 70])
def test_systems_of_any_size_are_solved_as_the_tape_solves_them(name, size):
    tier = "native" if size != 5 else "stateful"
    if name == "det" and size > 9:
        return  # a number of hundreds of digits
    agree(FUNCTIONS[name], scaled(size, "f8"), rng().normal(size=(size, 2)), tier, 1e-10)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("stack", [(1,), (3,), (19,), (2, 4)], ids=str)
def test_stacks_of_any_shape_are_solved_as_the_tape_solves_them(name, stack):
    agree(FUNCTIONS[name], scaled(3, "f8", stack), rng().normal(size=(*stack, 3, 1)), "native", 1e-10)


@pytest.mark.parametrize(
    "shapes", [((4, 4), (5, 4, 2)), ((5, 4, 4), (4, 2)), ((2, 1, 4, 4), (3, 4, 9)), ((1, 12, 12), (3, 12, 1))], ids=str
)
def test_matrices_and_right_sides_of_different_stacks_broadcast(shapes):
    a, b = shapes
    agree(FUNCTIONS["both"], scaled(a[-1], "f8", a[:-2]), rng().normal(size=b), "native", 1e-10)


@pytest.mark.parametrize("name", ["both", "slogdet", "by the factor"])
@pytest.mark.parametrize("size", [4, 20])
def test_single_precision_stays_single(name, size):
    agree(FUNCTIONS[name], scaled(size, "f4"), rng().normal(size=(size, 2)).astype("f4"), "native", 2e-4)


@pytest.mark.parametrize("size", [4, 20])
def test_a_single_precision_matrix_with_a_double_right_side_is_solved_in_double_precision(size):
    a, b = scaled(size, "f4"), rng().normal(size=(size, 2))
    solved = pb.compile(np.linalg.solve)(a, b)
    np.testing.assert_allclose(solved, np.linalg.solve(a, b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [3, 24])
def test_matrices_may_lie_in_any_order_and_with_gaps(size):
    a, b = scaled(size, "f8"), rng().normal(size=(size, 3))
    wide = np.zeros((size, 2 * size))
    wide[:, ::2] = a
    solved = pb.compile(lambda a, b: (np.linalg.solve(a, b), np.linalg.cholesky(a @ a.T), np.linalg.slogdet(a)[1]))
    for given in (a, np.asfortranarray(a), wide[:, ::2], a[::-1][::-1]):
        for right in (b, np.asfortranarray(b), b[:, ::-1][:, ::-1]):
            expected = (np.linalg.solve(a, b), np.linalg.cholesky(a @ a.T), np.linalg.slogdet(a)[1])
            for found, other in zip(solved(given, right), expected, strict=True):
                np.testing.assert_allclose(found, other, rtol=1e-11, atol=1e-11)
    triangle = pb.compile(lambda a, b: np.linalg.solve(np.tril(a)[:, ::-1][:, ::-1].T, b))
    np.testing.assert_allclose(triangle(a, b), np.linalg.solve(np.tril(a).T, b), rtol=1e-11, atol=1e-11)


# --- what NumPy refuses ---------------------------------------------------------------------------------------------------------
@pytest.mark.sample(every=4)
@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize("stack", [(), (6,)], ids=str)
def test_what_has_no_answer_raises_as_in_numpy_and_the_next_call_is_right(tier, size, stack):
    good, b = scaled(size, "f8", stack), np.ones((size, 1))
    bad = np.array(good)
    bad[(-1,) * len(stack)] = 0
    for name, function in {
        "solve": lambda a: np.linalg.solve(a, b) + np.linalg.solve(a, 2 * b),
        "inv": np.linalg.inv,
        "lower": lambda a: np.linalg.solve(np.tril(a), b),
        "cholesky": lambda a: np.linalg.cholesky(a @ np.swapaxes(a, -1, -2)),
    }.items():
        plan = pb.compile(function, tier=tier)
        np.testing.assert_allclose(plan(good), function(good), rtol=1e-9, atol=1e-12, err_msg=name)
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError):
                plan(bad)
        np.testing.assert_allclose(plan(good), function(good), rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 20])
def test_determinants_of_singular_matrices_are_zero(size):
    plan = pb.compile(lambda a: (*np.linalg.slogdet(a), np.linalg.det(a)))
    for a in (np.zeros((size, size)), np.diag([0.0] + [2.0] * (size - 1)), np.diag([-3.0] * (size - 1) + [0.0])):
        np.testing.assert_array_equal(plan(a), (0.0, -np.inf, 0.0))
    odd = np.eye(size)[::-1] * 2
    np.testing.assert_allclose(plan(odd), (*np.linalg.slogdet(odd), np.linalg.det(odd)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("size", [3, 20])
def test_what_is_not_finite_goes_on_as_in_numpy(bad, size):
    a, b = scaled(size, "f8"), np.ones(size)
    a[1, 1] = bad
    with np.errstate(invalid="ignore"):
        expected = np.linalg.solve(a, b)
        # Which results are NaN depends on where pivots come from; that there are some does not.
        assert np.isnan(pb.compile(np.linalg.solve)(a, b)).any() == np.isnan(expected).any()
        plan = pb.compile(lambda a: np.linalg.slogdet(a)[1])
        np.testing.assert_array_equal(np.isfinite(plan(a)), np.isfinite(np.linalg.slogdet(a)[1]))


def test_pivots_of_equal_and_tiny_size_do_no_harm():
    plan = pb.compile(np.linalg.solve)
    for a in (
        [[0.0, 1.0], [1.0, 0.0]],
        [[1e-320, 1.0], [1.0, 1.0]],
        [[1e-300, 0.0], [0.0, 1e300]],
        [[1.0, 1.0], [1.0, -1.0]],
    ):
        np.testing.assert_allclose(plan(np.array(a), np.ones(2)), np.linalg.solve(a, np.ones(2)), rtol=1e-12)


def test_second_derivatives_go_through_factors():
    a, b = positive(4, 4), np.ones(4)

    def loss(a):
        factor = np.linalg.cholesky(a)
        return np.sum(np.linalg.solve(factor, b) ** 2) + np.linalg.slogdet(a)[1] + np.sum(np.linalg.inv(a))

    for tier in ("fused", "stateful", "native"):
        found = pb.compile(lambda a: pb.hvp(loss, a, np.eye(4) + 0.1), tier=tier)(a)
        for one, other in zip(found, pb.hvp(loss, a, np.eye(4) + 0.1), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_complex_systems_stay_with_the_interpreter():
    a, b = regular(3, 3) + 1j * np.eye(3), np.ones(3)
    plan = pb.compile(lambda a: np.sum(np.abs(np.linalg.solve(a, b)) ** 2))
    np.testing.assert_allclose(plan(a), np.sum(np.abs(np.linalg.solve(a, b)) ** 2))
