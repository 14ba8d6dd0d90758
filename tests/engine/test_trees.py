"""Arguments that are dicts of a class of their own, or dataclasses with more than their fields, are what they were given as."""

from collections import Counter, OrderedDict, defaultdict
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import pullback as pb

X = np.array([1.0, 2.0])
TIERS = pytest.mark.parametrize("tier", pb.TIERS)


class Bunch(dict):
    """A dict whose items are read like attributes."""

    __getattr__ = dict.__getitem__


class AttributeDict(dict):
    """A dict whose items are its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(items)
        self.__dict__ = self


class Parameters(dict):
    """A dict with a method, and a number that is no item."""

    scale = 2.0

    def energy(self) -> Any:
        return self["w"] @ self["w"] * self.scale


class Registered(dict):
    """A dict that says itself what its parts are."""


pb.register_pytree_node(
    Registered, lambda node: ((node["w"],), node["degree"]), lambda degree, parts: Registered(w=parts[0], degree=degree)
)


@dataclass
class Gaussian:
    """A dataclass that computes something once."""

    mean: Any
    deviation: Any

    @cached_property
    def precision(self) -> Any:
        return 1 / self.deviation**2


@dataclass
class Scaled:
    """A dataclass with an attribute that is no field."""

    w: Any
    scale: InitVar[Any] = 1.0

    def __post_init__(self, scale: Any) -> None:
        self.factor = scale


@TIERS
@pytest.mark.parametrize(
    ("tree", "function", "value"),
    [
        (Bunch(w=X), lambda tree: np.sum(tree.w**2), 5.0),
        (AttributeDict(w=X), lambda tree: np.sum(tree.w) + tree["w"][1], 5.0),
        (Parameters(w=X), lambda tree: tree.energy(), 10.0),
        (defaultdict(float, w=X), lambda tree: np.sum(tree["w"]) + tree["b"], 3.0),
        (OrderedDict(w=X, b=X), lambda tree: np.sum(tree.popitem(last=False)[1]), 3.0),
        (Counter(a=2.0), lambda tree: tree["a"] + tree["b"], 2.0),
        (Registered(w=X, degree=3), lambda tree: np.sum(tree["w"] ** tree["degree"]), 9.0),
    ],
    ids=lambda part: type(part).__name__,
)
def test_dicts_keep_their_class(tier, tree, function, value):
    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    for _ in range(3):
        found, gradient = plan(tree)
        assert found == value
        assert type(gradient) is type(tree)
        assert list(gradient) == list(tree)
    assert tier == "unfused" or plan.summary()["fallbacks"] == []


@TIERS
def test_items_that_are_attributes_are_those_of_the_gradient(tier):
    tree = AttributeDict(w=X)
    gradient = pb.compile(pb.grad(lambda tree: np.sum(tree.w**2)), tier=tier)(tree)
    assert gradient.w is gradient["w"]
    assert np.array_equal(gradient.w, 2 * X)
    assert tree.w is X


@TIERS
def test_what_an_argument_has_computed_before_is_computed_again(tier):
    gaussian = Gaussian(1.0, 2.0)
    assert gaussian.precision == 0.25
    gradient = pb.compile(pb.grad(lambda g: g.mean * g.precision), tier=tier)(gaussian)
    assert (gradient.mean, gradient.deviation) == (0.25, -0.25)
    assert vars(gaussian)["precision"] == 0.25


@TIERS
def test_attributes_beside_the_parts_are_those_of_the_call(tier):
    plan = pb.compile(lambda tree: np.sum(tree.w) * tree.factor, tier=tier)
    assert [plan(Scaled(X, scale)) for scale in (1.0, 2.0, 2.0, 3.0)] == [3.0, 6.0, 6.0, 9.0]
    energy = pb.compile(lambda tree: tree.energy(), tier=tier)
    tree = Parameters(w=X)
    for tree.scale in (1.0, 3.0, 3.0):
        assert energy(tree) == 5 * tree.scale


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_attributes_that_may_change_unseen_are_left_to_the_tape(tier):
    scaled = Scaled(X, np.ones(2))
    plan = pb.compile(lambda tree: np.sum(tree.w * tree.factor), tier=tier)
    with pytest.warns(pb.errors.PlanWarning, match=r"no part of it, Scaled\.factor; make it a field"):
        assert plan(scaled) == 3.0
    scaled.factor[:] = 2.0
    assert plan(scaled) == 6.0
