"""What plans could take for unchanged: equal values that differ, objects told by what they are, what others remember.

Each case is a function, its arguments, and what is done between calls. A plan gives in every tier what the function gives.
"""

import collections
import copy
import dataclasses
import enum
import functools
import statistics
import types
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, 0.7, 1.1])
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def around(make, *values):
    """A case of a function made with a holder, whose `value` becomes one after the other."""

    def made():
        held = types.SimpleNamespace(value=values[0])
        return make(held), (X,), [functools.partial(setattr, held, "value", value) for value in values[1:]]

    return made


def given(f, *values):
    """A case of a function of X and an argument that becomes one after the other."""

    def made():
        held = [values[0]]
        return f, lambda: (X, held[0]), [functools.partial(held.__setitem__, 0, value) for value in values[1:]]

    return made


def matched(value):
    match value:
        case True:
            return 2.0
        case False:
            return 3.0
        case _:
            return 5.0


def kind_of(value):
    return {bool: 2.0, float: 3.0, int: 5.0}[type(value)]


class Equal:
    """Equal to all others."""

    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


class Index:
    """Used as an index."""

    def __init__(self, k):
        self.k = k

    def __index__(self):
        return self.k


@dataclasses.dataclass(frozen=True)
class Half:
    """Equal to another one that differs in `rest`."""

    k: float
    rest: Any = dataclasses.field(default=None, compare=False)


class Node:
    """A node of trees with something beside its part."""

    def __init__(self, w, rest):
        self.w, self.rest = w, rest


pb.register_pytree_node(Node, lambda node: ((node.w,), node.rest), lambda rest, parts: Node(parts[0], rest))


class Text(str):  # noqa: SLOT000 (the point)
    """A text with an attribute."""


def with_k(thing, k):
    thing.k = k
    return thing


One = collections.namedtuple("One", "a b")  # noqa: PYI024
Other = collections.namedtuple("One", "b a")  # noqa: PYI024 (of the same name)
sum_of_kinds = lambda held: lambda x: np.sum(x) * sum(map(kind_of, held.value))  # noqa: E731
sum_in_order = lambda held: lambda x: sum(x[i] * k for i, k in enumerate(held.value))  # noqa: E731

CASES |= {
    "kinds in a frozenset": around(sum_of_kinds, frozenset([1]), frozenset([True]), frozenset([1.0])),
    "kinds in a set": around(sum_of_kinds, {1}, {True}, {1.0}),
    "kinds in a slice": around(lambda held: lambda x: np.sum(x) * kind_of(held.value.start), slice(1, 2), slice(True, 2)),
    "order of a frozenset": around(sum_in_order, frozenset([0, 8]), frozenset([8, 0])),
    "equal objects in a frozenset": around(
        lambda held: lambda x: np.sum(x) * sum(one.k for one in held.value), frozenset([Equal(1.0)]), frozenset([Equal(2.0)])
    ),
    "named tuples of one name": around(lambda held: lambda x: np.sum(x * held.value.a), One(1.0, 2.0), Other(1.0, 2.0)),
    "named tuples of arrays": around(lambda held: lambda x: np.sum(x * held.value.a), One(X, -X), Other(X, -X)),
    "keys of an argument": given(
        lambda x, d: sum(np.sum(x * v) * kind_of(k) for k, v in d.items()), {1: X}, {True: X}, {1.0: X}, {1: -X}
    ),
    "an attribute of a text": given(lambda x, t: np.sum(x) * t.k, with_k(Text("a"), 1.0), with_k(Text("a"), 2.0)),
    "is True": given(lambda x, k: np.sum(x) * (2.0 if k is True else 3.0), True, False, 1, np.True_),
    "is False, inside": given(lambda x, t: np.sum(x) * (2.0 if t["k"] is False else 3.0), {"k": False}, {"k": True}),
    "case True": given(lambda x, k: np.sum(x) * matched(k), True, False, 1, 2.5),
    "fields that are not compared": given(
        lambda x, node: np.sum(x * node.w) * node.rest.rest * kind_of(node.rest.k),
        *[Node(X, rest) for rest in (Half(1.0, 2.0), Half(1.0, 5.0), Half(True, 5.0), Half(1.0, 2.0))],
    ),
    "the rest of a node": given(
        lambda x, node: np.sum(x * node.w) * sum(map(kind_of, node.rest)),
        *[Node(X, rest) for rest in ((1, 2), (True, 2), (1.0, 2), (1, 2))],
    ),
    "the text of a number": given(lambda x, k: np.sum(x) * len(str(k)), 1, 100, 10_000),
    "an index that is an argument": given(lambda x, i: np.sum(x) + x[i] * x[i] + x[i] * x[0], 1, 2, 0),
}  # fmt: skip


