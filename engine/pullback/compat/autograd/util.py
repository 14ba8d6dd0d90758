"""Small things that programs import: tuples with members replaced, a function that changes nothing, the old gradient check."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pullback.compat.autograd.misc.flatten import flatten
from pullback.compat.autograd.test_util import check_grads

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["flatten", "func", "quick_grad_check", "subval", "subvals"]


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A tuple with the members at some positions replaced."""
    members = list(x)
    for position, value in ivs:
        members[position] = value
    return tuple(members)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """A tuple with the member at one position replaced."""
    return subvals(x, [(i, v)])


def func(f: _F) -> _F:
    """The function itself; autograd's examples mark functions with it."""
    return f


def quick_grad_check(
    fun: Callable[..., Any],
    arg0: Any,
    extra_args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **ignored: Any,
) -> None:
    """Check the gradient by the first argument; `check_grads` reports more."""
    warnings.warn("quick_grad_check is deprecated; use pullback.testing.check_grads", DeprecationWarning, stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
