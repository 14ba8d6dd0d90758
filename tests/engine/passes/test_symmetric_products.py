"""Products of a matrix and its own transpose are computed by half."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.symmetric_products import LEAST_ROWS, halve_symmetric
from pullback.traces.recorder import record

rng = np.random.default_rng(6)
X, Y = rng.normal(size=(2, LEAST_ROWS + 5, LEAST_ROWS + 9))
LARGE = rng.normal(size=(5 * LEAST_ROWS + 3, 2 * LEAST_ROWS))


def halved(function, *args):
    graph = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))[0]
    return graph, halve_symmetric(graph)


def multiplications_of(graph):
    products = [node for node in graph.nodes if node.primitive.name == "matmul"]
    return sum(node.outputs[0].type.size * node.inputs[0].type.shape[1] for node in products)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("function", "x", "part"),
    [
        (lambda x: x @ x.T, X, 0.8),
        (lambda x: x.T @ x, X, 0.8),
        (lambda x: (0.5 * x) @ x.T, X, 0.8),
        (lambda x: -x @ (x.T * x[0, 0]), X, 0.8),
        (lambda x: np.tanh(x @ x.T) @ x, X, 0.9),
        (lambda x: x @ x.T, LARGE, 0.7),
    ],
)
def test_a_quarter_and_more_of_a_symmetric_product_is_copied(function, x, part, dtype):
    graph, new = halved(function, x)
    assert multiplications_of(new) <= part * multiplications_of(graph)
    assert new.outputs == graph.outputs
    x = x.astype(dtype)
    result = pb.compile(function, tier="native")(x)
    tolerance = 1e-12 if dtype == "f8" else 1e-3
    np.testing.assert_allclose(result, function(x), rtol=tolerance, atol=tolerance)


def test_what_is_copied_is_equal_to_its_mirror_image():
    for x, half in ((X, 24), (LARGE, 88)):
        product = pb.compile(lambda x: x @ x.T, tier="native")(x)
        np.testing.assert_array_equal(product[:half, half:], product[half:, :half].T)
        # Corners are computed whole, where the order of a sum depends on the width of vectors.
        np.testing.assert_allclose(product, product.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, y: x @ y.T, (X, Y)),
        (lambda x, y: x[:, : len(x)] @ x[:, : len(x)], (X, Y)),
        (lambda x, y: (x * y) @ x.T, (X, Y)),
        (lambda x, y: (x * y[0]) @ x.T, (X, Y)),
        (lambda x, y: x @ x.T, (X[: LEAST_ROWS - 1], Y)),
        (lambda x, y: x @ x.T, (X[:, : LEAST_ROWS - 1], Y)),
        (lambda x, y: x @ x.T, (LARGE[:, : LEAST_ROWS + 1], Y)),  # few steps
        (lambda x, y: (x + 1) @ x.T, (X, Y)),
    ],
)
def test_other_products_stay(function, args):
    graph, new = halved(function, *args)
    assert new is graph


def test_gradients_through_symmetric_products_in_loops_are_right():
    def loss(x):
        for _ in range(8):
            gram = x @ x.T
            x = np.tanh(gram @ x / 50)
        return np.sum(x**2)

    plan = pb.compile(pb.value_and_grad(loss), tier="native")
    value, gradient = plan(X)
    expected_value, expected = pb.value_and_grad(loss)(X)
    np.testing.assert_allclose(value, expected_value, rtol=1e-11)
    np.testing.assert_allclose(gradient, expected, rtol=1e-8, atol=1e-11)
