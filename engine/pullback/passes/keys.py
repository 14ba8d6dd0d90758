"""Basic keys: the elements that a key selects, and how the selections of two keys overlap."""

from functools import lru_cache
from typing import Any

from pullback.core.types import Shape

#: A place along an axis: a number, which takes the axis away, or a range.
Place = int | range


def places_of(key: Any, shape: Shape) -> tuple[Place, ...] | None:
    """The selection of a basic key along each axis; None of one with new axes, or with an ellipsis."""
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(part, slice) or type(part) is int for part in parts) or len(parts) > len(shape):
        return None
    return _known_places(tuple((p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts), shape)


@lru_cache(maxsize=4096)
def _known_places(parts: tuple[Any, ...], shape: Shape) -> tuple[Place, ...]:
    places: list[Place] = [
        part % size if isinstance(part, int) else range(*slice(*part).indices(size))
        for part, size in zip(parts, shape, strict=False)
    ]
    return (*places, *(range(size) for size in shape[len(parts) :]))


def as_range(place: Place) -> range:
    """The range of a place."""
    return range(place, place + 1) if isinstance(place, int) else place


def are_apart(own: tuple[Place, ...], theirs: tuple[Place, ...]) -> bool:
    """True if no element is in both."""
    for one, other in zip(own, theirs, strict=True):
        if isinstance(one, int) and isinstance(other, int):
            if one != other:
                return True
            continue
        a, b = as_range(one), as_range(other)
        if not a or not b:
            return True
        if max(min(a[0], a[-1]), min(b[0], b[-1])) > min(max(a[0], a[-1]), max(b[0], b[-1])):
            return True
        if abs(a.step) == abs(b.step) and (a[0] - b[0]) % a.step:
            return True
    return False


def covers(own: tuple[Place, ...], theirs: tuple[Place, ...]) -> bool:
    """True if all elements of theirs are in one's own."""
    return all(_is_in(as_range(other), as_range(one)) for one, other in zip(own, theirs, strict=True))


def _is_in(inner: range, outer: range) -> bool:
    if not inner:
        return True
    return inner[0] in outer and inner[-1] in outer and (len(inner) == 1 or inner.step % outer.step == 0)


def within(own: tuple[Place, ...], theirs: tuple[Place, ...]) -> tuple[Any, ...] | None:
    """The key that reads places out of what a store to more places stored; None where they are not among them."""
    key: list[Any] = []
    for one, other in zip(own, theirs, strict=True):
        if not _is_in(as_range(one), as_range(other)) or (isinstance(other, int) and not isinstance(one, int)):
            return None
        if isinstance(other, int):
            continue
        if isinstance(one, int):
            key.append(other.index(one))
        elif one == other:
            key.append(slice(None))
        elif not one:
            return None
        else:
            start = other.index(one[0])
            step = one.step // other.step if len(one) > 1 else 1
            stop = start + step * len(one)
            key.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(key)
