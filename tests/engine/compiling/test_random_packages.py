"""Packages put together at random, and changed at random between calls: compiled they do what they do.

The text of a package is in its folder, and the changes made to it are in the message of a failure. Below, a function that
reads something is reached in all the ways that Python has, and what it reads is changed at random.
"""

import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import importlib
import os
import random
import sys
import types
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb

#: Packages in the usual run; more are a long run: `PULLBACK_RANDOM_PACKAGES=500 pytest -m "" tests/engine/compiling/test_random_packages.py`.
PACKAGES = int(os.environ.get("PULLBACK_RANDOM_PACKAGES", "8"))
CHANGES = 12
X = np.array([0.3, 0.7, 1.1])

LOWER = """\
import copy, logging
from collections import namedtuple
from dataclasses import dataclass
from functools import lru_cache, partial
import numpy as np

log = logging.getLogger(__name__)
RATE, COUNT, FLAG, MODE = 0.5, 2, True, "sin"
TABLE = np.array([1.0, 2.0, 3.0])
SETTINGS = {"power": 2.0, "steps": 2, "weights": np.array([0.5, 0.25, 0.125]), "inner": [1.0, np.ones(3)]}


@dataclass
class Config:
    rate: float = 0.25
    width: int = 3
    table: object = None


class Base:
    scale = 2.0

    def apply(self, x):
        return np.tanh(x * self.gain) * self.scale


class Model(Base):
    __slots__ = ("gain", "parts")

    def __init__(self):
        self.gain, self.parts = np.random.default_rng(0).normal(), [np.ones(3), 1.5]

    @property
    def weight(self):
        return self.parts[0] * self.parts[1]


CONFIG, MODEL = Config(table=np.array([0.1, 0.2, 0.3])), Model()


def helper(x):
    return np.sin(x) * RATE


def repeated(x):
    for _ in range(COUNT):
        x = x * 0.5 + 0.1
    return x


@lru_cache
def window(n):
    return np.linspace(0.5, 1.0, n)


@lru_cache(maxsize=None)
def settings():
    return Config(rate=0.4, table=np.array([0.3, 0.2, 0.1]))


halved = partial(np.multiply, 0.5)
ORDER, PAIR = {0, 8}, namedtuple("Pair", "a b")(0.5, np.array([0.1, 0.2, 0.3]))
"""

#: Terms that a function of the upper module adds up; `{m}` is how it reaches the lower one.
TERMS = """\
{m}.helper(x)
{m}.repeated(x)
x * {m}.RATE
x * {m}.TABLE
x * {m}.SETTINGS["weights"] ** {m}.SETTINGS["power"]
x * {m}.SETTINGS["inner"][0] + {m}.SETTINGS["inner"][1]
x * {m}.CONFIG.rate * {m}.CONFIG.table
np.reshape(x * 2.0, ({m}.CONFIG.width,))
{m}.MODEL.apply(x)
x * {m}.MODEL.weight
{m}.Model().apply(x)
{m}.halved(x)
x * {m}.window(len(x))
x * {m}.settings().rate + {m}.settings().table
x * sum(place * k for place, k in enumerate({m}.ORDER))
x * {m}.PAIR.a + {m}.PAIR.b
copy.copy({m}.CONFIG).rate * copy.deepcopy(x)
(x if {m}.FLAG else x * x)
(np.sin(x) if {m}.MODE == "sin" else np.cos(x))
x * getattr({m}, "MISSING", 1.5)
x * (RATES[0] if {m}.COUNT > 1 else RATES[1])
x * ({m}.CONFIG.rate if isinstance({m}.CONFIG.rate, float) else 0.0)
by_hand({m}, x)
inside(x)
quiet(x)
logged(x)
CLOSED(x)
default(x)""".splitlines()

UPPER = """\
import copy, logging
import numpy as np
import PACKAGE.lower
import PACKAGE.lower as low
from . import lower as beside
from .lower import helper, Model, log

RATES = [0.75, 0.25]
HELD = {"module": beside}


def by_hand(m, x):
    return x * m.RATE + m.helper(x)


def inside(x):
    from .lower import helper as inner, CONFIG
    import PACKAGE.lower as other
    return inner(x) * CONFIG.rate + other.COUNT


def quiet(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, np.log(x), 0.0)


def logged(x):
    log.debug("x is %s", x)
    if log.isEnabledFor(logging.DEBUG):
        print(x)
    return x * RATES[1]


def default(x, rate=low.RATE, rng=np.random.default_rng(0)):
    return x * rate


def make(config):
    def closed(x):
        return x * config.rate + config.table
    return closed


CLOSED = make(low.CONFIG)


def f(x):
    return np.sum({terms})
"""

