"""Plans on device arrays: every rule case gives what NumPy gives, and the summary says what ran."""

import os

import numpy as np
import pytest

import pullback as pb
from pullback import control, nn, rules
from pullback.core.cases import ALL
from pullback.rules import special
from pullback.transforms import elementwise_maps

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

assert all((rules, special, control, elementwise_maps, nn))  # importing them fills the table

#: Where the arrays lie: "cuda" on a machine that has one.
DEVICE = os.environ.get("PULLBACK_TEST_DEVICE", "cpu")


def _moves(x):
    return x.dtype.kind == "f"


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.primitive.name} {case.because}")
def test_plans_give_what_numpy_gives(case):
    weights = np.random.default_rng(1).normal(size=np.shape(case.primitive(*case.operands(), **dict(case.params))))
    primitive, params = case.primitive, dict(case.params)
    key, shape = params.pop("key", None), params.pop("shape", None)

    def loss(weights, *operands):
        extra = {name: value for name, value in (("key", key), ("shape", shape)) if value is not None}
        return np.sum(weights * primitive(*operands, **params, **extra))

    moving = tuple(place for place, x in enumerate(case.operands(), 1) if _moves(x))
    gradient = pb.value_and_grad(loss, wrt=moving)
    here = gradient(weights, *case.operands())
    arguments = pb.put((weights, *case.operands()), DEVICE)
    _agree(pb.compile(gradient, tier="fused"), arguments, here)
    with pb.debug.poisoning():
        _agree(pb.compile(gradient, tier="stateful"), arguments, here)
        _agree(pb.compile(gradient, tier="native"), arguments, here, calls=4)  # two of them launch what was captured


def _agree(plan, arguments, here, calls=2):
    """Every time, with what the calls before gave held while the next runs."""
    results = [plan(*arguments) for _ in range(calls)]
    for value, gradients in pb.fetch(results):
        np.testing.assert_allclose(value, here[0], rtol=1e-9)
        for ours, theirs in zip(gradients, here[1], strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-11)
    assert plan.summary()["hash"] is not None, plan.summary()["fallbacks"]


def _layer(w, x, b):
    return np.sum(np.tanh(w @ x + b) ** 2)


def test_the_summary_counts_kernels_and_arrays_and_names_what_runs_on_the_host():
    arguments = pb.put((np.ones((3, 4)), np.ones((4, 2)), np.ones((3, 1))), DEVICE)
    plan = pb.compile(pb.value_and_grad(_layer, wrt=(0, 1, 2)), tier="fused")
    plan(*arguments)
    summary = plan.summary()
    assert summary["fallbacks"] == []
    assert summary["kernels"] >= 4  # three products and the nest
    assert summary["arrays"] >= 5  # the value, three gradients, a product
    assert summary["moved_bytes"] > 0
    plan = pb.compile(pb.grad(lambda x: np.sum(pb.scipy.special.gamma(x))), tier="fused")
    plan(arguments[0])
    told = "gamma runs on the host: its operands are fetched, its results put back"
    assert told in plan.summary()["fallbacks"]


def test_one_plan_serves_shapes_and_kinds_each_with_a_program_of_its_own():
    plan = pb.compile(pb.grad(lambda x: np.sum(x**3)), tier="fused")
    for size in (3, 5, 3):
        x = np.arange(1.0, size + 1)
        np.testing.assert_allclose(plan(torch.tensor(x)).numpy(), 3 * x**2)
        np.testing.assert_allclose(plan(x), 3 * x**2)
        np.testing.assert_allclose(pb.fetch(plan(pb.put(x, DEVICE))), 3 * x**2)


def test_guards_on_values_choose_the_program():
    plan = pb.compile(pb.grad(lambda x: np.sum(x**2) if np.sum(x) > 0 else np.sum(x**3)), tier="fused")
    for x in (np.ones(2), -np.ones(2), np.ones(2)):
        np.testing.assert_allclose(plan(torch.tensor(x)).numpy(), 2 * x if x.sum() > 0 else 3 * x**2)
    assert plan.summary()["hash"] is not None


SCALE = np.array([1.0, 2.0])


def test_arrays_around_the_function_are_what_they_are_at_each_call():
    plan = pb.compile(pb.grad(lambda x: np.sum(SCALE * x)), tier="fused")
    try:
        assert plan(torch.ones(2, dtype=torch.float64)).tolist() == [1, 2]
        SCALE[0] = 5
        assert plan(torch.ones(2, dtype=torch.float64)).tolist() == [5, 2]
    finally:
        SCALE[0] = 1


def test_results_of_a_call_are_not_written_to_by_the_next():
    plan = pb.compile(pb.value_and_grad(_layer, wrt=(0, 1, 2)), tier="fused")
    arguments = [torch.ones(3, 4), torch.ones(4, 2), torch.ones(3, 1)]
    first = plan(*arguments)
    copies = [gradient.clone() for gradient in first[1]]
    plan(*(2 * argument for argument in arguments))
    assert all(torch.equal(gradient, copy) for gradient, copy in zip(first[1], copies, strict=True))


def test_pullbacks_that_are_not_there_are_refused():
    with pytest.raises(pb.errors.TierError, match="pullbacks of plans do not run on cpu in the tier stateful yet"):
        pb.compile(np.sum, tier="stateful").vjp(torch.ones(3))
