"""What a plan says of itself is what the allocation counter sees."""

import numpy as np
import pytest

import pullback as pb
from pullback_runners.allocations import ArrayCounter

RNG = np.random.default_rng(0)
W, X = RNG.normal(size=(30, 20)), RNG.normal(size=(20, 10))

FUNCTIONS = {
    "layer": lambda w, x: np.sum(np.tanh(w @ x)),
    "rule": lambda w, x: np.sum(pb.nn.dense_bias_act(w, x, None, "tanh")),
    "chain": lambda w, x: np.sum(np.exp(np.sin(w * 2)) @ x),
    "views": lambda w, x: np.sum(w.T[3:] @ np.square(w)[:, ::2]) + np.sum(x.reshape(-1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_and_bytes_are_those_the_counter_sees(name):
    plan = pb.compile(pb.grad(FUNCTIONS[name], wrt=(0, 1)), tier="fused")
    plan(W, X)
    counter = ArrayCounter()
    with counter.window():
        result = plan(W, X)
    count = counter.read()
    summary = plan.summary()
    # Sums to one number and numbers handed to ufuncs are arrays of one element to NumPy, which the plan does not count.
    numbers = count.allocations - summary["arrays"]
    assert 0 <= count.requested_bytes - summary["bytes"] <= 8 * numbers
    assert summary["peak_bytes"] <= summary["bytes"]
    assert result[0].shape == W.shape


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_state_is_what_the_first_call_asks_for(name):
    plan = pb.compile(pb.grad(FUNCTIONS[name], wrt=(0, 1)), tier="stateful")
    plan(W, X)
    ((family,),) = plan._families.values()
    state = family.programs[0].compiled.state
    counter = ArrayCounter()
    with counter.window():
        frame = state._new()
    assert frame.arrays
    assert 0 <= counter.read().requested_bytes - plan.summary()["state_bytes"] <= 64


def test_the_summary_lists_what_allocates_although_memory_is_kept():
    plan = pb.compile(lambda a: np.linalg.inv(a) @ a, tier="stateful")
    plan(np.eye(3))
    assert plan.summary()["transient"] == ["inv"]


def test_a_trace_tells_what_each_pass_did():
    text = pb.trace(lambda x: np.sum(x * x) if x[0] > 0 else np.sum(x))(np.ones(3)).explain()
    assert text.startswith("# arguments\na  f8[3], 24 bytes  x\n\n# recorded\n")
    assert "# algebra\n" in text
    assert "guard" in text
    assert "square" in text
