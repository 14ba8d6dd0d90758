"""Transposes of products become products of transposes."""

from collections import Counter

import numpy as np

import pullback as pb
from pullback.core.types import type_of
from pullback.passes.transposed_products import transpose_products
from pullback.traces.recorder import record

rng = np.random.default_rng(1)
A, B = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))


def transposed(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return [node.primitive.name for node in transpose_products(graph).nodes]


def test_a_transposed_product_is_the_product_of_the_transposes():
    assert transposed(lambda a, b: (a @ b).T, A, B) == ["transpose", "transpose", "matmul"]


def test_a_product_that_is_read_as_it_is_stays():
    def both(a, b):
        c = a @ b
        return np.sum(c) + c.T

    assert Counter(transposed(both, A, B))["transpose"] == 1


def test_products_of_vectors_and_stacks_stay():
    stack = rng.normal(size=(5, 2, 3))
    assert transposed(lambda a, b: np.transpose(a @ b, (0, 2, 1)), stack, B) == ["matmul", "transpose"]
    assert transposed(lambda a, b: (a @ b).T, A, B[:, 0].copy()) != ["transpose", "transpose", "matmul"]


def test_a_gradient_by_weights_is_written_where_it_is_returned():
    plan = pb.compile(pb.grad(lambda w, x: np.sum(np.tanh(x @ w.T) ** 2)), tier="native")
    w, x = rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    expected = pb.grad(lambda w, x: np.sum(np.tanh(x @ w.T) ** 2))(w, x)
    np.testing.assert_allclose(plan(w, x), expected, rtol=1e-12)
    assert plan.summary()["copies"] == 0
