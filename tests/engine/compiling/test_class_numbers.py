"""Numbers in classes that change between calls: inputs of a plan, however the class is reached."""

import threading
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.compiling.substitution import Substitution

X = np.ones(2)
RATE = 0.1
TIERS = pytest.mark.parametrize("tier", pb.TIERS[1:])


class Model:
    """A class with a number."""

    rate = 0.1
    steps = 2

    def __call__(self, x):
        return x * self.rate


class Derived(Model):
    """A class that inherits it."""

    @classmethod
    def of_class(cls, x):
        return x * cls.rate

    def of_base(self, x):
        return super().rate * x

    @staticmethod
    def plain(x):
        return x * Model.rate

    @property
    def doubled(self):
        return 2 * self.rate


MODEL = Derived()
WAYS = {
    "class": lambda x: x * Model.rate,
    "subclass": lambda x: x * Derived.rate,
    "instance": lambda x: x * MODEL.rate,
    "method": lambda x: MODEL(x),
    "classmethod": lambda x: MODEL.of_class(x),
    "staticmethod": lambda x: Derived.plain(x),
    "super": lambda x: MODEL.of_base(x),
    "property": lambda x: x * MODEL.doubled / 2,
    "getattr": lambda x: x * getattr(Model, "rate"),  # noqa: B009 - it is what is tried
}


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    Model.rate, Model.steps = 0.1, 2
    set_rate(0.1)


@TIERS
@pytest.mark.parametrize("way", WAYS)
def test_a_number_of_a_class_that_changes_is_an_input(way, tier):
    read = WAYS[way]
    plan = pb.compile(pb.grad(lambda x: np.sum(read(x))), tier=tier)
    for rate in (0.1, 0.2, 0.3, 0.1, 4.0, 5.0):
        Model.rate = rate
        np.testing.assert_allclose(plan(X), rate)
    assert plan.summary()["recordings"] == {"the first call": 1, "Model.rate": 1}
    assert plan.summary()["fallbacks"] == []
    assert vars(Model)["rate"] == 5.0
    assert tier != "native" or "calls are native" in plan.explain()


@TIERS
def test_a_number_of_a_class_that_has_to_be_known_is_recorded_anew(tier):
    plan = pb.compile(pb.grad(lambda x: np.sum(x) ** Model.steps * len(range(Model.steps))), tier=tier)
    for steps in (2, 3, 2, 3):
        Model.steps = steps
        np.testing.assert_allclose(plan(X), steps * steps * 2.0 ** (steps - 1))


@TIERS
def test_what_a_function_assigns_in_a_class_and_what_it_looks_up_there_is_as_on_the_tape(tier):
    def counting(x):
        Model.rate += 1.0
        return np.sum(x) * Model.rate

    for function in (counting, lambda x: np.sum(x) * Model.__dict__["rate"]):
        plan = pb.compile(pb.grad(function), tier=tier)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.errors.PlanWarning)
            for rate in (1.0, 2.0, 3.0):
                Model.rate = rate
                np.testing.assert_allclose(plan(X), rate + (function is counting))
                assert Model.rate == rate + (function is counting)


@TIERS
def test_a_number_of_another_type_or_a_class_with_more_is_seen(tier):
    plan = pb.compile(pb.grad(lambda x: np.sum(x * Model.rate)), tier=tier)
    for rate in (0.1, 0.2, 3, np.array([1.0, 2.0]), 0.5):
        Model.rate = rate
        np.testing.assert_allclose(plan(X), np.broadcast_to(rate, 2))


def made_with(number):
    def change(to):
        nonlocal number
        number = to

    class Captured:
        """A class whose method reads a number of a closure, which another function changes."""

        def __call__(self, x):
            return x * number

    return Captured(), change


class Reading:
    """A class whose methods read a number of the module."""

    def method(self, x):
        return x * RATE

    def __call__(self, x):
        return self.method(x) + 0 * RATE

    @classmethod
    def of_class(cls, x):
        return sum(y * RATE for y in [x])

    @staticmethod
    def plain(x):
        return x * RATE


class Inheriting(Reading):
    """A class that calls what it inherits."""

    def method(self, x):
        return super().method(x)


READING, INHERITING = Reading(), Inheriting()
BOUND = {"method": READING.method}


def set_rate(to):
    globals()["RATE"] = to


METHODS = {
    "method": lambda x: READING.method(x),
    "call": lambda x: READING(x),
    "classmethod": lambda x: Reading.of_class(x),
    "staticmethod": lambda x: READING.plain(x),
    "inherited": lambda x: INHERITING(x),
    "bound": READING.method,
    "held": lambda x: BOUND["method"](x),
    "made inside": lambda x: Reading().method(x),
}


@TIERS
@pytest.mark.parametrize("way", METHODS)
def test_a_number_that_a_method_reads_is_an_input(way, tier):
    read = METHODS[way]
    plan = pb.compile(pb.grad(read if way == "bound" else lambda x: read(x)), tier=tier)
    members = dict(vars(Reading))
    for rate in (0.1, 0.2, 0.3, 0.1, 4.0, 5.0):
        set_rate(rate)
        np.testing.assert_allclose(plan(2.0), rate)
    assert plan.summary()["recordings"] == {"the first call": 1, "RATE": 1}
    assert dict(vars(Reading)) == members
    assert tier != "native" or "calls are native" in plan.explain()


@TIERS
def test_a_number_of_a_closure_that_a_method_reads_is_an_input(tier):
    one, change = made_with(0.1)
    plan = pb.compile(pb.grad(lambda x: np.sum(one(x))), tier=tier)
    for rate in (0.1, 0.2, 0.3, 4.0):
        change(rate)
        np.testing.assert_allclose(plan(X), rate)
    assert plan.summary()["recordings"] == {"the first call": 1, "number": 1}


@TIERS
def test_a_method_that_is_also_reached_otherwise_sees_the_number(tier):
    class Remembering:
        """A class with a method that a cache of the class holds too."""

        def method(self, x):
            return x * RATE

        table = ((method, 1.0),)

    one = Remembering()
    plan = pb.compile(pb.grad(lambda x: one.method(x) + 10.0 * one.table[0][0](one, x)), tier=tier)
    for rate in (0.1, 0.2, 0.3, 4.0):
        set_rate(rate)
        np.testing.assert_allclose(plan(2.0), 11 * rate)


def test_other_threads_read_the_number_while_it_is_recorded():
    seen = []
    with Substitution(["traced"], [(Model, "rate", 0)]).in_classes():
        seen.append(Model.rate)
        thread = threading.Thread(target=lambda: seen.append(MODEL.rate))
        thread.start()
        thread.join()
    assert [*seen, Model.rate] == ["traced", 0.1, 0.1]
