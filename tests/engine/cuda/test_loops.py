"""Loops and branches on a device: each body is a program of its own, and steps ask for nothing, wait for nothing, and are one graph."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import LateDevice  # noqa: E402
from tests.engine.cuda.test_steady import noted  # noqa: E402

from pullback.backends.cuda import loops  # noqa: E402
from pullback.backends.cuda.program import MOST_NODES  # noqa: E402

RNG = np.random.default_rng(0)
W, H, XS = 0.5 * RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=(10, 3))
TIERS = ["fused", "stateful", "native"]


def _network(w, h, xs):
    """Rows of 24 bytes, which kernels do not read as they lie; a result for each step, and the last."""

    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, (h * h, np.sum(h))

    h, (squares, sums) = pb.scan(step, h, xs)
    return np.sum(squares[::2]) + np.sum(sums * sums) + np.sum(h)


def _backwards(w, h, xs):
    return np.sum(pb.scan(lambda c, x: (c * x + w[0], c), h, xs, reverse=True)[1] ** 2)


def _turning(w, h, xs):
    """Two values that change places: a step that wrote over what it still reads would be wrong."""
    (a, b), rows = pb.scan(lambda c, x: ((c[1] + x, c[0] * 0.9), c[0]), (h, w[0]), xs)
    return np.sum(a * 2 - b) + np.sum(rows * rows)


def _counted(w, h, xs):
    """A loop that reads and writes at the number of its step."""
    return np.sum(pb.fori_loop(0, 10, lambda k, c: np.sin(c) + xs[k] * w[k % 3], h))


def _stored(w, h, xs):
    """Rows that steps store at the number of the step, and read at another."""

    def step(k, rows):
        rows = rows * 1.0
        rows[k % 3] = np.sin(rows[(k + 1) % 3]) + xs[k] * h
        return rows

    return np.sum(pb.fori_loop(0, 7, step, w) ** 2)


def _nested(w, h, xs):
    def outer(c, x):
        c, _ = pb.scan(lambda d, y: (np.tanh(d + y * x), None), c, w)
        return c, c[:2]

    c, rows = pb.scan(outer, h, xs)
    return np.sum(c) + np.sum(rows**2)


def _of_a_list(w, h, xs):
    """Numbers of the host that differ from step to step."""
    return np.sum(pb.scan(lambda c, k: (np.sin(c) + c[k], None), h, np.array([0, 2, 1, 1]))[0])


def _of_numbers(w, h, xs):
    """A carry that begins as a Python number, and ends on the device."""
    total, means = pb.scan(lambda c, x: (0.5 * c + np.sum(x * h), c), 1.0, xs)
    return total + np.sum(means**2)


def _choosing(w, h, xs):
    """The branch that is not taken would give NaN, and a derivative of NaN."""

    def step(c, x):
        return pb.cond(
            np.sum(x) > 0, lambda c, x: np.sqrt(np.sum(x)) * c, lambda c, x: c - np.exp(x) * w[0], c, x
        ), None

    return np.sum(pb.scan(step, h, xs)[0] ** 2)


def _switching(w, h, xs):
    branches = [np.sin, np.cos, lambda c: c * w[1]]
    return np.sum(pb.switch(np.argmax(h), branches, h) ** 2)


def _again(w, h, xs):
    return np.sum(pb.checkpoint(lambda h: np.tanh(w @ np.tanh(w @ h)))(h) ** 2) + np.sum(xs)


def _in_segments(w, h, xs):
    return np.sum(pb.scan(lambda c, x: (np.sin(c) + x, None), h, xs, checkpoint_every=3)[0])


def _of_no_steps(w, h, xs):
    h, rows = pb.scan(lambda c, x: (c * x, c), h, xs[:0])
    return np.sum(h**2) + np.sum(rows)


def _of_views(w, h, xs):
    """Operands that do not lie as kernels read them."""
    turned = np.swapaxes(np.reshape(xs, (3, 10)), 0, 1)
    return np.sum(pb.scan(lambda c, x: (np.tanh(c * x[::-1]), None), h[::-1], turned)[0])


PROGRAMS = [
    _network, _backwards, _turning, _counted, _stored, _nested, _of_a_list, _of_numbers, _choosing, _switching, _again,
    _in_segments, _of_no_steps, _of_views,
]  # fmt: skip

#: Those that choose by a value, which a graph cannot: they run step by step in the tier native.
LOOKING = {"_switching"}


def _agree(ours, theirs, rtol=1e-11):
    for one, other in zip(pb.trees.flatten(pb.fetch(ours))[0], pb.trees.flatten(theirs)[0], strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def _gradient(loss):
    return pb.value_and_grad(loss, wrt=(0, 1, 2))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("loss", PROGRAMS, ids=lambda loss: loss.__name__[1:])
def test_values_and_gradients_are_those_of_the_host(loss, tier):
    """With dead memory made useless, twice on other values, results of the first call held; of native three calls before."""
    gradient = _gradient(loss)
    plan = pb.compile(gradient, tier=tier)
    with pb.debug.poisoning():
        held = [plan(*pb.put((scale * W, H, XS), "cpu")) for scale in (1.0, 0.5, 1.0, 0.5, 0.25)]
        for scale, ours in zip((1.0, 0.5, 1.0, 0.5, 0.25), held, strict=True):
            _agree(ours, gradient(scale * W, H, XS))
    summary = plan.summary()
    assert summary["hash"] is not None, summary["fallbacks"]
    if tier == "native":
        assert bool(summary["fallbacks"]) == (loss.__name__ in LOOKING), summary["fallbacks"]
        assert bool(summary["graph"]["nodes"] if "graph" in summary else 0) == (loss.__name__ not in LOOKING)


@pytest.mark.parametrize("tier", TIERS)
def test_single_precision_stays_what_it_is(tier):
    gradient = _gradient(_network)
    given = [x.astype(np.float32) for x in (W, H, XS)]
    plan = pb.compile(gradient, tier=tier)
    for _ in range(4):
        _agree(plan(*pb.put(given, "cpu")), gradient(*given), 1e-5)


def _of_steps(count, tier):
    plan = pb.compile(_gradient(_network), tier=tier)
    xs = RNG.normal(size=(count, 3))
    for _ in range(4):
        plan(*pb.put((W, H, xs), "cpu"))
    return plan


@pytest.mark.parametrize("tier", TIERS)
def test_text_and_kernels_do_not_grow_with_the_number_of_steps(tier):
    few, many = (_of_steps(count, tier) for count in (12, 120))
    assert few.summary()["kernels"] == many.summary()["kernels"]
    assert few.summary()["state_bytes"] <= many.summary()["state_bytes"]
    assert few.summary()["moved_bytes"] < many.summary()["moved_bytes"]
    texts = [plan.explain().partition("def ")[2].count("\n    ") for plan in (few, many)]
    assert texts[0] == texts[1]


def test_a_graph_has_the_nodes_of_every_step_and_leaves_native_where_these_are_too_many(monkeypatch):
    nodes = [_of_steps(count, "native").summary()["graph"]["nodes"] for count in (12, 24, 48)]
    assert nodes[2] - nodes[1] == 2 * (nodes[1] - nodes[0]) > 0
    monkeypatch.setattr("pullback.backends.cuda.program.MOST_NODES", 50)
    plan = _of_steps(48, "native")
    (told,) = plan.summary()["fallbacks"]
    assert told.startswith("runs step by step, not as a CUDA graph: a scan of 48 steps would be ")
    assert told.endswith(" nodes of a graph, which has at most 50")
    assert MOST_NODES > 1000


@pytest.mark.parametrize("loss", [_network, _counted, _nested, _turning], ids=lambda loss: loss.__name__[1:])
def test_steps_ask_for_no_memory_and_wait_for_nothing(loss):
    plan = pb.compile(_gradient(loss), tier="stateful")
    noting = noted(plan, W, H, XS)
    assert noting.requests == {}
    assert plan.summary()["transient"] == []
    assert not {"_local_scalar_dense", "aminmax", "item", "_to_copy"} & set(noting.seen)


@pytest.mark.parametrize("loss", [_network, _counted, _choosing], ids=lambda loss: loss.__name__[1:])
def test_a_warm_call_of_a_captured_loop_is_one_launch(loss):
    with LateDevice(by_driver=True) as late:
        plan, given = pb.compile(_gradient(loss), tier="native"), [late.put(x) for x in (W, H, XS)]
        for _ in range(3):
            plan(*given)
        late.wait("the end of warming up")
        late.forget()
        late.library.calls.clear()
        assert plan.summary()["fallbacks"] == []
        results = plan(*given)
        assert [name for name in late.library.calls if "Ctx" not in name] == ["cuGraphLaunch"]
        assert (late.waits, late.transfers, late.requests) == ({}, {}, {})
        value, gradients = results
        here = _gradient(loss)(W, H, XS)
        np.testing.assert_allclose(late.take(value), here[0], rtol=1e-11)
        for ours, theirs in zip(gradients, here[1], strict=True):
            np.testing.assert_allclose(late.take(ours), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("tier", TIERS)
def test_while_loops_look_before_each_step(tier):
    def root(a):
        return pb.while_loop(lambda x: np.max(np.abs(x * x - a)) > 1e-12, lambda x: 0.5 * (x + a / x), np.ones(3))

    plan = pb.compile(root, tier=tier)
    for a in (np.array([2.0, 3.0, 4.0]), np.ones(3), np.array([9.0, 1.0, 1e-3])):
        with pb.debug.poisoning():
            _agree(plan(pb.put(a, "cpu")), root(a))
    assert plan.summary()["hash"] is not None
    if tier == "native":
        assert "a while loop looks at its condition before each step" in plan.summary()["fallbacks"][0]


@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_a_branch_that_is_not_there_is_an_error_and_the_next_call_is_right(tier):
    plan = pb.compile(lambda k, x: pb.switch(k, [np.sin, np.cos], x), tier=tier)
    _agree(plan(torch.tensor(1), torch.tensor(H)), np.cos(H))
    with pytest.raises(pb.errors.ControlFlowError, match="index is 2, there are 2 branches"):
        plan(torch.tensor(2), torch.tensor(H))
    _agree(plan(torch.tensor(0), torch.tensor(H)), np.sin(H))


def test_a_position_that_is_out_of_bounds_is_an_error():
    plan = pb.compile(lambda x: pb.fori_loop(0, 12, lambda k, c: c + x[k], 0.0), tier="stateful")
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 10"):
        plan(torch.ones(10, dtype=torch.float64))


def test_branches_that_move_much_are_not_both_run():
    def loss(x):
        return np.sum(pb.cond(np.sum(x) > 0, np.sin, np.cos, x))

    x = np.full(400_000, 1e-3)
    plan = pb.compile(loss, tier="native")
    _agree(plan(pb.put(x, "cpu")), loss(x))
    assert (
        "a graph runs both branches of pb.cond, if they move at most 4 MiB together" in plan.summary()["fallbacks"][0]
    )


# --- planted faults -----------------------------------------------------------------------------------------------------
def _finds(loss, tier="stateful"):
    with pytest.raises(AssertionError), pb.debug.poisoning():
        _agree(pb.compile(_gradient(loss), tier=tier)(*pb.put((W, H, XS), "cpu")), _gradient(loss)(W, H, XS))


def test_a_carry_that_is_written_while_it_is_read_is_found(monkeypatch):
    of = loops._Turns.of
    monkeypatch.setattr(loops._Turns, "of", lambda *given: [of(*given)[0]] * 2)
    _finds(_turning)


def test_memory_of_a_body_that_lies_in_another_is_found(monkeypatch):
    add = loops._Places.add
    monkeypatch.setattr(loops._Places, "add", lambda *given: 0 * add(*given))
    _finds(_network)
