"""pb.fori_loop and pb.while_loop."""

import numpy as np
import pytest

import pullback as pb


def newton(a):
    """The square root, iterated until it no longer moves."""

    def moves(carry):
        x, before = carry
        return abs(x - before) > 1e-12

    def step(carry):
        x, _ = carry
        return 0.5 * (x + a / x), x

    return pb.while_loop(moves, step, (a, 0.0 * a))[0]


def power_iteration(matrix, v):
    def step(i, v):
        v = matrix @ v
        return v / np.sqrt(np.sum(v * v))

    v = pb.fori_loop(0, 60, step, v)
    return v @ matrix @ v


def test_newton_finds_the_root_and_its_derivative():
    value, gradient = pb.value_and_grad(newton)(2.0)
    assert value == pytest.approx(np.sqrt(2))
    assert gradient == pytest.approx(0.5 / np.sqrt(2))
    assert pb.jvp(newton, [2.0], [1.0])[1] == pytest.approx(0.5 / np.sqrt(2))


def test_the_second_derivative_of_newton():
    assert pb.grad(pb.grad(newton))(2.0) == pytest.approx(-0.25 * 2**-1.5)


def test_the_derivative_of_the_largest_eigenvalue_is_the_outer_product_of_its_vector():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    values, vectors = np.linalg.eigh(matrix)
    value, gradient = pb.value_and_grad(power_iteration)(matrix, np.ones(2))
    assert value == pytest.approx(values[-1])
    np.testing.assert_allclose(gradient, np.outer(vectors[:, -1], vectors[:, -1]), rtol=1e-8)


def test_fori_loop_counts_from_lower_to_upper():
    assert pb.fori_loop(2, 5, lambda i, seen: (*seen[1:], i), (0, 0, 0)) == (2, 3, 4)
    assert pb.fori_loop(5, 2, lambda i, x: x + 1, 0) == 0


def test_while_loop_may_run_no_step():
    assert pb.while_loop(lambda x: x < 0, lambda x: x - 1, 3) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.fori_loop(0, 1.5, lambda i, x: x, 0), "upper is 1.5; bounds are integers"),
        (
            lambda: pb.fori_loop(0, 2, lambda i, x: (x, x), 0),
            "the carry was one array and became (one array, one array)",
        ),
        (lambda: pb.while_loop(lambda x: x > 0, lambda x: x, np.ones(3)), "the condition is an array of shape (3,)"),
        (lambda: pb.while_loop(lambda x: x[0] > 0, lambda x: x[:2] - 1, np.ones(3)), "in step 0"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(call, message):
    with pytest.raises(pb.errors.ControlFlowError) as error:
        call()
    assert message in str(error.value)


def _scaled(x, matrix, n):
    """A quotient and an inverse that do not exist."""
    return pb.fori_loop(0, n, lambda i, c: c * np.sum(1.0 / x) + np.sum(np.linalg.inv(matrix)), np.sum(x) + 1.0)


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    "function",
    [
        _scaled,
        lambda x, matrix, n: pb.scan(lambda c, _: (_scaled(x, matrix, n), None), np.sum(x), np.zeros(2))[0],
        lambda x, matrix, n: pb.jvp(lambda x: _scaled(x, matrix, n), (x,), (x,))[0],
    ],
)
def test_nothing_is_computed_for_a_loop_that_takes_no_steps(function, tier):
    plan = pb.compile(function, tier=tier)
    assert plan(np.zeros(3), np.zeros((2, 2)), 0) == 1.0
    assert plan(np.ones(3), np.eye(2), 3) == pytest.approx(function(np.ones(3), np.eye(2), 3))
    assert tier == "unfused" or "runs on the tape" not in plan.explain()
    with pytest.raises(np.linalg.LinAlgError), np.errstate(all="ignore"):
        plan(np.zeros(3), np.zeros((2, 2)), 2)


def test_native_loops_compute_before_them_what_no_step_changes():
    def shrunk(a, x):
        return pb.while_loop(lambda x: np.sum(x * x) > 1e-3, lambda x: x - (a.T @ a) @ x, x)

    a, x = np.eye(8) * 0.5, np.ones(8)
    plan = pb.compile(shrunk, tier="native")
    np.testing.assert_allclose(plan(a, x), shrunk(a, x))
    (loop,) = [node for node in plan._latest().stages.graphs[-1][1].nodes if node.primitive.name == "while"]
    assert [node.primitive.name for node in dict(loop.params)["body"].nodes].count("matmul") == 1
