"""Recurrent layers in plans on a device: loops, whose steps ask for nothing, wait for nothing, and are nodes of a graph."""

import numpy as np
import pytest
from tests.engine.nn.test_recurrent import BATCH, INPUTS, LAYERS, flat, initial, loss, parameters, random

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import LateDevice  # noqa: E402 - loads PyTorch
from tests.engine.cuda.test_steady import noted  # noqa: E402

from pullback.devices.cuda import eager  # noqa: E402

TIERS = ["fused", "stateful", "native"]
every_layer = pytest.mark.parametrize("name", LAYERS)


def _arguments(name, *, bias=True, given=True, steps=3, dtype=np.float64):
    states = initial(name) if given else ()
    return parameters(name, bias=bias, dtype=dtype), *(x.astype(dtype) for x in (random(steps, BATCH, INPUTS), *states))


def _agree(ours, theirs, rtol=1e-10):
    for one, other in zip(pb.trees.flatten(pb.fetch(ours))[0], pb.trees.flatten(theirs)[0], strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * max(1, np.max(np.abs(other), initial=0)))


def _held(function, args, tier, rtol=1e-10):
    """The plan of a function, whose results of several calls agree with NumPy's, with dead memory made useless."""
    here, plan = function(*args), pb.compile(function, tier=tier)
    eager.DEVICE.on_the_host.clear()
    with pb.debug.poisoning():
        for made in [plan(*pb.put(args, "cpu")) for _ in range(4)]:
            _agree(made, here, rtol)
    summary = plan.summary()
    assert (summary["fallbacks"], dict(eager.DEVICE.on_the_host)) == ([], {})
    assert summary["hash"] is not None
    assert tier != "native" or summary["graph"]["nodes"] > 0
    return plan


@every_layer
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("bias", "given", "steps"), [(True, True, 3), (False, False, 3), (True, False, 1)], ids=["all", "least", "one step"]
)
def test_values_and_gradients_are_those_of_the_host(name, tier, bias, given, steps):
    args = _arguments(name, bias=bias, given=given, steps=steps)
    _held(pb.value_and_grad(loss(name), wrt=tuple(range(len(args)))), args, tier)


@every_layer
@pytest.mark.parametrize("tier", TIERS)
def test_values_alone_single_precision_and_second_derivatives_too(name, tier):
    _held(LAYERS[name][0], _arguments(name), tier)
    _held(pb.value_and_grad(loss(name)), _arguments(name, dtype=np.float32), tier, 1e-4)

    def norm(*args):
        return np.sum(flat(pb.grad(loss(name), wrt=(0, 1))(*args)) ** 2)

    _held(pb.grad(norm), _arguments(name, given=False), tier, 1e-9)


@pytest.mark.parametrize("tier", TIERS)
def test_stacks_and_what_comes_before_and_after_are_one_program(tier):
    stack = parameters("lstm", layers=2)

    def stacked(params, x):
        states, _ = pb.nn.lstm(params, np.tanh(x))
        return np.sum(np.log1p(states[-1] ** 2))

    plan = _held(pb.value_and_grad(stacked, wrt=(0, 1)), (stack, random(3, BATCH, INPUTS)), tier)
    assert "recurrent layers as loops" in plan.explain()


@every_layer
@pytest.mark.parametrize("tier", ["unfused", "fused"])
def test_pullbacks_of_plans_are_those_of_the_host(name, tier):
    args = _arguments(name)
    value, pullback = pb.compile(loss(name), tier=tier).vjp(*pb.put(args, "cpu"))
    here, pullback_here = pb.vjp(loss(name), *args)
    _agree(value, here)
    _agree(pullback(1.0), pullback_here(1.0))


@every_layer
def test_steps_ask_for_no_memory_and_wait_for_nothing(name):
    args = _arguments(name)
    plan = pb.compile(pb.value_and_grad(loss(name), wrt=tuple(range(len(args)))), tier="stateful")
    noting = noted(plan, *args)
    assert noting.requests == {}
    assert plan.summary()["transient"] == []
    assert not {"_local_scalar_dense", "aminmax", "item", "_to_copy"} & set(noting.seen)


@every_layer
def test_a_warm_call_is_one_launch(name):
    gradient, args = pb.value_and_grad(loss(name), wrt=(1,)), _arguments(name)
    with LateDevice(by_driver=True) as late:
        plan, given = pb.compile(gradient, tier="native"), pb.tree_map(late.put, args)
        for _ in range(3):
            plan(*given)
        late.wait("the end of warming up")
        late.forget()
        late.library.calls.clear()
        assert plan.summary()["fallbacks"] == []
        value, (slope,) = plan(*given)
        assert [called for called in late.library.calls if "Ctx" not in called] == ["cuGraphLaunch"]
        assert (late.waits, late.transfers, late.requests) == ({}, {}, {})
        here, (slope_here,) = gradient(*args)
        np.testing.assert_allclose(late.take(value), here, rtol=1e-11)
        np.testing.assert_allclose(late.take(slope), slope_here, rtol=1e-10, atol=1e-12)


@every_layer
def test_text_and_kernels_do_not_grow_with_the_number_of_steps_and_a_long_layer_says_why_it_is_no_graph(
    name, monkeypatch
):
    def plan_of(steps):
        plan = pb.compile(pb.value_and_grad(loss(name)), tier="native")
        for _ in range(3):
            plan(*pb.put(_arguments(name, steps=steps), "cpu"))
        return plan.summary()

    few, more, many = map(plan_of, (4, 8, 16))
    assert few["kernels"] == many["kernels"]
    nodes = [summary["graph"]["nodes"] for summary in (few, more, many)]
    assert nodes[2] - nodes[1] == 2 * (nodes[1] - nodes[0]) > 0
    monkeypatch.setattr("pullback.backends.cuda.program.MOST_NODES", 20)
    assert "a scan of 16 steps would be " in plan_of(16)["fallbacks"][0]
