"""SciPy functions that act element by element, with their partial derivatives, in both modes."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from pullback.compat.autograd.numpy.numpy_vjps import unbroadcast_f
from pullback.compat.autograd.primitives import (
    UndefinedDerivativeError,
    defjvp_argnum,
    defvjp_argnum,
    primitive,
)

Partial = Callable[..., Any]


def elementwise(function: Callable[..., Any], *partials: Partial | None) -> Callable[..., Any]:
    """The function with `partial(ans, *args)` as its derivative by each argument, None where there is none.

    The signature is that of the partials, so that arguments by keyword are differentiated too.
    """
    name = getattr(function, "__name__", "the function")
    known = next(partial for partial in partials if partial is not None)
    parameters = list(inspect.signature(known).parameters.values())[1:]
    signature = inspect.Signature(parameters)
    applied = primitive(function)

    def partial(argnum: int, ans: Any, args: Any) -> Any:
        by_argument = partials[argnum] if argnum < len(partials) else None
        if by_argument is None:
            raise UndefinedDerivativeError(f"derivative of {name} wrt {parameters[argnum].name} not defined")
        return by_argument(ans, *args)

    def pulled(argnum: int, ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        del kwargs
        factor = partial(argnum, ans, args)
        return unbroadcast_f(args[argnum], lambda g: g * factor)

    def pushed(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        del kwargs
        return np.broadcast_to(g * partial(argnum, ans, args), np.shape(ans))

    defvjp_argnum(applied, pulled)
    defjvp_argnum(applied, pushed)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return applied(*bound.args)

    return call
