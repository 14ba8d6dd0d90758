"""pb.checkpoint in compiled functions, and scan with checkpoint_every: the same gradients from less memory."""

import numpy as np
import pytest

import pullback as pb
from pullback import trees

STEPS, SIZE = 256, 500


def states(w, h, xs, **options):
    def step(h, x):
        h = np.tanh(w * np.sin(h) + x)
        return h, (h * h, None)

    return pb.scan(step, h, xs, **options)


def total(w, h, xs, **options):
    last, (squares, _) = states(w, h, xs, **options)
    return np.sum(squares * squares) + np.sum(last)


@pytest.fixture
def arguments():
    rng = np.random.default_rng(0)
    return rng.normal(size=3), rng.normal(size=3), rng.normal(size=(11, 3))


def assert_same(ours, theirs):
    for mine, other in zip(trees.flatten(ours)[0], trees.flatten(theirs)[0], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [1, 3, 4, 11, 20])
def test_gradients_of_first_and_second_order_are_those_without(arguments, every, reverse):
    def loss(*args):
        return total(*args, reverse=reverse, checkpoint_every=every)

    def plain(*args):
        return total(*args, reverse=reverse)

    def curvature(function):
        return lambda *args: pb.jvp(lambda *args: pb.grad(function, wrt=(0, 1, 2))(*args), args, args)[1]

    gradient, expected = (pb.value_and_grad(f, wrt=(0, 1, 2)) for f in (loss, plain))
    assert_same(gradient(*arguments), expected(*arguments))
    plan = pb.compile(gradient, tier="fused")
    assert_same(plan(*arguments), expected(*arguments))
    assert plan.summary()["fallbacks"] == []
    assert_same(states(*arguments, reverse=reverse, checkpoint_every=every), states(*arguments, reverse=reverse))
    assert_same(pb.compile(curvature(loss), tier="fused")(*arguments), curvature(plain)(*arguments))


def long_loss(w, h, every):
    last, _ = pb.scan(lambda h, _: (np.tanh(w * np.sin(h)), None), h, length=STEPS, checkpoint_every=every)
    return np.sum(last)


@pytest.mark.parametrize("tier", ["unfused", "fused"])
def test_memory_grows_with_the_root_of_the_number_of_steps(peak_bytes, tier):
    w, h = np.ones(SIZE), np.ones(SIZE)
    root = int(np.sqrt(STEPS))

    def peak(every):
        gradient = pb.grad(lambda w, h: long_loss(w, h, every), wrt=(0, 1))
        run = gradient if tier == "unfused" else pb.compile(gradient, tier=tier)
        return peak_bytes(lambda: run(w, h))

    one_state = SIZE * 8
    everything, checkpointed = peak(None), peak(root)
    assert everything > 2 * STEPS * one_state
    assert checkpointed < 8 * 2 * root * one_state


def test_only_the_carries_between_segments_are_saved():
    graph = pb.trace(pb.grad(lambda h: long_loss(1.5, h, 16)))(np.ones(3)).graph
    rows = {var.type.shape[0] for node in graph.nodes if node.primitive.name == "scan" for var in node.outputs[1:]}
    assert rows <= {STEPS // 16, 3}


def test_what_is_checkpointed_is_computed_again_and_not_merged_with_the_first_time():
    def layer(x):
        return np.sin(np.exp(x))

    def count(function):
        plan = pb.compile(pb.value_and_grad(lambda x: np.sum(function(x))), tier="fused")
        plan(np.ones(3))
        text = plan.explain().split("# program")[0].rpartition("\ngraph(")[2]
        return text.count("= exp")

    assert count(layer) == 1
    assert count(pb.checkpoint(layer)) == 2


def test_a_checkpointed_function_has_every_derivative_and_batches():
    def layer(x, scale=2.0):
        return np.sin(scale * np.exp(x)), x * x

    def loss(function):
        return lambda x: np.sum(function(x, scale=1.5)[0] * function(x)[1])

    x = np.array([0.1, 0.2, 0.3])
    ours, plain = loss(pb.checkpoint(layer)), loss(layer)
    batch = np.stack([x, 2 * x])
    for transform in (pb.grad, pb.hessian, pb.jacobian, lambda f: lambda x: pb.jvp(f, [x], [x])):
        assert_same(pb.compile(transform(ours), tier="fused")(x), transform(plain)(x))
    assert_same(pb.compile(pb.vmap(pb.grad(ours)), tier="fused")(batch), pb.vmap(pb.grad(plain))(batch))


@pytest.mark.parametrize("every", [0, -1, 2.5, True])
def test_a_segment_has_a_length(every):
    with pytest.raises(pb.errors.ControlFlowError, match="checkpoint_every is"):
        pb.scan(lambda c, _: (c, None), 1.0, length=4, checkpoint_every=every)