@case
def order_of_a_set():
    numbers = {0, 8}

    def exchange(*values):
        numbers.clear()
        for value in values:
            numbers.add(value)

    return (
        (lambda x: sum(x[i] * k for i, k in enumerate(numbers))),
        (X,),
        [lambda: exchange(8, 0), lambda: exchange(0, 8)],
    )


@case
def equal_objects_in_a_set():
    held = {Equal(1.0)}

    def exchange():
        held.clear()
        held.add(Equal(3.0))

    return (lambda x: np.sum(x) * sum(one.k for one in held)), (X,), [exchange]


@case
def a_named_tuple_of_a_reloaded_module():
    def reloaded(k):
        class Pair(NamedTuple):
            a: Any

            def apply(self, x):
                return x * self.a * k

        return Pair(np.ones(3))

    held = types.SimpleNamespace(pair=reloaded(1.0))
    return (lambda x: np.sum(held.pair.apply(x))), (X,), [lambda: setattr(held, "pair", reloaded(3.0))]


@case
def an_index_inside_a_slice():
    held = Index(1)
    part = slice(0, held)
    return (lambda x: np.sum(x[part])), (X,), [lambda: setattr(held, "k", 2)]


@case
def a_row_of_a_structured_array():
    rows = np.zeros(2, dtype=[("a", float), ("b", int)])
    row = rows[0]
    return (
        (lambda x: np.sum(x * row["a"])),
        (X,),
        [lambda: rows.__setitem__("a", 7.0), lambda: row.__setitem__("a", 5.0)],
    )


# --- objects told by what they are: a plan records with copies of those that lead to arrays ---------------------------------
class Part:
    """An object with an array."""

    instances: list["Part"] = []  # noqa: RUF012 (the point)

    def __init__(self):
        self.w = np.ones(3)


def told(make_factor, *changes):
    """A case in which what a method reads of itself decides."""

    def made():
        kind = type("Own", (Part,), {"instances": [], "ended": []})
        part = kind()
        table = {part: 3.0, id(part): 5.0}
        factor = make_factor(part, table)
        kind.factor = lambda self: factor(self)
        return (
            (lambda x: np.sum(x * part.w) * part.factor()),
            (X,),
            [functools.partial(c, part, table) for c in changes],
        )

    return made


CASES |= {
    "a key of a dict": told(
        lambda part, table: lambda self: table.get(self, 1.0), lambda part, table: table.update({part: 4.0})
    ),
    "an id": told(
        lambda part, table: lambda self: table.get(id(self), 1.0), lambda part, table: table.update({id(part): 4.0})
    ),
    "an element of a list of the class": told(
        lambda part, table: lambda self: 2.0 if self in type(self).instances else 1.0,
        lambda part, table: type(part).instances.append(part),
        lambda part, table: type(part).instances.clear(),
    ),
    "an attribute of the class": told(
        lambda part, table: lambda self: 2.0 if self is type(self).instances else 1.0,
        lambda part, table: setattr(type(part), "instances", part),
    ),
}


@case
def an_element_of_a_set():
    part = Part()
    active = {part}
    changes = [lambda: active.discard(part), lambda: active.add(part)]
    return (lambda x: np.sum(x * part.w) * (2.0 if part in active else 1.0)), (X,), changes


@case
def what_a_method_remembers():
    class Own(Part):
        @functools.lru_cache  # noqa: B019 (the point)
        def doubled(self):
            return self.w * 2

    part = Own()
    return (lambda x: np.sum(x * part.doubled())), (X,), [lambda: part.w.fill(3.0), Own.doubled.cache_clear]


def test_copies_of_objects_are_not_ended():
    ended = []

    class Handle(Part):
        def __del__(self):
            ended.append(self)

    handle = Handle()
    plan = pb.compile(lambda x: np.sum(x * handle.w), tier="fused")
    with pytest.warns(pb.errors.PlanWarning, match="__del__"):
        assert plan(X) == np.sum(X)
    assert ended == []


# --- what functions with lru_cache remember ----------------------------------------------------------------------------------
def remembered(make, bound, *changes):
    """A case of a function that remembers one result."""

    def made():
        one = functools.lru_cache(maxsize=bound)(make)
        return (lambda x: np.sum(x * read(one()))), (X,), [lambda change=change: change(one()) for change in changes]

    return made


