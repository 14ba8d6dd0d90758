"""Where the values of a program live."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.memory import plan_memory
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

X = np.random.default_rng(6).standard_normal((4, 6))


def memory_of(function, *args):
    graph, _ = record(lambda *traced: (list(function(*traced)), None), [type_of(arg) for arg in args], list(args))
    return plan_memory(simplify(graph, Stages(), lowered=True), 512)


@pytest.mark.parametrize(
    ("function", "copied"),
    [
        (lambda x: (np.exp(x),), ()),
        (lambda x: (np.exp(x)[None],), ()),  # all of it, in order
        (lambda x: (np.reshape(np.exp(x), (2, 12)),), ()),
        (lambda x: (np.transpose(np.sum(x, axis=1, keepdims=True)),), ()),
        (lambda x: (np.exp(x), np.exp(x)[None]), (1,)),  # it is returned under its own name as well
        (lambda x: (np.exp(x)[None], np.exp(x)), (0,)),
        (lambda x: (np.exp(x)[None], np.exp(x)[:, None]), (1,)),
        (lambda x: (np.exp(x)[:2],), (0,)),  # a part
        (lambda x: (np.exp(x)[::-1],), (0,)),
        (lambda x: (np.transpose(np.exp(x)),), (0,)),  # not in order
        (lambda x: (np.broadcast_to(np.exp(x), (3, 4, 6)),), (0,)),
        (lambda x: (x[None],), (0,)),  # the caller's
    ],
)
def test_a_view_of_all_of_a_result_is_returned_as_it_is(function, copied):
    assert memory_of(function, X).copied == copied
    results = pb.compile(function, tier="native")(X)
    for result, expected in zip(results, function(X), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-14, atol=1e-15)
