"""Warm calls of plans, by what they ask of PyTorch, operation by operation: allocations, products and views; no wait, no transfer."""

from collections import Counter

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")
dispatching = pytest.importorskip("torch.utils._python_dispatch")

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
    """Counts the operations inside a block by name."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))


def asked(plan, *arguments):
    """The operations of a warm call, without views."""
    arguments = pb.put(arguments, "cpu")
    for _ in range(2):
        plan(*arguments)
    with Noting() as noting:
        plan(*arguments)
    return Counter({name: count for name, count in noting.seen.items() if name not in VIEWS})


def _layer(w, x, b):
    return np.sum(np.tanh(w @ x + b) ** 2)


def test_a_layer_asks_for_its_products_and_for_memory():
    """The value, three gradients, and what the nest leaves for the products."""
    plan = pb.compile(pb.value_and_grad(_layer, wrt=(0, 1, 2)), tier="fused")
    seen = asked(plan, np.ones((30, 20)), np.ones((20, 10)), np.ones((30, 1)))
    assert seen.pop("mm") == 3
    assert set(seen) == {"empty"}
    assert seen["empty"] <= 5


#: Numbers that the host is given in a call: the least and the largest class number, and position, before they are used.
LOOKED_AT = {"mlp_step": 4}


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


def test_a_wait_is_seen():
    plan = pb.compile(pb.grad(lambda x: np.sum(x**2) if np.sum(x) > 0 else np.sum(x**3)), tier="fused")
    assert not WAITS.isdisjoint(asked(plan, np.ones(3)))
