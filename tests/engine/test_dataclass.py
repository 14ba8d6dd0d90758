"""Dataclasses of the engine are what the standard library would have made."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field, fields, replace
from typing import Any, ClassVar

import pytest

from pullback import dataclass as ours

OPTIONS = [
    {},
    {"slots": True},
    {"slots": True, "eq": False},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"frozen": True, "slots": True, "weakref_slot": True},
]


def made(dataclass, options):
    """The same classes, made by one of the two: with defaults, fields left out, none at all, and one that inherits."""

    @dataclass(**options)
    class Point:
        """A point."""

        shared: ClassVar[int] = 1
        x: Any
        y: int = 2
        tags: list[str] = field(default_factory=list, repr=False)
        hidden: int = field(default=7, compare=False)
        derived: int = field(init=False, compare=False, repr=False)
        fixed: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            object.__setattr__(self, "derived", self.y + 1)

        def __len__(self) -> int:
            return self.y

    @dataclass(**options)
    class Empty:
        """Nothing."""

    @dataclass(**options)
    class Single(Empty):
        """One thing, which says itself how it is shown."""

        value: Any

        def __repr__(self) -> str:
            return "single"

    return Point, Empty, Single


def outcome(act):
    """The result of an action: a value, or the kind of error and its message."""
    try:
        return act()
    except (TypeError, AttributeError, ValueError) as error:
        return type(error), str(error)


def facts(dataclass, options):
    """Everything of the classes that can be seen."""
    point, empty, single = made(dataclass, options)
    p, other, longer = point(1), point(1, hidden=8), point((1, 2), 3, ["a"])
    return [
        *(repr(value) for value in (single(3), longer) if options.get("repr", True)),
        *(a == b for a in (p, other, longer) for b in (p, other, longer, None)),
        (empty() == empty(), single(1) == single(1), single(1) == single(2)),
        (single([]) == single([]), single(0) == empty(), empty() != single(0)),
        [outcome(lambda v=v: hash(v) != object.__hash__(v)) for v in (empty(), single(1), single([]))],
        outcome(lambda: hash(replace(p, x=2)) == hash(point(2))),
        [(f.name, f.default is dataclasses.MISSING, f.init, f.repr, f.compare) for f in fields(point)],
        (point.__match_args__, point.__doc__, point.__name__, point.shared, len(p), p.derived, p.fixed),
        str(inspect.signature(point)),
        [outcome(lambda v=v: setattr(v, "x", 9)) for v in (p, longer)],
        (outcome(lambda: delattr(p, "y")), outcome(lambda: point()), outcome(lambda: point(1, 2, [], 3, 4))),
        (outcome(lambda: setattr(p, "new", 9)) is None, dataclasses.asdict(longer), hasattr(p, "__dict__")),
        (copy.deepcopy(longer).tags, copy.copy(longer).x, longer.tags is point(0).tags),
        [getattr(point.__dataclass_params__, name) for name in ("init", "repr", "eq", "frozen")],
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_classes_do_what_those_of_the_standard_library_do(options):
    for mine, theirs in zip(facts(ours.dataclass, options), facts(dataclasses.dataclass, options), strict=True):
        assert str(mine) == str(theirs)


@ours.dataclass(frozen=True, slots=True)
class Kept:
    """An object to be pickled."""

    x: int
    parts: tuple[Any, ...] = ()


def test_frozen_ones_with_slots_are_pickled_and_shown_even_inside_of_themselves():
    parts: list[Any] = []
    kept = Kept(1, (parts,))
    parts.append(kept)
    assert repr(kept) == "Kept(x=1, parts=([...],))"
    assert pickle.loads(pickle.dumps(Kept(3, ("a",)))) == Kept(3, ("a",))  # noqa: S301 (our own)


def test_options_count_where_the_class_is_given_with_them():
    class Plain:
        x: int = 1

    with pytest.raises(dataclasses.FrozenInstanceError):
        ours.dataclass(Plain, frozen=True)().x = 2


def test_a_frozen_dataclass_of_the_standard_library_may_inherit_from_one_of_ours():
    @dataclasses.dataclass(frozen=True)
    class More(Kept):
        y: int = 0

    assert More(1, (), 2).y == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        More(1).y = 3