#: What may happen between two calls, to the lower module `m` and the upper one `u`; `k` is a number that changes.
HAPPENINGS = (
    lambda m, u, k: setattr(m, "RATE", 0.1 * k),
    lambda m, u, k: setattr(m, "RATE", k),
    lambda m, u, k: setattr(m, "COUNT", k % 4),
    lambda m, u, k: setattr(m, "FLAG", k % 2 == 0),
    lambda m, u, k: setattr(m, "MODE", "sin" if k % 2 else "cos"),
    lambda m, u, k: m.TABLE.__setitem__(k % 3, float(k)),
    lambda m, u, k: setattr(m, "TABLE", np.full(3, 0.1 * k)),
    lambda m, u, k: m.SETTINGS.update(power=float(k % 3)),
    lambda m, u, k: m.SETTINGS.update(weights=np.full(3, 0.2 * k + 0.1)),
    lambda m, u, k: m.SETTINGS["inner"].__setitem__(0, 0.3 * k),
    lambda m, u, k: setattr(m, "SETTINGS", {**m.SETTINGS, f"new{k}": k}),
    lambda m, u, k: setattr(m.CONFIG, "rate", 0.05 * k),
    lambda m, u, k: setattr(m, "CONFIG", m.Config(0.01 * k, 3, np.ones(3) * k)),
    lambda m, u, k: setattr(m.MODEL, "gain", 0.2 * k),
    lambda m, u, k: m.MODEL.parts.__setitem__(k % 2, 0.5 * k),
    lambda m, u, k: setattr(m.Base, "scale", 0.5 * k),
    lambda m, u, k: setattr(m.Model, "apply", lambda self, x: x * self.gain * k),
    lambda m, u, k: setattr(m, "MODEL", m.Model()),
    lambda m, u, k: setattr(m, "helper", lambda x: x * m.RATE * k),
    lambda m, u, k: setattr(m, "halved", lambda x: x / (1 + k)),
    lambda m, u, k: setattr(m, "window", lambda n: np.arange(n) * 0.1 * k),
    lambda m, u, k: setattr(m, "MISSING", 0.1 * k),
    lambda m, u, k: setattr(m.settings(), "rate", 0.05 * k),
    lambda m, u, k: m.settings().table.__setitem__(k % 3, 0.1 * k),
    lambda m, u, k: m.settings.cache_clear(),
    lambda m, u, k: (m.ORDER.clear(), m.ORDER.add(8 * (k % 2)), m.ORDER.add(8 * (1 - k % 2))),
    lambda m, u, k: setattr(m, "PAIR", collections.namedtuple("Pair", "b a")(np.full(3, 0.1 * k), 0.2 * k)),  # noqa: PYI024
    lambda m, u, k: u.RATES.__setitem__(k % 2, 0.2 * k),
    lambda m, u, k: setattr(u, "CLOSED", u.make(m.Config(0.2 * k, 3, np.ones(3)))),
    lambda m, u, k: setattr(u.default, "__defaults__", (0.3 * k, np.random.default_rng(0))),
    lambda m, u, k: m.log.setLevel("INFO" if k % 2 else "WARNING"),
    lambda m, u, k: importlib.reload(m),
    lambda m, u, k: importlib.reload(u),
)


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"random_{tmp_path.name}"

    def write(terms):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        (folder / "lower.py").write_text(LOWER)
        upper = UPPER.replace("PACKAGE", name).replace("{terms}", " + ".join(terms).replace("PACKAGE", name))
        (folder / "upper.py").write_text(upper)
        importlib.invalidate_caches()
        upper = importlib.import_module(f"{name}.upper")
        return sys.modules[f"{name}.lower"], upper

    yield write
    for module in [module for module in sys.modules if module.startswith(name)]:
        del sys.modules[module]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("number", range(PACKAGES))