def read(result):
    return result.value if isinstance(result, types.SimpleNamespace) else result[0]


def namespace():
    return types.SimpleNamespace(value=1.0)


MUTATIONS = (
    lambda result: setattr(result, "value", 3.0),
    lambda result: setattr(result, "value", np.full(3, 2.0)),
    lambda result: result.value.fill(5.0),
)
CASES |= {
    f"{name} remembered, {bound}": remembered(make, bound, *changes)
    for bound in (None, 128)
    for name, make, changes in (
        ("an object", namespace, MUTATIONS),
        ("a list", lambda: [1.0], (lambda result: result.__setitem__(0, 3.0),)),
        ("an array", lambda: np.ones(3), (lambda result: result.fill(3.0),)),
    )
}


@pytest.mark.parametrize("bound", [None, 128])
def test_what_is_remembered_is_an_input_and_no_reason_for_the_tape(bound):
    @functools.lru_cache(maxsize=bound)
    def settings():
        return types.SimpleNamespace(rate=0.5, w=np.ones(3000))

    plan = pb.compile(lambda x: np.sum(x * settings().w) * settings().rate, tier="native")
    for k in range(4):
        settings().rate, settings().w[0] = 0.1 * k, k
        np.testing.assert_allclose(plan(2.0), 2.0 * np.sum(settings().w) * settings().rate)
        assert plan.summary()["fallbacks"] == []
    assert sum(plan.summary()["recordings"].values()) <= 3


@pytest.mark.parametrize("bound", [None, 128, 1])
@pytest.mark.parametrize("tier", ["fused", "native"])
def test_what_is_forgotten_is_computed_again(tier, bound):
    held = types.SimpleNamespace(rate=0.5)
    rate = functools.lru_cache(maxsize=bound)(lambda k: held.rate * k)
    table = functools.lru_cache(maxsize=bound)(lambda: np.full(3, held.rate))
    plan = pb.compile(lambda x: np.sum(x * table()) * rate(2.0), tier=tier)
    f = lambda x: np.sum(x * table()) * rate(2.0)  # noqa: E731
    for k in range(3):
        for forget in (lambda: None, rate.cache_clear, table.cache_clear, lambda: rate(7.0)):
            held.rate = 0.1 * k
            forget()
            for _ in range(2):
                np.testing.assert_allclose(plan(X), f(X))
            assert plan.summary()["fallbacks"] == []


def test_more_is_remembered_than_is_watched():
    @functools.lru_cache(maxsize=None)  # noqa: UP033 (the point)
    def table(n):
        return np.ones(n)

    for n in range(1, 100):
        table(n)
    plan = pb.compile(lambda x: np.sum(x * table(3)), tier="fused")
    with pytest.warns(pb.errors.PlanWarning, match="remembers 99 arrays or objects"):
        plan(X)
    table(3)[0] = 5.0
    np.testing.assert_allclose(plan(X), np.sum(X * table(3)))


def test_what_is_new_at_each_recording_is_said():
    table = functools.lru_cache(maxsize=None)(lambda key: [1.0])
    plan = pb.compile(lambda x: np.sum(x) * table(object())[0], tier="fused")
    with pytest.warns(pb.errors.PlanWarning, match="remembers something new"):
        plan(X)
    np.testing.assert_allclose(plan(X), np.sum(X))


# --- random numbers -----------------------------------------------------------------------------------------------------------
def drawing(make):
    """A case in which a generator is looked at, and drawn from between calls."""

    def made():
        rng = np.random.default_rng(0)
        return (lambda x: np.sum(x) * make(rng)), (X,), [rng.normal, rng.normal]

    return made


CASES |= {
    "a copy of a generator": drawing(lambda rng: copy.deepcopy(rng).normal()),
    "the state of a generator": drawing(lambda rng: rng.bit_generator.state["state"]["state"] % 97),
}


def test_generators_that_are_spawned_and_samples_differ_on_each_call():
    rng, normal = np.random.default_rng(0), statistics.NormalDist(0.0, 1.0)
    for function in (lambda x: x * rng.spawn(1)[0].normal(), lambda x: x * normal.samples(1)[0]):
        plan = pb.compile(function, tier="fused")
        with pytest.warns(pb.errors.PlanWarning, match="random"):
            first = plan(2.0)
        assert plan(2.0) != first


