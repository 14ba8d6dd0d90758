"""Everything the engine raises on purpose, as one family.

PullbackError
├── TracingError         a traced value was used where only a number will do
│   ├── NoRuleError      a function the engine has no rule for
│   └── NeedsValueError  a compiled function looked at a value while only types were there
├── DifferentiationError grad of something that has no gradient
├── PullbackReuseError   a once-only pullback was called again
├── OverwrittenError     an array was read after `pb.inplace` overwrote it
├── ChangedError         an array that a pullback saved was changed before the pullback was called
├── StateError           what a rule kept for its pullback was used twice, out of order or in another thread
├── TierError            a tier this engine does not have
├── DeviceError          a device that is not there, or arrays on several
├── ControlFlowError     a loop or branch that does not keep structure, shapes or dtypes
└── GraphError           our own invariant is broken (the type check between passes)

PlanWarning (a UserWarning): a plan is slower than it could be, since it runs on the tape or is recorded again and again

>>> try:
...     pb.grad(lambda x: 2 * x)(np.ones(3))
... except pb.errors.PullbackError as error:
...     print(type(error).__name__)
DifferentiationError
"""

from collections.abc import Callable
from typing import Any


class PullbackError(Exception):
    """Any error the engine raises on purpose."""


class TracingError(PullbackError, TypeError):
    """A traced value was used where only a concrete number will do."""


class NoRuleError(TracingError):
    """A function without a rule met a traced value; a zero gradient would be a lie."""


class NeedsValueError(TracingError):
    """The function looked at a value while only types were there; it runs on the tape instead."""


class DifferentiationError(PullbackError, TypeError):
    """The requested gradient does not exist: not a scalar, not a float, no such argument."""


class PullbackReuseError(PullbackError, RuntimeError):
    """A pullback that may destroy what it saved was called a second time."""


class OverwrittenError(PullbackError, RuntimeError):
    """An array was read under its old name after an in-place rule had overwritten it."""


class ChangedError(PullbackError, RuntimeError):
    """An array of the caller's, which a pullback reads, was changed between the forward run and the pullback."""


class StateError(PullbackError, RuntimeError):
    """The state that a rule kept for its pullback was used twice, out of order, or from another thread."""


class TierError(PullbackError, ValueError):
    """The requested tier does not exist in this engine."""


class DeviceError(PullbackError, RuntimeError):
    """A device that is not there, arrays on several devices, or what is not done on a device."""


class ControlFlowError(PullbackError, TypeError):
    """A loop does not hand on what it was given, branches do not agree, or steps cannot be counted."""


class GraphError(PullbackError, AssertionError):
    """A pass produced a graph that does not type-check; always a defect of the engine."""


class PlanWarning(UserWarning):
    """A plan runs on the tape, or is recorded again and again; the message has the reason and the remedy."""


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in errors; a partial has none."""
    return getattr(function, "__name__", "the function")