def test_plans_do_what_the_package_does_whatever_changes_in_it(number, written):
    choose = random.Random(number)
    ways = ("PACKAGE.lower", "low", "beside", "HELD['module']")
    terms = [term.format(m=choose.choice(ways)) for term in choose.sample(TERMS, choose.randint(2, 6))]
    m, u = written(terms)
    f = u.f
    plans = {tier: pb.compile(pb.value_and_grad(f), tier=tier) for tier in pb.TIERS}
    done = []
    for step in range(CHANGES):
        if step:
            happening = choose.randrange(len(HAPPENINGS))
            k = choose.randint(0, 7)
            done.append((happening, k))
            HAPPENINGS[happening](m, u, k)
        for _ in range(2):
            value, slope = plans["unfused"](X)
            np.testing.assert_allclose(value, f(X), rtol=1e-12)
            for tier in ("fused", "stateful", "native"):
                ours = plans[tier](X)
                message = f"{tier}: {' + '.join(terms)} after {done}"
                np.testing.assert_allclose(ours[0], value, rtol=1e-10, atol=1e-12, err_msg=message)
                np.testing.assert_allclose(ours[1], slope, rtol=1e-10, atol=1e-12, err_msg=message)
                assert plans[tier].summary()["fallbacks"] == [], message


# --- ways to reach a function that reads something -----------------------------------------------------------------------
class Held:
    """A way: `held(read)` gives a thing, and `call(thing, x)` calls `read` through it."""

    def __init__(self, held, call=lambda thing, x: thing(x), *, is_followed=True):
        self.held, self.call, self.is_followed = held, call, is_followed


@functools.cache
def node_class():
    """A class that is no dataclass, for `pb.register_pytree_node`."""

    class Node:
        def __init__(self, w, rest):
            self.w, self.rest = w, rest

    pb.register_pytree_node(Node, lambda node: ((node.w,), node.rest), lambda rest, parts: Node(parts[0], rest))
    return Node


class Config:
    """A plain object, compared by identity."""

    def __init__(self, read):
        self.read = read


def made_class(read, **members):
    """A class whose method calls `read`."""
    return type("Made", (), {"apply": lambda self, x: read(x), **members})


def dataclass_with(read, **members):
    """An argument whose method calls `read`."""
    namespace = {"apply": lambda self, x: read(x) * self.w, **members}
    return dataclasses.dataclass(type("Argument", (), {"__annotations__": {"w": Any}, **namespace}))(1.0)


def enumeration(read, base=enum.Enum, value=1):
    """A member of an enumeration with a method that calls `read`."""

    class Mode(base):
        FIRST = value

        def apply(self, x):
            return read(x)

    return Mode.FIRST


def named_tuple(read):
    """A named tuple with a method that calls `read`."""

    class Pair(NamedTuple):
        w: Any

        def apply(self, x):
            return read(x) * self.w

    return Pair(1.0)


def wrapped(read):
    """A function that does not call what it wraps."""

    @functools.wraps(read)
    def around(x):
        return x

    return around


def with_factory(read):
    """A dataclass that is made inside the function, with a default that is made by `read`."""
    members = [("w", Any, dataclasses.field(default_factory=lambda: read(1.0)))]
    return dataclasses.make_dataclass("Made", members)


def entering(read):
    """A context manager that gives what `read` gives."""

    @contextlib.contextmanager
    def manager():
        yield read(1.0)

    return manager


def entered(manager, x):
    """Inside such a context."""
    with manager() as k:
        return k * x


def beside(read):
    """A dataclass with an attribute that is no field."""
    argument = dataclass_with(lambda x: x)
    argument.read = read
    return argument


def lazy_module(read):
    """A module whose names are made when they are looked up."""
    module = types.ModuleType("lazy")
    module.__getattr__ = lambda name: read(1.0)
    return module


def builtin(read):
    """A function that reads a name among the built-in ones."""
    builtins.read_in_tests = read
    return eval("lambda x: read_in_tests(x)", {})  # noqa: S307 (a function without that global)


def apart(read):
    """A primitive, which is called as it is."""
    primitive = pb.primitive(lambda x: np.asarray(read(x), dtype=float))
    primitive.pulls(lambda y_bar, y, x: y_bar)
    return primitive


def missing(name):
    """The value where an object has no such attribute."""
    raise AttributeError(name)


def by_method(thing, x):
    return thing.apply(x)


def used_before(transform):
    """A derivative or the like that has been taken before, of a function whose derivative is `read`."""

    def held(read):
        transformed = transform(lambda x: read(1.0) * np.sum(x * x) / 2)
        transformed(X)
        return transformed

    return held