# --- results and calls ----------------------------------------------------------------------------------------------------------
def test_what_results_hold_beside_their_parts_is_theirs():
    @dataclasses.dataclass
    class Result:
        v: Any

        def __post_init__(self):
            self.twice = self.v * 2

    class Bunch(dict):
        pass

    makings = (Result, lambda v: with_k(Bunch(v=v), v + 1), lambda v: Node(v, 3 * v))
    readings = (lambda r: r.twice, lambda r: r.k, lambda r: r.rest)
    for make, reading in zip(makings, readings, strict=True):
        plan = pb.compile(lambda x, make=make: make(np.sin(x)), tier="fused")
        with pytest.warns(pb.errors.PlanWarning, match="no part of it"):
            plan(X)
        for k in range(2):
            np.testing.assert_allclose(reading(plan(X + k)), reading(make(np.sin(X + k))))


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_further_keywords_come_in_the_order_of_the_call(tier):
    def f(x, **keywords):
        return sum(np.sum(x * value) * k for k, value in enumerate(keywords.values(), 1))

    plan = pb.compile(f, tier=tier)
    for keywords in ({"b": 1.0, "a": 2.0}, {"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 2.0}, {"b": 3.0, "a": 2.0}):
        np.testing.assert_allclose(plan(X, **keywords), f(X, **keywords))


@pytest.mark.parametrize(
    "constant", [2j, np.complex64(2j), np.int8(1), np.uint32(3), np.float16(2), np.ones(2, np.int16), np.longdouble(1)]
)
def test_native_plans_return_constants_of_any_type(constant):
    for function in (lambda x: (x * 2.0, constant), lambda x: (x, constant)):
        plan = pb.compile(function, tier="native")
        for _ in range(2):
            first, second = plan(X)
            np.testing.assert_array_equal(first, function(X)[0])
            np.testing.assert_array_equal(second, constant)
            assert type(second) is type(constant)


@case
def names_of_a_module():
    module = types.ModuleType("named")
    module.a = 1.0
    names = lambda: [name for name in dir(module) if not name.startswith("_")]  # noqa: E731
    return (lambda x: np.sum(x) * len(names())), (X,), [lambda: setattr(module, "b", 2.0)]


@case
def the_text_of_an_array():
    w = np.array([1, 2, 3])
    return (lambda x: np.sum(x * w) * len(str(w))), (X,), [lambda: w.__setitem__(0, 100)]


class Mode(enum.Flag):
    """Combined with others."""

    A = 1
    B = 2


CASES["combined flags"] = around(lambda held: lambda x: np.sum(x) * len(held.value), Mode.A, Mode.A | Mode.B, Mode(0))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", CASES)
def test_plans_see_it(name):
    for tier in ("fused", "stateful", "native"):
        f, args, changes = CASES[name]()
        plans = [pb.compile(f, tier=tier), pb.compile(pb.value_and_grad(f), tier=tier)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pb.errors.PlanWarning)
            for step, change in enumerate([lambda: None, *changes]):
                change()
                arguments = args() if callable(args) else args
                value, slope = pb.value_and_grad(f)(*arguments)
                np.testing.assert_allclose(value, f(*arguments), rtol=1e-12)
                for _ in range(3):
                    message = f"{tier}, change {step}"
                    np.testing.assert_allclose(plans[0](*arguments), value, rtol=1e-10, err_msg=message)
                    ours = plans[1](*arguments)
                    np.testing.assert_allclose(ours[0], value, rtol=1e-10, err_msg=message)
                    np.testing.assert_allclose(ours[1], slope, rtol=1e-10, err_msg=message)


# --- generators that are seeded to what they are ------------------------------------------------------------------------
GENERATOR = np.random.RandomState(3)


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize("owner", [np.random, GENERATOR], ids=["global", "own"])
def test_a_generator_is_seeded_on_each_call_also_if_it_was_so_before(owner, tier):
    def f(x):
        owner.seed(3)
        return np.sum(x)

    def drawn():
        return np.random.normal(), GENERATOR.normal()  # noqa: NPY002 - the generator that is tried

    before = np.random.get_state()  # noqa: NPY002 - the generator that is tried
    try:
        f(X)
        expected = drawn()
        f(X)
        plan = pb.compile(pb.grad(f), tier=tier)
        with pytest.warns(pb.errors.PlanWarning, match="seeds their generator"):
            plan(X)
        assert [a == b for a, b in zip(drawn(), expected, strict=True)].count(True) == 1
        assert plan(X).shape == X.shape
        assert [a == b for a, b in zip(drawn(), expected, strict=True)].count(True) == 1
    finally:
        np.random.set_state(before)  # noqa: NPY002 - the generator that is tried
