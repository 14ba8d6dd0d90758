"""Arrays around a function are hidden inputs: read again on each call, and nothing computed from them is folded."""

import importlib
import sys
import threading
import warnings
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import pullback as pb

X = np.array([1.0, 2.0, 3.0])
LARGE = np.ones(100_000)


def fused(function):
    return pb.compile(function, tier="fused")


def agrees(plan, function, *args):
    np.testing.assert_allclose(plan(*args), function(*args))
    assert plan.summary()["fallbacks"] == []


def uses_a_large_global(x):
    return np.sum(LARGE * LARGE) * x


def calls_another(x):
    return uses_a_large_global(x) + np.sum(LARGE)


def test_large_arrays_do_not_force_the_tape_and_are_read_again(monkeypatch):
    for function in (uses_a_large_global, calls_another):
        plan = fused(pb.grad(function) if function is uses_a_large_global else function)
        agrees(plan, plan.function, 2.0)
        LARGE[0] += 1.0
        agrees(plan, plan.function, 2.0)
        monkeypatch.setitem(globals(), "LARGE", np.full(100_000, 2.0))
        agrees(plan, plan.function, 2.0)


def test_what_is_computed_from_captured_arrays_alone_is_computed_on_each_call():
    w = np.ones(3)

    def function(x):
        scale = 1.0 / np.sum(w)
        inner = lambda y: y * w * scale  # noqa: E731 (an inner function is the point)
        return np.sum(inner(x))

    plan = fused(pb.grad(function))
    for value in (1.0, 2.0, 5.0):
        w[0] = value
        agrees(plan, plan.function, X)


def test_one_variable_of_several_functions_is_one_hidden_input():
    w = np.ones(3)

    def first(x):
        return x * w

    def second(x):
        return np.sum(first(x) + w)

    plan = fused(second)
    agrees(plan, second, X)
    ((family,),) = plan._families.values()
    assert len(family.environment.input_types) == 1


def test_recursive_functions_with_captured_arrays():
    w = np.full(3, 2.0)

    def product(x, n):
        return np.sum(x) if n == 0 else product(x * w, n - 1)

    plan = fused(product)
    agrees(plan, product, X, 3)
    w[...] = 3.0
    agrees(plan, product, X, 3)
    agrees(plan, product, X, 1)


class Layer:
    scale = 2.0

    def __init__(self, w):
        self.w = w
        self.children = []

    def __call__(self, x):
        return self.apply(x)

    def apply(self, x):
        y = np.tanh(self.w @ x) * self.scale
        for child in self.children:
            y = child.apply(y)
        return y

    @property
    def doubled(self):
        return self.w * 2


@dataclass
class Parameters:
    w: np.ndarray
    rate: float = 0.5


class Pair(NamedTuple):
    w: np.ndarray
    rate: float


def test_attributes_of_plain_objects_are_hidden_inputs(monkeypatch):
    layer = Layer(np.eye(3))
    layer.children.append(Layer(np.eye(3) * 2))

    def function(x):
        return np.sum(layer.apply(x) + layer.doubled @ x)

    for compiled in (fused(pb.grad(function)), fused(layer.apply)):
        agrees(compiled, compiled.function, X)
        layer.w[0, 1] += 1.0
        agrees(compiled, compiled.function, X)
        layer.w = layer.w + 1.0
        agrees(compiled, compiled.function, X)
        layer.children[0].w = np.ones((3, 3))
        agrees(compiled, compiled.function, X)
        layer.children.append(Layer(np.eye(3)))
        agrees(compiled, compiled.function, X)
        layer.scale = 3.0
        agrees(compiled, compiled.function, X)
        del layer.scale
        with monkeypatch.context() as patch:
            patch.setattr(Layer, "scale", 7.0)
            agrees(compiled, compiled.function, X)
            patch.setattr(Layer, "apply", lambda self, x: self.w @ x)
            agrees(compiled, compiled.function, X)
        agrees(compiled, compiled.function, X)


@pytest.mark.parametrize("kind", [Parameters, Pair])
def test_dataclasses_and_named_tuples_around_a_function(kind):
    held = [kind(np.ones(3), 0.5)]

    def function(x):
        return np.sum(held[0].w * x) * held[0].rate

    plan = fused(function)
    agrees(plan, function, X)
    held[0].w[0] = 4.0
    agrees(plan, function, X)
    held[0] = kind(np.zeros(3), 2.0)
    agrees(plan, function, X)


