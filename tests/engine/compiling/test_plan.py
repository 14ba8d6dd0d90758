"""Plans: one per signature, never with yesterday's values, never a wrong answer."""

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from pullback.compiling import plan as compiling
from pullback.compiling import specialization

WEIGHTS = np.ones(3)
RATE = 2.0


def uses_globals(x):
    return np.sum(x * WEIGHTS * RATE)


def test_a_plan_is_made_once_per_signature(monkeypatch):
    recorded = []
    record = specialization.record
    monkeypatch.setattr(
        specialization,
        "record",
        lambda function, types, *others: recorded.append(types) or record(function, types, *others),
    )
    plan = pb.compile(pb.grad(lambda x: np.sum(x**2)), tier="fused")
    for shape in ((3,), (3,), (2, 2), (3,)):
        np.testing.assert_array_equal(plan(np.ones(shape)), 2 * np.ones(shape))
    assert [[type_.shape for type_ in types] for types in recorded] == [[(3,)], [(2, 2)]]


def test_signatures_tell_shape_dtype_and_kind_of_number_apart():
    plan = pb.compile(pb.value_and_grad(lambda x, p: np.sum(x * p)), tier="fused")
    for x, p in (
        (np.ones(3), 2.0),
        (np.ones(3, np.float32), 2.0),
        (np.ones(3, np.float32), np.float64(2.0)),
        (np.ones(3), 2),
    ):
        value, x_bar = plan(x, p)
        assert value.dtype == np.sum(x * p).dtype
        assert x_bar.dtype == x.dtype
    assert plan.summary()["fallbacks"] == []


def test_captured_arrays_are_read_again_on_each_call(monkeypatch):
    plan = pb.compile(pb.grad(uses_globals), tier="fused")
    np.testing.assert_array_equal(plan(np.ones(3)), [2, 2, 2])
    monkeypatch.setitem(globals(), "WEIGHTS", np.full(3, 5.0))
    np.testing.assert_array_equal(plan(np.ones(3)), [10, 10, 10])
    WEIGHTS[0] = 7.0
    np.testing.assert_array_equal(plan(np.ones(3)), [14, 10, 10])
    monkeypatch.setitem(globals(), "WEIGHTS", np.ones((2, 3)))
    np.testing.assert_array_equal(plan(np.ones(3)), [4, 4, 4])
    monkeypatch.setitem(globals(), "WEIGHTS", 3.0)
    np.testing.assert_array_equal(plan(np.ones(3)), [6, 6, 6])
    assert plan.summary()["fallbacks"] == []


def test_captured_numbers_and_functions_are_compared_on_each_call(monkeypatch):
    plan = pb.compile(pb.grad(uses_globals), tier="fused")
    plan(np.ones(3))
    monkeypatch.setitem(globals(), "RATE", 3.0)
    np.testing.assert_array_equal(plan(np.ones(3)), 3 * WEIGHTS)


def test_closures_containers_and_defaults_are_watched():
    scale, parts = 2.0, {"w": np.ones(2), "k": [1.0, 2.0]}

    def function(x, factor=1.0):
        return np.sum(x * scale * parts["w"] * parts["k"][1] * factor)

    plan = pb.compile(pb.grad(function), tier="fused")
    assert plan(np.ones(2)).tolist() == [4.0, 4.0]
    scale = 3.0
    assert plan(np.ones(2)).tolist() == [6.0, 6.0]
    parts["k"][1] = 1.0
    assert plan(np.ones(2)).tolist() == [3.0, 3.0]
    parts["w"] = np.zeros(2)
    assert plan(np.ones(2)).tolist() == [0.0, 0.0]
    parts.pop("k")
    with pytest.raises(KeyError):
        plan(np.ones(2))
    function.__defaults__ = (2.0,)


def test_an_attribute_is_not_taken_for_a_global_of_the_same_name(monkeypatch):
    monkeypatch.setitem(globals(), "tanh", object())
    plan = pb.compile(pb.grad(lambda x: np.sum(np.tanh(x))), tier="fused")
    plan(np.ones(2))
    assert plan.summary()["fallbacks"] == []


