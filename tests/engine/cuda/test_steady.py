"""Warm calls of plans, by what they ask of PyTorch, operation by operation.

In the tier `fused` allocations, products and views, in `stateful` no allocation: no operation gives memory that none of its
operands lay in; in `native` none at all, but a launch. No wait, no transfer.
"""

from collections import Counter

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
dispatching = pytest.importorskip("torch.utils._python_dispatch")
tree_leaves = pytest.importorskip("torch.utils._pytree").tree_leaves

from pullback_runners.workloads.registry import find_workload  # noqa: E402 - beside what loads PyTorch

#: Operations that copy between host and device, or give the host a number: each waits for the device there.
WAITS = {"_local_scalar_dense", "_to_copy", "item", "is_nonzero"}
VIEWS = {
    "view",
    "_unsafe_view",
    "transpose",
    "permute",
    "expand",
    "slice",
    "select",
    "unsqueeze",
    "alias",
    "as_strided",
    "detach",
    "t",
}


class Noting(dispatching.TorchDispatchMode):
    """Counts the operations inside a block by name, and those that give memory which no operand lies in."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()
        self.requests = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        self.seen[name] += 1
        made = function(*args, **(kwargs or {}))
        given = {_memory(x) for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        if any(isinstance(x, torch.Tensor) and _memory(x) not in given for x in tree_leaves(made)):
            self.requests[name] += 1
        return made


def _memory(tensor):
    return tensor.untyped_storage().data_ptr()


def noted(plan, *arguments):
    """The operations of a warm call."""
    arguments = pb.put(arguments, "cpu")
    for _ in range(3):
        plan(*arguments)
    with Noting() as noting:
        plan(*arguments)
    return noting


def asked(plan, *arguments):
    """The operations of a warm call, without views."""
    seen = noted(plan, *arguments).seen
    return Counter({name: count for name, count in seen.items() if name not in VIEWS})


def _layer(w, x, b):
    return np.sum(np.tanh(w @ x + b) ** 2)


def test_a_layer_asks_for_its_products_and_for_memory():
    """The value, three gradients, and what the nest leaves for the products."""
    plan = pb.compile(pb.value_and_grad(_layer, wrt=(0, 1, 2)), tier="fused")
    seen = asked(plan, np.ones((30, 20)), np.ones((20, 10)), np.ones((30, 1)))
    assert seen.pop("mm") == 3
    assert set(seen) == {"empty"}
    assert seen["empty"] <= 5


#: Numbers that the host is given in a call: whether a class number is none, at its end.
LOOKED_AT = {"mlp_step": 1}


@pytest.mark.parametrize("name", ["dense_bias_act", "poly9_powers", "mlp_step", "black_scholes"])
def test_workloads_wait_for_positions_alone_and_copy_nothing(name):
    workload = find_workload(name)
    case = workload.cases("quick")[0]
    plan = pb.compile(workload.differentiated(pb, **dict(case.params)), tier="fused")
    seen = asked(plan, *workload.draw_inputs(case).values())
    assert plan.summary()["hash"] is not None
    assert {name: seen[name] for name in WAITS if name in seen} == (
        {"_local_scalar_dense": LOOKED_AT[name]} if name in LOOKED_AT else {}
    )


def _workload(name, tier):
    workload = find_workload(name)
    case = workload.cases("quick")[0]
    plan = pb.compile(workload.differentiated(pb, **dict(case.params)), tier=tier)
    return plan, workload.draw_inputs(case).values()


@pytest.mark.parametrize("name", ["dense_bias_act", "poly9_powers", "black_scholes"])
def test_a_stateful_plan_asks_for_no_memory_in_a_warm_call(name):
    plan, inputs = _workload(name, "stateful")
    noting = noted(plan, *inputs)
    assert noting.requests == {}
    assert set(noting.seen) <= {"mm", *VIEWS}
    assert plan.summary()["transient"] == []
    assert plan.summary()["arrays"] == 0
    assert plan.summary()["state_bytes"] > 0


@pytest.mark.parametrize("name", ["dense_bias_act", "poly9_powers", "black_scholes"])
def test_a_native_plan_asks_pytorch_for_nothing_in_a_warm_call(name):
    plan, inputs = _workload(name, "native")
    noting = noted(plan, *inputs)
    assert (noting.seen, noting.requests) == ({}, {})
    assert plan.summary()["graph"]["sets"] == 1
    assert plan.summary()["graph"]["nodes"] >= plan.summary()["kernels"]


def test_arrays_that_are_copied_in_are_seen():
    plan = pb.compile(pb.grad(lambda x: np.sum(np.tanh(x) * x)), tier="native")
    (x,) = pb.put((np.ones((4, 6)),), "cpu")
    for _ in range(3):
        plan(x.tensor.t())
    with Noting() as noting:
        plan(x.tensor.t())
    assert noting.seen["copy_"] == 1


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: np.sum((x @ x.T @ x) ** 2) + np.sum(x @ x[0]) + np.sum(x[0] @ x.T) + x[0] @ x[1],
        lambda x: np.sum(np.tanh(x[None] @ x.T) @ np.stack([x, x * 2, x + 1])),
        lambda x: (
            np.sum(np.concatenate([x, np.sin(x)], axis=1)[:, 1:] ** 2) + np.sum(x[1]) ** 2 + np.sum(x[:, 0] * x[:, 1])
        ),
        lambda x: x[0, 1] * x[1, 2] + x[2, 3] ** 2,
    ],
    ids=["products", "stacks", "joined", "numbers"],
)
def test_products_and_joined_arrays_are_written_into_kept_memory(loss):
    plan = pb.compile(pb.grad(loss), tier="stateful")
    assert noted(plan, np.linspace(-1, 1, 12).reshape(3, 4)).requests == {}
    assert plan.summary()["transient"] == []


def test_what_takes_memory_of_the_pool_is_named():
    plan = pb.compile(pb.grad(lambda x: np.sum(np.sort(x)[1:] ** 2)), tier="stateful")
    assert noted(plan, np.arange(5.0)).requests
    assert "argsort" in plan.summary()["transient"]


def test_a_wait_is_seen():
    plan = pb.compile(pb.grad(lambda x: np.sum(x**2) if np.sum(x) > 0 else np.sum(x**3)), tier="fused")
    assert not WAITS.isdisjoint(asked(plan, np.ones(3)))


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_what_is_brought_in_order_or_put_there_waits_for_nothing(tier):
    around = np.ones((4, 3))
    x = pb.put(np.arange(12.0).reshape(3, 4), "cpu").T
    plan = pb.compile(pb.grad(lambda x: np.sum(np.tanh(x) * around)), tier=tier)
    for _ in range(3):
        plan(x)
    with Noting() as noting:
        plan(x)
    assert noting.seen["clone"] + noting.seen["copy_"] > 0
    assert WAITS.isdisjoint(noting.seen)
