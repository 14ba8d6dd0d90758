"""The tiers: the same mathematics, run in different ways."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from pullback.errors import TierError

#: The tiers of this engine. `unfused` is the eager tape, the baseline of every ratio; `fused` runs a planned graph;
#: `stateful` runs it in memory that is kept between calls; `native` is that as one machine-code program.
TIERS: tuple[str, ...] = ("unfused", "fused", "stateful", "native")

#: Those whose plans keep their memory between calls.
KEEPING = frozenset({"stateful", "native"})

#: The tier in force, and whether gradients run as plans in it.
_current: ContextVar[tuple[str, bool]] = ContextVar("pullback_tier", default=("unfused", False))


def current_tier() -> str:
    """The tier in force."""
    return _current.get()[0]


def gradients_are_planned() -> bool:
    """True if gradients run as plans here; where a plan has fallen back to the tape they do not, in any tier."""
    return _current.get()[1]


def checked(name: str) -> str:
    """The name, if it names a tier of this engine."""
    if name not in TIERS:
        raise TierError(f"there is no tier {name!r} in this engine; it has {', '.join(TIERS)}")
    return name


def tier(name: str) -> AbstractContextManager[None]:
    """Run what is inside the block in the named tier, one of `pb.TIERS`.

    `unfused` is the eager tape, `fused` a planned graph, `stateful` a planned graph in memory that is kept between calls,
    `native` the same compiled to machine code; what cannot be compiled so runs as in `stateful`.

    >>> gradient = pb.grad(lambda x: np.sum(np.tanh(x)))
    >>> with pb.tier("fused"):
    ...     gradient(np.zeros(2))
    array([1., 1.])
    """
    return _in_force(checked(name), planned=name != "unfused")  # a wrong name is refused here, not at `with`


def on_the_tape(name: str) -> AbstractContextManager[None]:
    """Run what is inside the block without plans, with the rules of the named tier."""
    return _in_force(checked(name), planned=False)


@contextmanager
def _in_force(name: str, *, planned: bool) -> Iterator[None]:
    token = _current.set((name, planned))
    try:
        yield
    finally:
        _current.reset(token)