@dataclass
class Forwarding:
    rate: float

    def __getattr__(self, name):
        return self.rate


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda model: lambda x: np.sum(x * model.rate), "model is a Forwarding, whose contents may change"),
        (lambda _: lambda x: np.sum(x * random.Random(0).random()), "draws random numbers"),
        (lambda _: lambda x: np.sum(x * float(x[0])), "cannot become a float"),
    ],
)
def test_what_cannot_be_watched_stays_on_the_tape_and_says_why(make, reason):
    model = Forwarding(2.0)
    function = make(model)
    plan = pb.compile(function, tier="fused")
    x = np.ones(3)
    assert plan(x) == function(x)
    (told,) = plan.summary()["fallbacks"]
    assert reason in told
    assert reason in plan.explain()
    model.rate = 5.0
    assert plan(x) == function(x)


def test_an_attribute_that_a_function_is_given_later_is_seen():
    def function(x):
        return np.sum(x) * getattr(function, "scale", 2.0)

    for tier in pb.TIERS[1:]:
        plan = pb.compile(function, tier=tier)
        assert [plan(np.ones(3)), plan(np.ones(3))] == [6.0, 6.0]
        function.scale = 3.0
        assert [plan(np.ones(3)), plan(np.ones(3))] == [9.0, 9.0]
        del function.scale


def test_subclasses_of_arrays_stay_on_the_tape():
    plan = pb.compile(pb.grad(lambda x: np.sum(x * 2)), tier="fused")
    plan(np.ones(3).view(np.recarray))
    assert "recarray" in plan.summary()["fallbacks"][0]


def test_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(compiling, "PLANS_KEPT", 3)
    plan = pb.compile(pb.grad(lambda x: np.sum(x * x)), tier="fused")
    for size in range(1, 10):
        assert plan(np.ones(size)).shape == (size,)
    assert len(plan._families) == 3


def test_a_plan_of_a_plain_function_returns_what_the_function_returns():
    plan = pb.compile(lambda x: {"a": x + 1, "b": (np.sum(x), [x, None])}, tier="fused")
    result = plan(np.ones(2))
    assert result["b"][0] == 2.0
    assert result["b"][1][1] is None
    np.testing.assert_array_equal(result["a"], [2, 2])


def test_summary_counts_the_arrays_of_the_dense_layer():
    """The product is overwritten by bias and activation, then by its cotangent: 1 array, not 4."""

    def layer(w, x, b):
        return np.sum(pb.nn.dense_bias_act(w, x, b, "tanh"))

    plan = pb.compile(pb.grad(layer, wrt=(0, 1, 2)), tier="fused")
    n = 10
    plan(np.ones((n, n)), np.ones((n, n)), np.ones((n, 1)))
    summary = plan.summary()
    assert summary["arrays"] == 4  # the layer's one, dW, dX, db
    assert summary["bytes"] == 8 * (3 * n * n + n)
    assert summary["flops"] >= 3 * 2 * n**3


def test_a_plan_that_was_not_called_has_no_summary():
    with pytest.raises(ValueError, match="call it once"):
        pb.compile(math.sin, tier="fused").summary()


def test_compiling_for_the_tape_runs_the_tape():
    assert pb.compile(pb.grad(lambda x: x * x), tier="unfused")(3.0) == 6.0


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful"])
def test_results_that_are_arguments_go_into_out_as_they_were(tier):
    x, y = np.zeros(3), np.ones(3)
    first, second = pb.compile(lambda x, y: (y, x), tier=tier)(x, y, out=(x, np.full(3, 7.0)))
    assert first is x
    np.testing.assert_array_equal(first, np.ones(3))
    np.testing.assert_array_equal(second, np.zeros(3))


def test_numbers_are_reduced_along_the_axes_that_numpy_lets_them_have():
    for reduce in (np.sum, np.prod, np.max, np.min):
        for axis in (0, -1):
            assert pb.grad(lambda x, reduce=reduce, axis=axis: reduce(x, axis=axis) * 2)(np.float64(3.0)) == 2.0


def test_arrays_of_out_that_share_memory_are_refused():
    plan = pb.compile(lambda x: (x + 1, x + 2), tier="stateful")
    memory = np.zeros(4)
    with pytest.raises(ValueError, match="share memory"):
        plan(np.ones(3), out=(memory[:3], memory[1:]))
    memory = np.zeros(6)
    first, second = plan(np.ones(3), out=(memory[::2], memory[1::2]))
    assert (first == 2).all()
    assert (second == 3).all()


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_rounding_to_more_decimals_than_a_power_of_ten_has_gives_what_numpy_gives(tier):
    x = np.array([1.0, -2.5])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(pb.compile(lambda x: np.round(x, 400), tier=tier)(x), np.round(x, 400))
