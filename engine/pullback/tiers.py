"""The tiers: the same mathematics, run in different ways."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pullback.errors import TierError

#: What this engine can run. `unfused` is the eager tape, the baseline of every ratio; `fused` runs a planned graph;
#: `stateful` runs it in memory that is kept between calls.
TIERS: tuple[str, ...] = ("unfused", "fused", "stateful")

#: Those whose plans keep their memory between calls.
KEEPING = frozenset({"stateful"})

_current: ContextVar[str] = ContextVar("pullback_tier", default="unfused")


def current_tier() -> str:
    """The tier in force."""
    return _current.get()


def checked(name: str) -> str:
    """The name, if it names a tier of this engine."""
    if name not in TIERS:
        raise TierError(f"there is no tier {name!r} in this engine; it has {', '.join(TIERS)}")
    return name


@contextmanager
def tier(name: str) -> Iterator[None]:
    """Run what is inside the block in the named tier, one of `pb.TIERS`.

    `unfused` is the eager tape, `fused` a planned graph, `stateful` a planned graph in memory that is kept between calls.

    >>> gradient = pb.grad(lambda x: np.sum(np.tanh(x)))
    >>> with pb.tier("fused"):
    ...     gradient(np.zeros(2))
    array([1., 1.])
    """
    token = _current.set(checked(name))
    try:
        yield
    finally:
        _current.reset(token)