AROUND = {
    "a function": Held(lambda read: read),
    "a partial": Held(lambda read: functools.partial(read)),
    "a keyword of a partial": Held(lambda read: functools.partial(lambda x, f: f(x), f=read)),
    "a default": Held(lambda read: lambda x, f=read: f(x)),
    "a list": Held(lambda read: [read], lambda thing, x: thing[0](x)),
    "a dict": Held(lambda read: {"a": [read]}, lambda thing, x: thing["a"][0](x)),
    "a key": Held(lambda read: {read: 2.0}, lambda thing, x: sum(f(x) * k for f, k in thing.items())),
    "an object as key": Held(lambda read: {Config(read): 2.0}, lambda thing, x: sum(c.read(x) for c in thing)),
    "a set": Held(lambda read: {read}, lambda thing, x: sum(f(x) for f in thing)),
    "a frozenset": Held(lambda read: frozenset([Config(read)]), lambda thing, x: sum(c.read(x) for c in thing)),
    "an attribute": Held(Config, lambda thing, x: thing.read(x)),
    "a method": Held(lambda read: made_class(read)(), by_method),
    "a bound method": Held(lambda read: made_class(read)().apply),
    "an inherited method": Held(lambda read: type("Sub", (made_class(read),), {})(), by_method),
    "a callable object": Held(lambda read: made_class(read, __call__=lambda self, x: self.apply(x))()),
    "a property": Held(
        lambda read: made_class(read, k=property(lambda self: read(1.0)))(), lambda thing, x: thing.k * x
    ),
    "a class": Held(lambda read: made_class(read, s=staticmethod(read)), lambda thing, x: thing.s(x)),
    "slots": Held(lambda read: made_class(read, __slots__=("k",))(), by_method),
    "a class made by types": Held(lambda read: types.new_class("New", (made_class(read),))(), by_method),
    "a class of types": Held(
        lambda read: types.new_class("New", (), {}, lambda names: names.update(apply=lambda self, x: read(x)))(),
        by_method,
    ),
    "an enumeration": Held(enumeration, by_method),
    "an enumeration of numbers": Held(lambda read: enumeration(read, base=enum.IntEnum), by_method),
    "the value of a member": Held(
        lambda read: enumeration(read, value=Config(read)), lambda thing, x: thing.value.read(x)
    ),
    "a text of a class": Held(lambda read: type("Text", (str,), {"apply": lambda self, x: read(x)})("a"), by_method),
    "an attribute of a text": Held(
        lambda read: vars_of(type("Text", (str,), {})("a"), read=read), lambda thing, x: thing.read(x)
    ),
    "a named tuple": Held(named_tuple, by_method),
    "a default that is made": Held(with_factory, lambda thing, x: thing().w * x),
    "what is wrapped": Held(wrapped, lambda thing, x: thing.__wrapped__(x)),
    "a context manager": Held(entering, entered),
    "what is remembered": Held(
        lambda read: functools.lru_cache(lambda: Config(read)), lambda thing, x: thing().read(x)
    ),
    "what is remembered without bound": Held(
        lambda read: functools.cache(lambda: [read]), lambda thing, x: thing()[0](x)
    ),
    "what a method remembers": Held(
        lambda read: made_class(read, again=functools.lru_cache(lambda self: Config(read)))(),
        lambda thing, x: thing.again().read(x),
    ),
    "a module that makes names": Held(lazy_module, lambda thing, x: thing.k * x),
    "a built-in name": Held(builtin),
    "a ufunc": Held(lambda read: np.frompyfunc(read, 1, 1), lambda thing, x: float(thing(1.0)) * x, is_followed=False),
    "a primitive on a constant": Held(apart, lambda thing, x: thing(1.0) * x, is_followed=False),
    "a plan": Held(lambda read: pb.compile(read, tier="fused")),
    "vmap": Held(lambda read: pb.vmap(read)),
    "checkpoint": Held(pb.checkpoint, is_followed=False),
    "a gradient": Held(used_before(pb.grad)),
    "a Jacobian": Held(used_before(pb.jacobian)),
    "a Hessian": Held(used_before(pb.hessian), lambda thing, x: thing(x) @ x),
    "a body of scan": Held(
        lambda read: lambda c, e: (c + read(e), None), lambda thing, x: pb.scan(thing, np.zeros(()), x)[0] * x
    ),
    "a branch": Held(lambda read: read, lambda thing, x: pb.cond(x[0] > 0, thing, lambda x: x, x)),
}
ARGUMENTS = {
    "a method of a dataclass": Held(dataclass_with, by_method),
    "a class attribute": Held(
        lambda read: dataclass_with(read, held=Config(read)), lambda thing, x: thing.held.read(x) * thing.w
    ),
    "__getattr__": Held(
        lambda read: dataclass_with(read, __getattr__=lambda self, name: read if name == "other" else missing(name)),
        lambda thing, x: thing.other(x) * thing.w,
    ),
    "a partial method": Held(
        lambda read: dataclass_with(read, again=functools.partialmethod(lambda self, x: read(x))),
        lambda thing, x: thing.again(x),
        is_followed=False,
    ),
    "no field": Held(beside, lambda thing, x: thing.read(x) * thing.w),
    "a named tuple": Held(named_tuple, by_method),
    "an enumeration": Held(enumeration, by_method),
    "a key": Held(lambda read: {read: 2.0}, lambda thing, x: sum(f(x) * k for f, k in thing.items())),
    "a text of a class": Held(lambda read: type("Text", (str,), {"apply": lambda self, x: read(x)})("a"), by_method),
    "a part of the structure": Held(
        lambda read: node_class()(1.0, Config(read)), lambda thing, x: thing.rest.read(x) * thing.w
    ),
    "a function of the structure": Held(lambda read: node_class()(1.0, read), lambda thing, x: thing.rest(x) * thing.w),
    "a constant of a cut": Held(
        lambda read: pb.cut({"w": pb.uncut(1.0), "c": Config(read)}), lambda thing, x: thing["c"].read(x) * thing["w"]
    ),
}