def test_an_array_of_a_class_is_compared():
    class Model:
        w = np.ones(3)

        def apply(self, x):
            return x * self.w

    model = Model()
    plan = fused(model.apply)
    agrees(plan, model.apply, X)
    Model.w[0] = 5.0
    agrees(plan, model.apply, X)
    Model.w = np.zeros(3)
    agrees(plan, model.apply, X)


def test_one_list_under_two_names():
    w = [1.0, np.ones(3)]
    a = b = w

    def function(x):
        return np.sum(x * a[1]) * b[0]

    plan = fused(function)
    agrees(plan, function, X)
    b = [2.0, np.ones(3)]
    agrees(plan, function, X)
    b[0] = 3.0
    agrees(plan, function, X)
    a = [1.0, np.zeros(3)]
    agrees(plan, function, X)


def test_arrays_that_the_function_makes_are_constants_as_they_were_when_used():
    def function(x):
        mask = np.zeros(3)
        mask[0] = 1.0
        first = x * mask
        mask[1] = 5.0
        return first + x * mask + np.arange(3.0) @ x

    agrees(fused(function), function, X)


def test_changes_to_captured_containers_are_not_lost():
    history = [np.zeros(3)]

    def function(x):
        history.append(1)
        return np.sum(x * history[0])

    plan = fused(function)
    plan(X)
    assert "the function changes history" in plan.summary()["fallbacks"][0]
    assert history[1:] == [1] * (len(history) - 1)


def test_an_object_that_counts_its_calls_counts():
    class Counting(Layer):
        calls = 0

        def apply(self, x):
            self.calls += 1
            return self.w @ x

    layer = Counting(np.eye(3))
    plan = fused(layer.apply)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(6):
            plan(X)
    assert plan.summary()["fallbacks"] == ["the function changes self; return the new value instead"]
    assert len(told) == 1
    assert sum(plan.summary()["recordings"].values()) <= 2
    assert layer.calls == 6


def test_assigning_a_captured_array_stays_on_the_tape():
    w = np.ones(3)

    def function(x):
        nonlocal w
        w = w * 2
        return np.sum(x * w)

    plan = fused(function)
    assert [plan(X), plan(X)] == [12.0, 24.0]


def test_a_captured_array_is_an_ndarray_in_a_plan_as_well():
    w = np.ones(3)
    plan = fused(lambda x: x * 2.0 if isinstance(w, np.ndarray) else x * 3.0)
    assert plan(1.0) == 2.0
    assert not plan.summary()["fallbacks"]


