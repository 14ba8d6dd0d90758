"""Extension of transforms of one argument to functions of many, differentiated by some of them."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pullback.numpy_api.tracer import numbers_with_shapes

Function = Callable[..., Any]


def unary_to_nary(unary_operator: Function) -> Function:
    """Give `operator(fun, argnum=0)`, whose result takes the arguments of `fun`; several argnums make a tuple of them."""

    @wraps(unary_operator)
    def nary_operator(fun: Function, argnum: int | Sequence[int] = 0, *options: Any, **named_options: Any) -> Function:
        if not isinstance(argnum, int | tuple | list):
            raise TypeError(f"argnum is a position or a tuple of positions, not {argnum!r}")

        def nary_function(*args: Any, **kwargs: Any) -> Any:
            def unary_function(x: Any) -> Any:
                replaced = list(args)
                if isinstance(argnum, int):
                    replaced[argnum] = x
                else:
                    for number, value in zip(argnum, x, strict=True):
                        replaced[number] = value
                with numbers_with_shapes():
                    return fun(*replaced, **kwargs)

            unary_function.__name__ = get_name(fun)
            x = args[argnum] if isinstance(argnum, int) else tuple(args[number] for number in argnum)
            return unary_operator(unary_function, x, *options, **named_options)

        operator = get_name(unary_operator)
        nary_function.__name__ = f"{operator}_of_{get_name(fun)}_wrt_argnum_{argnum}"
        nary_function.__doc__ = (
            f"    {operator} of function {get_name(fun)} with respect to argument {argnum}; takes the same arguments."
        )
        return nary_function

    return nary_operator


def get_name(function: Any) -> str:
    """The name of a function, for messages."""
    return getattr(function, "__name__", "[unknown name]")
