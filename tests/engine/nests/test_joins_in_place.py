"""Parts of joined arrays that are made where they belong."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.memory import plan_memory
from pullback.backends.nests.views import Views
from pullback.core.types import type_of
from pullback.ir.strides import contiguous_strides
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

RNG = np.random.default_rng(3)
X, Y, W = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 4)), RNG.normal(size=(4, 4))


def lowered(function, *args):
    def several(*traced):
        results = function(*traced)
        return (list(results) if isinstance(results, tuple) else [results]), None

    graph, _ = record(several, [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def placed(function, *args):
    """By name of the node, the values that are parts of other memory: where they begin, and by what strides they lie."""
    graph = lowered(function, *args)
    memory = plan_memory(graph, 512)
    found = {}
    for node in graph.nodes:
        for var in node.outputs:
            access = memory.kernels.views.access(var)
            if var in memory.kept and access.root is not var:
                found[node.primitive.name] = (access.offset, access.strides)
    check(function, *args)
    return found


def check(function, *args):
    native, expected = (pb.compile(function, tier=tier)(*args) for tier in ("native", "fused"))
    several = isinstance(native, tuple)
    for one, other in zip(*((native, expected) if several else ([native], [expected])), strict=True):
        single = min(x.dtype.itemsize for x in args) == 4
        # A few roundings at the size of the largest: what is left of two that nearly cancel has no better digits.
        rounding = 0 if single else 4 * np.finfo(float).eps * np.max(np.abs(other), initial=0)
        np.testing.assert_allclose(one, other, rtol=1e-6 if single else 1e-12, atol=rounding)


def test_rows_and_columns_are_written_where_they_are_joined():
    assert placed(lambda x, y: np.concatenate([np.exp(x), np.tanh(y)]), X, Y) == {
        "exp": (0, (4, 1)),
        "tanh": (24, (4, 1)),
    }
    assert placed(lambda x, y: np.concatenate([np.exp(x), np.tanh(y)], axis=1), X, Y) == {
        "exp": (0, (8, 1)),
        "tanh": (4, (8, 1)),
    }


def test_products_and_sums_are_written_where_they_are_joined():
    def function(x, w):
        return np.concatenate([x @ w, np.exp(x), np.sum(x, axis=0, keepdims=True)])

    assert placed(function, X, W) == {"matmul": (0, (4, 1)), "exp": (24, (4, 1)), "sum": (48, (4, 1))}


def test_gradients_of_several_shapes_are_made_in_the_one_array_they_are_packed_into():
    def function(x, w):
        return np.concatenate([np.reshape(np.transpose(x) @ x, 16), np.sum(w, axis=0), np.reshape(w @ w, 16)])

    found = lowered(function, X, W)
    memory = plan_memory(found, 512)
    places = [memory.kernels.views.access(node.outputs[0]) for node in found.nodes if node.primitive.name == "matmul"]
    assert sorted(access.offset for access in places) == [0, 20]
    check(function, X, W)


def test_what_somebody_else_gave_is_copied():
    assert placed(lambda x, y: np.concatenate([x, np.exp(y)]), X, Y) == {"exp": (24, (4, 1))}


def test_what_is_returned_as_well_is_copied():
    def function(x, y):
        z = np.exp(x)
        return z, np.concatenate([z, np.tanh(y)])

    assert placed(function, X, Y) == {"tanh": (24, (4, 1))}


def test_what_is_joined_twice_is_there_once_and_copied_once():
    def function(x):
        y = np.exp(x)
        return np.concatenate([y, y, np.square(y)])

    found = placed(function, X)
    assert found["square"] == (48, (4, 1))
    assert found["exp"][0] in (0, 24)

    def two(x):
        y = np.exp(x)
        return np.concatenate([y, x]), np.concatenate([x, y], axis=1)

    assert list(placed(two, X)) == ["exp"]


def test_a_joined_array_is_a_part_of_another_one():
    def function(x, y):
        return np.concatenate([np.tanh(y), np.concatenate([np.exp(x), np.square(y)])])

    assert placed(function, X, Y) == {
        "tanh": (0, (4, 1)),
        "exp": (24, (4, 1)),
        "square": (48, (4, 1)),
        "concatenate": (24, (4, 1)),
    }


def test_another_dtype_is_converted_by_a_copy():
    def function(x, y):
        return np.concatenate([np.exp(x), np.tanh(y)])

    single = X.astype("f4")
    assert placed(function, single, Y) == {"tanh": (24, (4, 1))}


def test_columns_that_are_seen_as_rows_elsewhere_are_copied():
    def function(x, y):
        z = np.exp(x)
        return np.concatenate([z, np.tanh(y)], axis=1), np.sum(np.reshape(z, (4, 6)) @ np.ones((6, 2)))

    assert placed(function, X, Y) == {"tanh": (4, (8, 1))}


def test_columns_are_read_again_where_they_are():
    def function(x, y):
        z = np.exp(x)
        return np.concatenate([z, np.tanh(y)], axis=1), np.transpose(z) @ y + z[:4] * y[:4]

    assert placed(function, X, Y) == {"exp": (0, (8, 1)), "tanh": (4, (8, 1))}


def test_a_product_is_written_as_a_copy_of_a_view_of_it_wants_it():
    def heads(x, w):  # (head, row, column) > (row, head, column) > rows
        product = x @ w
        return np.reshape(np.transpose(product, (1, 0, 2)), (6, 12))

    w = RNG.normal(size=(3, 4, 4))
    graph = lowered(heads, X, w)
    memory = plan_memory(graph, 512)
    (product,) = (node.outputs[0] for node in graph.nodes if node.primitive.name == "matmul")
    access = memory.kernels.views.access(product)
    assert access.root is not product
    assert access.strides == (4, 12, 1)
    assert memory.nbytes == 0
    check(heads, X, w)


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_joined_parts_of_random_programs_are_right(seed, axis):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=3)

    def function(*values):
        choices = np.random.default_rng(seed)
        made = list(values)
        for _ in range(6):
            parts = [made[int(choices.integers(len(made)))] for _ in range(3)]
            several = [
                (np.tanh, np.square, lambda p: p, lambda p: p * np.sum(p, axis=-1, keepdims=True))[
                    int(choices.integers(4))
                ](part)
                for part in parts
            ]
            joined = np.concatenate(several, axis=axis)
            start = int(choices.integers(2 * sizes[axis]))
            taken = (*[slice(None)] * axis, slice(start, start + int(sizes[axis])))
            made += [joined[taken] * 0.5, several[0] + np.tanh(joined[taken])]
        return np.concatenate(made[-4:], axis=axis), made[-2]

    args = [rng.normal(size=sizes) for _ in range(2)]
    check(function, *args)


def test_parts_share_the_bytes_of_what_they_are_joined_to():
    def function(x, y):
        return np.sum(np.concatenate([np.exp(x), np.tanh(y)]) @ np.ones((4, 2)))

    graph = lowered(function, X, Y)
    memory = plan_memory(graph, 512)
    (joined,) = (node.outputs[0] for node in graph.nodes if node.primitive.name == "concatenate")
    assert memory.kernels.views.access(joined).strides == contiguous_strides(joined.type.shape)
    assert memory.nbytes < 2 * joined.type.nbytes


def test_a_join_moves_only_what_is_a_view_of_its_parts(monkeypatch):
    """Finding every view anew for every join takes most of the time of compiling a program of many joins."""
    entered = []
    enter = Views.enter
    monkeypatch.setattr(Views, "enter", lambda self, node: (entered.append(node), enter(self, node))[1])

    mix = RNG.normal(size=(6, 8))

    def function(steps):
        def joining(x):
            for _ in range(steps):
                x = mix @ np.concatenate([np.sin(x).T, W @ x.T]) @ X
            return x

        return joining

    def work(steps):
        graph = lowered(function(steps), X)
        entered.clear()
        plan_memory(graph, 512)
        return len(entered)

    few, many = work(10), work(40)
    assert 0 < many <= 5 * few
    check(function(3), X)
