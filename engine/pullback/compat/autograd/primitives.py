"""Functions that bring their own derivatives: `primitive`, `defvjp`, `defjvp` and their relatives.

    @primitive
    def double(x): return 2 * x
    defvjp(double, lambda ans, x: lambda g: 2 * g)

A call with a traced value anywhere in its arguments (containers are looked into) becomes one application of a primitive
of the engine, whose derivative is what `defvjp` and `defjvp` registered. The function itself sees plain values only.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import count
from typing import Any

import numpy as np

from pullback import trees
from pullback.compat.autograd import deprecated
from pullback.compat.autograd.aligned import leaves_like
from pullback.compat.autograd.vector_spaces import vspace
from pullback.core.primitive import Primitive, TracedValue
from pullback.core.types import ArrayType, dtype_of, is_array_like
from pullback.errors import DifferentiationError, NeedsValueError, NoRuleError, TracingError

Maker = Callable[..., Any]

#: Rules registered by `defvjp` and `defjvp`, by function: (argnums, ans, args, kwargs) -> (g -> cotangents), and
#: (argnums, gs, ans, args, kwargs) -> tangent.
primitive_vjps: dict[Any, Maker] = {}
primitive_jvps: dict[Any, Maker] = {}


class UndefinedDerivativeError(NoRuleError, NotImplementedError):
    """A primitive was differentiated in a way that was not defined."""


def primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function one step of a derivative, to be defined by `defvjp` and `defjvp`."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(leaf, TracedValue) for leaf in trees.flatten(args)[0]):
            return function(*args, **kwargs)
        return _Application(wrapped, function, args, kwargs).result()

    wrapped.fun = function  # type: ignore[attr-defined] # where programs look for the plain function
    for name, method in deprecated.methods(wrapped, defvjp).items():
        setattr(wrapped, name, method)
    return wrapped


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of plain values: its result is constant to every derivative."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*map(getval, args), **kwargs)

    return wrapped


def getval(x: Any) -> Any:
    """The plain value behind a traced one, looking into containers; anything else is itself."""
    if isinstance(x, TracedValue):
        if not hasattr(x, "value"):
            raise NeedsValueError(
                "getval of a traced value that stands for many values, or for a type alone, is not defined"
            )
        return getval(x.value)
    if isinstance(x, tuple | list | dict):
        leaves, rebuild = trees.flatten(x)
        return rebuild(map(getval, leaves)) if any(isinstance(leaf, TracedValue) for leaf in leaves) else x
    return x


class _Application(Primitive):
    """One call of such a function: a primitive that lives as long as the call, and is no row of the rule table."""

    def __init__(
        self, wrapped: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.name = getattr(wrapped, "__name__", "primitive")
        if any(isinstance(leaf, TracedValue) for leaf in trees.flatten(kwargs)[0]):
            raise TracingError(
                f"{self.name} got a traced value by keyword, where it has no derivative; pass it by position"
            )
        self._wrapped = wrapped
        self._function = function
        self._args = args
        self._kwargs = kwargs
        self._leaves, self._rebuild = trees.flatten(args)
        self._places = [place for place, leaf in enumerate(self._leaves) if isinstance(leaf, TracedValue)]
        self._argument_of = [number for number, arg in enumerate(args) for _ in trees.flatten(arg)[0]]
        # Those of the result are known as soon as the function has run.
        self._rebuild_result: Callable[[Any], Any] = next
        self._result_leaves: list[Any] = []
        self._result_places: list[int] = []

    def result(self) -> Any:
        """Apply, and put the result together."""
        return self._assembled(self(*(self._leaves[place] for place in self._places)))

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        value = self._function(*self._arguments(operands), **self._kwargs)
        self._result_leaves, self._rebuild_result = trees.flatten(value)
        if any(isinstance(leaf, TracedValue) for leaf in self._result_leaves):
            raise TracingError(
                f"{self.name} closes over a traced value, whose derivative would be lost; make it an argument"
            )
        leaves = enumerate(self._result_leaves)
        self._result_places = [place for place, leaf in leaves if is_array_like(leaf) and dtype_of(leaf).kind in "fc"]
        self.results = max(1, len(self._result_places))
        if not self._result_places:
            return False  # no result that moves: of a kind that no trace follows
        moving = tuple(self._result_leaves[place] for place in self._result_places)
        return moving[0] if self.results == 1 else moving

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        raise NeedsValueError(
            f"{self.name} has a result whose type is known only by running it; the function runs on the tape"
        )

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """One call per example, if all of the result moves: what does not is kept once, not once per example."""
        rows = super().batch(operands, batched, params)
        if len(self._result_places) < len(self._result_leaves):
            raise TracingError(f"{self.name} returns values that are not floating-point, which vmap cannot batch")
        return rows

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        maker = self._maker(primitive_vjps, "VJP")
        args = self._arguments(operands)
        argnums = self._numbers(needed)
        ans = self._assembled(y)
        cotangents = maker(argnums, ans, args, self._kwargs)(self._vector(ans, y_bar))
        by_place: dict[int, Any] = {}
        for number, cotangent in zip(argnums, cotangents, strict=True):
            places = [place for place, argument in enumerate(self._argument_of) if argument == number]
            by_place |= zip(places, leaves_like(args[number], cotangent), strict=True)
        return [
            self._fitting(by_place[place], x) if need else None
            for place, need, x in zip(self._places, needed, operands, strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        maker = self._maker(primitive_jvps, "JVP")
        args = self._arguments(operands)
        moving = dict(zip(self._places, tangents, strict=True))
        argnums = self._numbers([tangent is not None for tangent in tangents])
        directions = []
        for number in argnums:
            places = (place for place, argument in enumerate(self._argument_of) if argument == number)
            _, rebuild = trees.flatten(args[number])
            leaves = zip(trees.flatten(args[number])[0], places, strict=True)
            directions.append(rebuild(_or_zero(moving.get(place), leaf) for leaf, place in leaves))
        ans = self._assembled(y)
        tangent = leaves_like(ans, maker(argnums, directions, ans, args, self._kwargs))
        results = tuple(tangent[place] for place in self._result_places)
        return results[0] if self.results == 1 else results

    # --- between leaves and what the function's author sees -----------------------------------------------------------
    def _arguments(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        leaves = list(self._leaves)
        for place, operand in zip(self._places, operands, strict=True):
            leaves[place] = operand
        arguments: tuple[Any, ...] = self._rebuild(iter(leaves))
        return arguments

    def _assembled(self, y: Any) -> Any:
        if not self._result_places:
            return self._rebuild_result(iter(self._result_leaves))
        leaves = list(self._result_leaves)
        for place, value in zip(self._result_places, (y,) if self.results == 1 else y, strict=True):
            leaves[place] = value
        return self._rebuild_result(iter(leaves))

    def _vector(self, ans: Any, y_bar: Any) -> Any:
        """The cotangent in the form of the result, zeros where there is none."""
        leaves, rebuild = trees.flatten(ans)
        given = dict(zip(self._result_places, (y_bar,) if self.results == 1 else y_bar, strict=True))
        return rebuild(_or_zero(given.get(place), leaf) for place, leaf in enumerate(leaves))

    def _numbers(self, wanted: Sequence[bool]) -> tuple[int, ...]:
        places = (place for place, want in zip(self._places, wanted, strict=True) if want)
        return tuple(sorted({self._argument_of[place] for place in places}))

    def _maker(self, table: dict[Any, Maker], mode: str) -> Maker:
        maker = table.get(self._wrapped)
        if maker is None:
            raise UndefinedDerivativeError(f"{mode} of {self.name} not defined; define it with def{mode.lower()}")
        return maker

    def _fitting(self, cotangent: Any, x: Any) -> Any:
        """A cotangent an operand can have: its shape, and real if it is real."""
        if cotangent is None:
            return None
        if np.shape(cotangent) != np.shape(x):
            if not isinstance(cotangent, TracedValue) and np.ndim(cotangent) == 0 and cotangent == 0:
                return None
            raise DifferentiationError(
                f"the VJP of {self.name} gave a cotangent of shape {np.shape(cotangent)} "
                f"for an argument of shape {np.shape(x)}; sum over what was broadcast"
            )
        return np.real(cotangent) if dtype_of(x).kind == "f" and dtype_of(cotangent).kind == "c" else cotangent


def _or_zero(vector: Any, leaf: Any) -> Any:
    if vector is not None:
        return vector
    return (
        vspace(leaf).zeros()
        if isinstance(leaf, TracedValue) or (is_array_like(leaf) and dtype_of(leaf).kind in "fc")
        else None
    )


# --- how derivatives are said -------------------------------------------------------------------------------------
def defvjp_argnums(fun: Any, vjpmaker: Maker) -> None:
    """Reverse mode in one piece: `vjpmaker(argnums, ans, args, kwargs)` gives g -> one cotangent per argnum."""
    primitive_vjps[_primitive_only(fun, "defvjp")] = vjpmaker


def defvjp_argnum(fun: Any, vjpmaker: Maker) -> None:
    """Reverse mode by number of the argument: `vjpmaker(argnum, ans, args, kwargs)` gives g -> cotangent."""

    def by_numbers(argnums: Sequence[int], *call: Any) -> Maker:
        vjps = [vjpmaker(argnum, *call) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, by_numbers)


def defvjp(fun: Any, *vjpmakers: Maker | None, argnums: Any = None) -> None:
    """Reverse mode, one `vjpmaker(ans, *args, **kwargs)` per argument giving g -> cotangent; None for a zero one."""
    makers = dict(zip(count() if argnums is None else argnums, vjpmakers, strict=False))
    for maker in makers.values():
        if maker is not None and not callable(maker):
            raise TypeError(f"bad VJP {maker!r} for {_name(fun)}: give a function or None")

    def by_number(argnum: int, ans: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Maker:
        if argnum not in makers:
            raise UndefinedDerivativeError(f"VJP of {_name(fun)} wrt argnum {argnum} not defined")
        maker = makers[argnum]
        vjp: Maker = (lambda g: None) if maker is None else maker(ans, *args, **kwargs)
        return vjp

    defvjp_argnum(fun, by_number)


def defjvp_argnums(fun: Any, jvpmaker: Maker) -> None:
    """Forward mode in one piece: `jvpmaker(argnums, gs, ans, args, kwargs)` gives the tangent."""
    primitive_jvps[_primitive_only(fun, "defjvp")] = jvpmaker


def defjvp_argnum(fun: Any, jvpmaker: Maker) -> None:
    """Forward mode by number of the argument: `jvpmaker(argnum, g, ans, args, kwargs)` gives its part of the tangent."""

    def by_numbers(argnums: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        space = vspace(ans)
        parts = [jvpmaker(argnum, g, ans, args, kwargs) for argnum, g in zip(argnums, gs, strict=True)]
        total = parts[0]
        for part in parts[1:]:
            total = space.add(total, part)
        return total

    defjvp_argnums(fun, by_numbers)


def defjvp(fun: Any, *jvpfuns: Maker | str | None, argnums: Any = None) -> None:
    """Forward mode, one `jvpfun(g, ans, *args, **kwargs)` per argument; None for a zero one, "same" for a linear one."""
    functions = dict(zip(count() if argnums is None else argnums, jvpfuns, strict=False))
    for function in functions.values():
        if function is not None and function != "same" and not callable(function):
            raise TypeError(f'bad JVP {function!r} for {_name(fun)}: give a function, "same" or None')

    def by_number(argnum: int, g: Any, ans: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if argnum not in functions:
            raise UndefinedDerivativeError(f"JVP of {_name(fun)} wrt argnum {argnum} not defined")
        function = functions[argnum]
        if function is None:
            return vspace(ans).zeros()
        if isinstance(function, str):
            return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return function(g, ans, *args, **kwargs)

    defjvp_argnum(fun, by_number)


def def_linear(fun: Any) -> None:
    """Forward mode of a function that is linear in each of its arguments."""
    defjvp_argnum(fun, lambda argnum, g, ans, args, kwargs: fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs))


def _primitive_only(fun: Any, said_with: str) -> Any:
    if not hasattr(fun, "fun"):
        raise TypeError(f"{said_with} takes a function made by @primitive; {_name(fun)} is not one")
    return fun


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", "the function")
