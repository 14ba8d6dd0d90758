"""The methods that primitives had before `defvjp` was a function: `f.defvjp`, `f.defgrad`, `f.defvjp_is_zero`."""

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from pullback.compat.autograd.vector_spaces import vspace

Maker = Callable[..., Any]


def methods(fun: Any, defvjp: Callable[..., None]) -> dict[str, Callable[..., None]]:
    """The three functions; each adds to what the others have registered for other arguments."""
    makers: dict[int, Maker | None] = {}

    def define(argnums: Iterable[int], maker: Maker | None) -> None:
        warnings.warn(
            "primitives' own methods are deprecated; call defvjp(function, …)", DeprecationWarning, stacklevel=3
        )
        makers.update(dict.fromkeys(argnums, maker))
        defvjp(fun, *makers.values(), argnums=tuple(makers))

    def by_cotangent(vjpmaker: Maker, argnum: int = 0) -> None:
        """`vjpmaker(g, ans, vs, gvs, *args)` gives the cotangent."""

        def staged(ans: Any, *args: Any, **kwargs: Any) -> Maker:
            return lambda g: vjpmaker(g, ans, vspace(args[argnum]), vspace(g), *args, **kwargs)

        define([argnum], staged)

    def by_stages(gradfun: Maker, argnum: int = 0) -> None:
        """`gradfun(ans, *args)` gives g -> cotangent."""
        define([argnum], gradfun)

    def is_zero(argnums: Iterable[int] = (0,)) -> None:
        """The derivative is zero."""
        define(argnums, None)

    return {"defvjp": by_cotangent, "defgrad": by_stages, "defvjp_is_zero": is_zero}
