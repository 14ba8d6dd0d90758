"""Primitives of several results: through recording, merging, planning and running."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.primitive import Primitive


class _SumAndDifference(Primitive):
    results = 2

    def evaluate(self, *operands, **params):
        a, b = operands
        return a + b, params["weights"][0] * (a - b)

    def infer(self, *types, **params):
        return (types[0], types[0])

    def pull(self, needed, y_bar, y, operands, params):
        plus, minus = (0.0 if part is None else part for part in y_bar)
        minus = params["weights"][0] * minus
        return (plus + minus if needed[0] else None, plus - minus if needed[1] else None)

    def push(self, tangents, y, operands, params):
        da, db = (0.0 if tangent is None else tangent for tangent in tangents)
        return (da + db, params["weights"][0] * (da - db))


@pytest.fixture
def both():
    primitive = _SumAndDifference("sum_and_difference")
    yield lambda a, b, weight=2.0: primitive(a, b, weights=np.array([weight]))
    Primitive.table.pop("sum_and_difference")


A, B = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])


def compiled(function, *args):
    plan = pb.compile(function, tier="fused")
    plan(*args)
    assert plan.summary()["fallbacks"] == []
    return plan


def test_both_results_are_used_and_differentiated(both):
    def function(a, b):
        plus, minus = both(np.tanh(a), b)
        return np.sum(plus * np.exp(minus))

    gradient = pb.value_and_grad(function, wrt=(0, 1))
    plan = compiled(gradient, A, B)
    for ours, theirs in zip(plan(A, B)[1], gradient(A, B)[1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_result_nobody_reads_leaves_its_buffer_to_others(both):
    plan = compiled(lambda a, b: np.sum(np.exp(both(a, b)[1])), A, B)
    assert plan.summary()["arrays"] == 2
    np.testing.assert_allclose(plan(A, B), np.sum(np.exp(2 * (A - B))))


def test_equal_applications_are_merged_and_others_are_not(both):
    def function(a, b):
        return np.sum(both(a, b)[0] * both(a, b)[1]) + np.sum(both(a, b, 3.0)[1])

    plan = compiled(function, A, B)
    text = plan.explain()
    assert text.partition("# program")[2].count("sum_and_difference(") == 2
    assert " at 0x" not in text
    np.testing.assert_allclose(plan(A, B), function(A, B))
