"""Attributes that a dataclass computes from its fields where it is made: gradients go through them, or they are refused."""

import functools
import gc
import warnings
import weakref
from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np
import pytest

import pullback as pb


@dataclass
class Squared:
    """An attribute that depends on a field."""

    w: Any

    def __post_init__(self) -> None:
        self.square = self.w**2


@dataclass
class Product(Squared):
    """One that depends on a field and on what the base computes."""

    v: Any = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.value = self.square * self.v


@dataclass(frozen=True)
class Frozen:
    """A frozen one, with the attribute in a tuple."""

    w: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", ("name", self.w**2))


@dataclass
class Written:
    """One whose `__init__` is written by hand."""

    w: Any

    def __init__(self, w: Any) -> None:
        self.w = w
        self.square = w**2


@dataclass
class Slotted:
    """One with slots."""

    __slots__ = ("square", "w")
    w: Any

    def __post_init__(self) -> None:
        self.square = self.w**2


@dataclass
class Choosing:
    """One that holds a method of its own."""

    w: Any

    def __post_init__(self) -> None:
        self.apply = {"squared": self.squared}["squared"]

    def squared(self) -> Any:
        return self.w**2


@dataclass
class Holding:
    """One that holds a function and a partial of its field, and an object."""

    w: Any

    def __post_init__(self) -> None:
        self.function = lambda: self.w
        self.part = functools.partial(np.multiply, self.w)
        self.inner = Inner(self.w)


class Inner:
    """A plain object."""

    def __init__(self, w: Any) -> None:
        self.w = w


@dataclass
class Around:
    """One whose field is such a dataclass."""

    inner: Squared

    def __post_init__(self) -> None:
        self.square = self.inner.square


@dataclass
class Checked:
    """One that looks at its field, and has a constant."""

    w: Any

    def __post_init__(self) -> None:
        if np.any(self.w < 0):
            raise ValueError("negative")
        self.rate = 0.5


@dataclass
class Drawn:
    """One that draws a number."""

    w: Any

    def __post_init__(self) -> None:
        self.noise = np.random.default_rng().normal() + 0 * len(str(type(self.w)))


@dataclass
class Given:
    """One whose attribute depends on a field and on an argument that is gone."""

    w: Any
    scale: InitVar[float] = 2.0

    def __post_init__(self, scale: float) -> None:
        self.scaled = self.w * scale


CASES = {
    "post_init": (Squared, lambda a: a.square, lambda g: g.w),
    "super": (Product, lambda a: a.value / 4, lambda g: g.w),
    "frozen": (Frozen, lambda a: a.parts[1], lambda g: g.w),
    "init": (Written, lambda a: a.square, lambda g: g.w),
    "slots": (Slotted, lambda a: a.square, lambda g: g.w),
    "method": (Choosing, lambda a: a.apply(), lambda g: g.w),
    "function": (Holding, lambda a: a.function() * a.inner.w, lambda g: g.w),
    "partial": (Holding, lambda a: a.part(a.inner.w), lambda g: g.w),
    "nested": (lambda w: Around(Squared(w)), lambda a: a.square, lambda g: g.inner.w),
}


@pytest.mark.parametrize("tier", [None, *pb.TIERS])
@pytest.mark.parametrize("name", CASES)
def test_what_is_computed_from_fields_has_a_derivative_by_them(name, tier):
    make, function, by_w = CASES[name]
    gradient = pb.value_and_grad(function)
    run = gradient if tier is None else pb.compile(gradient, tier=tier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.errors.PlanWarning)
        for w in (3.0, 5.0, 3.0):
            made = make(w)
            value, found = run(made)
            assert (value, by_w(found)) == (w**2, 2 * w)
            assert function(made) == w**2


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_plans_name_what_is_computed_from_fields_and_the_mend(tier):
    plan = pb.compile(pb.grad(lambda a: a.square), tier=tier)
    with pytest.warns(pb.errors.PlanWarning, match=r"no part of it, Squared\.square; make it a property"):
        plan(Squared(3.0))
    for w in (4.0, 5.0, 6.0):
        assert plan(Squared(w)).w == 2 * w
    assert sum(plan.summary()["recordings"].values()) <= 2


@pytest.mark.parametrize("tier", pb.TIERS)
def test_constants_beside_fields_stay_what_they_are(tier):
    plan = pb.compile(pb.grad(lambda a: a.w * a.rate), tier=tier)
    made = Checked(3.0)
    assert plan(made).w == 0.5
    made.rate = 100.0
    assert plan(made).w == 100.0
    drawn = Drawn(2.0)
    assert pb.compile(pb.grad(lambda a: a.w * a.noise), tier=tier)(drawn).w == drawn.noise
    assert tier == "unfused" or plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("tier", [None, *pb.TIERS])
def test_what_was_assigned_since_and_what_cannot_be_computed_again_is_refused(tier):
    def run(function, argument):
        gradient = pb.grad(function)
        return (gradient if tier is None else pb.compile(gradient, tier=tier))(argument)

    changed = Squared(3.0)
    changed.square = 100.0
    with pytest.raises(pb.errors.TracingError, match=r"Squared\.square, which .* is not what it gives .* a property"):
        run(lambda a: a.square, changed)
    with pytest.raises(pb.errors.TracingError, match=r"Given\.__post_init__ may compute Given\.scaled .* a property"):
        run(lambda a: a.scaled, Given(3.0))


def test_every_transformation_goes_through_what_is_computed_from_fields():
    made = Squared(np.array([1.0, 2.0]))
    _, pullback = pb.vjp(lambda a: a.square, made)
    assert pullback(np.ones(2))[0].w.tolist() == [2.0, 4.0]
    _, dy = pb.jvp(lambda a: a.square, (made,), (Squared(np.ones(2)),))
    assert dy.tolist() == [2.0, 4.0]
    assert pb.vmap(lambda a: a.square)(made).tolist() == [1.0, 4.0]
    value, gradient = pb.value_and_grad(
        lambda x: pb.scan(lambda c, _: (Squared(c.square), c.w), Squared(x), np.zeros(2))[0].w
    )(1.5)
    assert (value, gradient) == (1.5**4, 4 * 1.5**3)
    assert pb.grad(lambda x: pb.grad(lambda a: a.square * a.w)(Squared(x)).w)(3.0) == 18.0


def test_results_and_trees_have_what_their_fields_give():
    value, _ = pb.vjp(lambda x: Squared(np.sin(x)), 1.0)
    assert value.square == np.sin(1.0) ** 2
    value, tangent = pb.jvp(lambda x: Squared(np.sin(x)), (1.0,), (1.0,))
    assert value.square == np.sin(1.0) ** 2
    assert not hasattr(tangent, "square")
    assert pb.tree_map(lambda w: 2 * w, Squared(3.0)).square == 36.0
    found = pb.optim.minimize(lambda a: (a.square - 4.0) ** 2, Product(3.0)).params
    assert np.isclose(found.value, 4.0 * found.v)


def test_what_is_known_of_a_class_does_not_keep_it():
    def passing():
        @dataclass
        class Passing:
            """A class of a call."""

            w: Any

            def __post_init__(self) -> None:
                self.square = self.w**2

        assert pb.grad(lambda p: p.square)(Passing(3.0)).w == 6.0
        return weakref.ref(Passing)

    kind = passing()
    gc.collect()
    assert kind() is None