def vars_of(thing, **attributes):
    """The thing, with these attributes."""
    vars(thing).update(attributes)
    return thing


#: What may happen to what is read.
CHANGES_OF_VALUES = (
    lambda held, k: setattr(held, "value", 0.5 * k),
    lambda held, k: setattr(held, "value", k),
    lambda held, k: setattr(held, "value", np.float32(k)),
    lambda held, k: setattr(held, "value", np.full(3, 0.1 * k)),
    lambda held, k: setattr(held, "value", [0.1 * k, k]),
    lambda held, k: held.value.__setitem__(0, 0.3 * k) if isinstance(held.value, np.ndarray | list) else None,
    lambda held, k: held.value.append(1.0) if isinstance(held.value, list) else None,
    lambda held, k: setattr(held, "value", np.full(3000, 0.01 * k)),
)


@pytest.mark.sample(every=9)
@pytest.mark.parametrize(
    "way", [f"{name} around" for name in AROUND] + [f"{name} of an argument" for name in ARGUMENTS]
)
def test_what_is_read_is_seen_in_whatever_way_it_is_reached(way):
    choose = random.Random(way)
    is_around = way.endswith(" around")
    name = way.removesuffix(" around") if is_around else way.removesuffix(" of an argument")
    one = (AROUND if is_around else ARGUMENTS)[name]
    held = types.SimpleNamespace(value=0.5)
    thing = one.held(lambda x: x * np.sum(held.value))
    f = (lambda x, _: np.sum(one.call(thing, x))) if is_around else (lambda x, thing: np.sum(one.call(thing, x)))
    given = None if is_around else thing
    plans = {tier: pb.compile(pb.value_and_grad(f), tier=tier) for tier in ("fused", "stateful", "native")}
    done = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.errors.PlanWarning)  # recorded often, and large arrays that classes read
        for _ in range(CHANGES):
            value, slope = pb.value_and_grad(f)(X, given)
            for tier, plan in plans.items():
                for _ in range(2):
                    ours = plan(X, given)
                    np.testing.assert_allclose(ours[0], value, rtol=1e-6, err_msg=f"{tier} after {done}")
                    np.testing.assert_allclose(ours[1], slope, rtol=1e-6, err_msg=f"{tier} after {done}")
                fallbacks = plan.summary()["fallbacks"]
                assert not one.is_followed or np.size(held.value) > 3 or fallbacks == [], f"{tier} after {done}"
            done.append((choose.randrange(len(CHANGES_OF_VALUES)), choose.randint(0, 7)))
            CHANGES_OF_VALUES[done[-1][0]](held, done[-1][1])