@pytest.mark.filterwarnings("ignore::pullback.errors.PlanWarning")
def test_asking_for_the_type_of_a_captured_array_stays_on_the_tape():
    w = np.ones(3)
    plan = fused(lambda x: x * 2.0 if type(w) is np.ndarray else x * 3.0)
    assert plan(1.0) == 2.0
    assert "isinstance(x, numpy.ndarray)" in plan.summary()["fallbacks"][0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * np.random.normal(),  # noqa: NPY002 (the point)
        lambda x: x * eval("2.0"),  # noqa: S307 (the point)
        lambda x: x * np.load("weights.npy"),
        lambda x: x * RANDOM.normal(),
    ],
)
def test_what_may_differ_on_each_call_stays_on_the_tape(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("weights.npy", 2.0)
    plan = fused(function)
    plan(1.0)
    assert plan.summary()["fallbacks"]


RANDOM = np.random


class Attached:
    def __getattr__(self, name):
        return 2.0


class Descriptor:
    def __get__(self, instance, owner):
        return 2.0


class Described:
    rate = Descriptor()


class Items(dict):
    @property
    def rate(self):
        return self["rate"]


class Local(threading.local):
    rate = 2.0


@pytest.mark.parametrize(
    "held", [Attached(), Described(), {iter([1.0])}, iter([1.0]), Items(rate=2.0), Local(), defaultdict(float)]
)
def test_what_cannot_be_watched_surely_stays_on_the_tape(held):
    plan = fused(lambda x: x * (held.rate if hasattr(held, "rate") else 2.0))
    assert plan(1.0) == 2.0
    assert plan.summary()["fallbacks"]


def test_the_wrapper_of_a_wrapper_is_seen():
    rate = 2.0

    def inner(x):
        return x * rate * w

    w = np.ones(())
    wrapped = pb.trace(inner).__closure__[0].cell_contents
    outer = pb.grad(pb.grad(lambda x: x * wrapped(x)))
    plan = fused(outer)
    assert plan(1.0) == 4.0
    rate, w[...] = 3.0, 2.0
    assert plan(1.0) == 12.0


def test_a_compiled_function_inside_a_compiled_function_keeps_its_own_plans():
    w = np.ones(3)
    inner = fused(lambda x: np.sum(x * w))
    outer = fused(lambda x: inner(x) * inner(np.ones(3)))
    assert outer(X) == 18.0
    w[...] = 2.0
    assert outer(X) == 72.0
    assert inner(X) == 12.0
    w[...] = 3.0
    assert inner(X) == 18.0


def test_sets_and_namespaces_are_watched():
    names, space = {"a"}, SimpleNamespace(w=np.ones(3), rate=2.0)
    plan = fused(lambda x: np.sum(x * space.w) * space.rate * (2.0 if "b" in names else 1.0))
    for change in (
        lambda: names.add("b"),
        lambda: names.clear(),
        lambda: setattr(space, "w", np.zeros(3)),
        lambda: setattr(space, "w", np.full(3, 2.0)),
        lambda: setattr(space, "rate", 3.0),
    ):
        change()
        for _ in range(2):
            agrees(plan, plan.function, X)


SCALE = 2.0


def scaled(x):
    return x * SCALE


class Argument(NamedTuple):
    """A node whose class has a method, which calls a function, which reads a number."""

    w: np.ndarray
    rate = 1.0

    def apply(self, x):
        return np.sum(scaled(self.w) * x * self.rate)


@dataclass(frozen=True)
class DataArgument:
    """The same as a dataclass."""

    w: np.ndarray
    rate = 1.0

    def apply(self, x):
        return np.sum(scaled(self.w) * x * self.rate)


def applied(model, x):
    return model.apply(x)


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("kind", [Argument, DataArgument])
def test_methods_of_arguments_and_what_they_read_are_watched(monkeypatch, kind, tier):
    plan, model = pb.compile(applied, tier=tier), kind(X)
    agrees(plan, applied, model, X)
    monkeypatch.setattr(f"{__name__}.SCALE", 3.0)
    agrees(plan, applied, model, X)
    monkeypatch.setattr(f"{__name__}.scaled", lambda x: x - SCALE)
    agrees(plan, applied, model, X)
    monkeypatch.setattr(kind, "rate", 0.5)
    agrees(plan, applied, model, X)
    monkeypatch.setattr(kind, "apply", lambda self, x: np.sum(self.w - x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.errors.PlanWarning)  # recorded five times
        agrees(plan, applied, model, X)


@dataclass
class ReadsLarge:
    w: np.ndarray

    def apply(self, x):
        return np.sum(self.w * x) + np.sum(LARGE)


@pytest.mark.parametrize("is_argument", [True, False])
def test_a_large_array_that_a_method_reads_is_never_a_constant(is_argument):
    model = ReadsLarge(X)
    function = applied if is_argument else lambda _, x: model.apply(x)
    plan = fused(function)
    with pytest.warns(pb.errors.PlanWarning, match="LARGE is an array that a class reads"):
        before = plan(model, X)
    LARGE[0] += 1.0
    assert plan(model, X) == before + 1.0


@dataclass
class WithTable:
    w: np.ndarray
    table: ClassVar[np.ndarray] = np.ones(3000)


class Root:
    """A class that gets a subclass."""


def plain(x):
    return np.sum(x)


def asks_a_function(x):
    try:
        return x * plain.rate
    except AttributeError:
        return x


HELD = SimpleNamespace()


def by_a_computed_name(x):
    return importlib.import_module("held_" + "in_tests").RATE * x


def by_the_frame(x):
    return sys._getframe(0).f_globals["HELD"].value * x


#: Functions, and what may happen around them.
UNSEEN = {
    "the sign of a zero": (
        lambda x: np.arctan2(HELD.value, -x),
        lambda: setattr(HELD, "value", -HELD.value),
    ),
    "a file": (lambda x: x * float(HELD.path.read_text()), lambda: HELD.path.write_text("3.0")),
    "a module by a computed name": (by_a_computed_name, lambda: setattr(HELD.module, "RATE", 3.0)),
    "a module by __import__": (
        lambda x: __import__("held_in_tests").RATE * x,
        lambda: setattr(HELD.module, "RATE", 3.0),
    ),
    "a module by a frame": (by_the_frame, lambda: setattr(HELD, "value", np.float32(3.0))),
    "an attribute of a function": (asks_a_function, lambda: setattr(plain, "rate", 3.0)),
    "subclasses": (
        lambda x: len(Root.__subclasses__()) * x,
        lambda: setattr(HELD, "partial", type("Sub", (Root,), {})),
    ),
    "a keyword of a partial": (
        lambda x: HELD.partial(x),
        lambda: HELD.partial.keywords.update(k=np.full(3, 2.0)),
    ),
}


@pytest.fixture
def held(tmp_path, monkeypatch):
    module = ModuleType("held_in_tests")
    module.RATE = 0.5
    monkeypatch.setitem(sys.modules, "held_in_tests", module)
    path = tmp_path / "rate.txt"
    path.write_text("0.5")
    new = {
        "value": np.float32(0.0),
        "path": path,
        "module": module,
        "partial": partial(lambda x, k: x * k, k=np.ones(3)),
    }
    vars(HELD).update(new)
    yield
    vars(plain).pop("rate", None)


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("what", UNSEEN)
@pytest.mark.filterwarnings("ignore::pullback.errors.PlanWarning")
def test_what_was_taken_for_a_constant_is_seen(held, what, tier):
    function, change = UNSEEN[what]
    plan = pb.compile(lambda x: np.sum(function(x)), tier=tier)
    for _ in range(2):
        np.testing.assert_allclose(plan(X), plan.function(X))
    change()
    for _ in range(2):
        np.testing.assert_allclose(plan(X), plan.function(X))


def test_a_large_array_of_the_class_of_an_argument_is_never_a_constant():
    plan, model = fused(lambda m: np.sum(m.w * m.table)), WithTable(np.ones(3000))
    with pytest.warns(pb.errors.PlanWarning, match=r"WithTable.table is an array that a class reads, too large"):
        assert plan(model) == 3000.0
    WithTable.table[0] = 2.0
    assert plan(model) == 3001.0
    WithTable.table[0] = 1.0


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_the_constants_of_a_cut_argument_are_seen(tier):
    scales = {"a": 2.0, "b": 3.0}
    plan = pb.compile(pb.grad(lambda m: np.sum(m["w"] * m["data"]) * scales[m["kind"]]), tier=tier)
    data = np.ones(3)
    for kind, first in (("a", 1.0), ("b", 1.0), ("b", 5.0), ("a", 5.0)):
        data[0] = first
        argument = pb.cut({"w": pb.uncut(X), "data": data, "kind": kind})
        for _ in range(2):
            np.testing.assert_allclose(plan(argument)["w"], data * scales[kind])


@pytest.mark.parametrize("transform", [pb.grad, pb.jacobian, pb.hessian])
@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_arrays_of_functions_whose_derivative_was_taken_before_are_inputs(transform, tier):
    w = np.ones(3)
    derivative = transform(lambda x: np.sum(np.sin(x) * w))
    derivative(X)
    plan = pb.compile(lambda x: np.sum(derivative(x)), tier=tier)
    for value in (1.0, 2.0, 3.0):
        w[1] = value
        agrees(plan, plan.function, X)


class Unit(Enum):
    METRE = 1.0
    FOOT = 0.3

    def convert(self, x):
        return x * self.value


@pytest.mark.parametrize("held", [Unit.FOOT, NamedTuple("Point", [("value", float)])(0.3), partial(np.multiply, 0.3)])
def test_members_of_enumerations_named_tuples_and_partials_leave_calls_native(held):
    plan = pb.compile(lambda x: np.sum(held(x) if callable(held) else held.value * x), tier="native")
    for _ in range(3):
        agrees(plan, plan.function, X)
    assert not plan.summary()["recordings"].keys() - {"the first call"}
    assert "calls are native" in plan.explain()


def test_primitives_of_one_name_or_none_keep_to_their_own_functions():
    def scaling(k):
        def scale(x):
            return x * k

        primitive = pb.primitive(scale if k < 3.0 else lambda x: x * k)
        primitive.pulls(lambda y_bar, y, x: y_bar * k)
        return primitive

    one, two, three = map(scaling, (1.0, 2.0, 3.0))
    plan = fused(pb.value_and_grad(lambda x: np.sum(one(x) + two(x) + three(x))))
    value, slope = plan(X)
    assert value == 36.0
    np.testing.assert_array_equal(slope, np.full(3, 6.0))


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_numbers_that_an_earlier_call_left_are_compared_with_nothing(tier, before):
    """They answer `isinstance` as the numbers that they stood for, and raise when they are computed with."""
    memo = {}

    def f(x):
        memo.clear()
        memo["a"] = np.sin(x)
        return memo["a"] * 2

    for _ in range(before):
        pb.grad(f)(1.0)
    plan = pb.compile(pb.grad(f), tier=tier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.errors.PlanWarning)
        for x in (1.0, 2.0, 3.0, 2.0):
            np.testing.assert_allclose(plan(x), 2 * np.cos(x))
