"""Whole derivatives: Jacobians by rows or by columns, Hessians, and products with them."""

from collections.abc import Callable, Sequence
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.types import dtype_of
from pullback.errors import DifferentiationError, TracingError, name_of
from pullback.transforms.arguments import Selection, Wrt, chosen
from pullback.transforms.batching import vmap
from pullback.transforms.gradients import Gradient
from pullback.transforms.linearization import Linearization, jvp

_MODES = ("auto", "forward", "reverse")


class Jacobian:
    """A function that computes the Jacobian of another.

    For a result of shape (*ys) and an argument of shape (*xs) it is an array of shape (*ys, *xs); trees of results hold
    trees of arguments.
    """

    def __init__(self, function: Callable[..., Any], wrt: Wrt, *, mode: str, has_aux: bool, holomorphic: bool) -> None:
        if not callable(function):
            raise DifferentiationError(f"jacobian takes a function, not {type(function).__name__}")
        if mode not in _MODES:
            raise DifferentiationError(f"jacobian: mode={mode!r} is none of {', '.join(_MODES)}")
        self.function = function
        self.wrt = wrt
        self.mode = mode
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        update_wrapper(self, function, updated=())

    @cached_property
    def selection(self) -> Selection:
        """The arguments to differentiate by."""
        return Selection(self.function, self.wrt)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The Jacobian at these arguments; the function itself runs once."""
        args, by_keyword = self.selection.bind(args, keywords)

        def of_chosen(*values: Any) -> Any:
            return self.selection.call(args, by_keyword, values)

        update_wrapper(of_chosen, self.function)
        linear = Linearization(of_chosen, self.selection.of(args, by_keyword), has_aux=self.has_aux)
        self._check_complex(linear)
        blocks = self._by_rows(linear) if self._prefers_rows(linear) else self._by_columns(linear)
        result = linear.rebuild_output(trees.Rows([self.selection.result(linear.arguments(row)) for row in blocks]))
        return (result, linear.aux) if self.has_aux else result

    def _prefers_rows(self, linear: Linearization) -> bool:
        if linear.tape.sweeps_once:
            linear.tape.undo()
            raise DifferentiationError(
                "a Jacobian cannot be taken through pb.inplace or a stateful rule; write the product as a @ b"
            )
        if self.mode != "auto":
            return self.mode == "reverse"
        return sum(map(np.size, linear.values)) <= sum(map(np.size, linear.leaves))

    def _check_complex(self, linear: Linearization) -> None:
        if self.holomorphic:
            return
        if any(dtype_of(value).kind == "c" for value in linear.values):
            raise DifferentiationError(
                f"{name_of(self.function)} returned complex values; a Jacobian of them exists for holomorphic functions: "
                "say holomorphic=True, or take real and imaginary parts"
            )

    def _by_rows(self, linear: Linearization) -> list[list[Any]]:
        """Pull every unit cotangent back, all of one leaf of the value together."""
        blocks = []
        for chosen_leaf, value in enumerate(linear.values):

            def row(unit: Any, chosen_leaf: int = chosen_leaf) -> list[Any]:
                return linear.pull([unit if leaf == chosen_leaf else None for leaf in range(len(linear.values))])

            columns = _for_each_unit(row, value)
            blocks.append(
                [
                    np.reshape(column, np.shape(value) + np.shape(leaf))
                    for column, leaf in zip(columns, linear.leaves, strict=True)
                ]
            )
        return blocks

    def _by_columns(self, linear: Linearization) -> list[list[Any]]:
        """Push every unit tangent forward, all of one leaf of the arguments together."""
        blocks: list[list[Any]] = [[] for _ in linear.values]
        for chosen_leaf, argument in enumerate(linear.leaves):

            def column(unit: Any, chosen_leaf: int = chosen_leaf) -> list[Any]:
                return linear.push([unit if leaf == chosen_leaf else None for leaf in range(len(linear.leaves))])

            rows = _for_each_unit(column, argument)
            for block, pushed, value in zip(blocks, rows, linear.values, strict=True):
                columns_last = np.moveaxis(pushed, 0, -1)
                block.append(np.reshape(columns_last, np.shape(value) + np.shape(argument)))
        return blocks


def _for_each_unit(apply: Callable[[Any], Sequence[Any]], like: Any) -> Sequence[Any]:
    """Apply a linear map to every unit of an array's space; the results are stacked along a leading axis."""
    shape, dtype = np.shape(like), dtype_of(like)
    if not shape:
        return [np.expand_dims(part, 0) for part in apply(dtype.type(1))]
    size = int(np.prod(shape))
    units = np.eye(size, dtype=dtype).reshape(size, *shape)
    try:
        stacked: Sequence[Any] = vmap(apply)(units)
    except TracingError:  # a rule of the user's that looks at values: one unit after the other
        stacked = [np.stack(parts) for parts in zip(*map(apply, units), strict=True)]
    return stacked


def jacobian(
    function: Callable[..., Any],
    wrt: Wrt | None = None,
    *,
    mode: str = "auto",
    has_aux: bool = False,
    holomorphic: bool = False,
    argnums: Wrt | None = None,
) -> Jacobian:
    """Jacobian of a function by one argument or a tuple of them: rows by reverse mode, columns by forward mode.

    The axes of the value come first, then those of the argument. `mode` is "reverse", "forward", or "auto", which takes
    the one with fewer sweeps. `wrt`, `has_aux` and `holomorphic` are as for `pb.grad`.

    >>> pb.jacobian(lambda x: np.array([1.0, 2.0]) * x)(np.array([3.0, 4.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    return Jacobian(function, chosen(wrt, argnums), mode=mode, has_aux=has_aux, holomorphic=holomorphic)


def hessian(function: Callable[..., Any], wrt: Wrt | None = None, *, argnums: Wrt | None = None) -> Jacobian:
    """Second derivatives of a function that returns one number, forward mode over reverse mode.

    `wrt` is as for `pb.grad`.

    >>> pb.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    return jacobian(jacobian(function, wrt, mode="reverse", argnums=argnums), wrt, mode="forward", argnums=argnums)


def hvp(function: Callable[..., Any], x: Any, v: Any, *args: Any) -> Any:
    """Product of the Hessian of a function by its first argument with a vector, without the Hessian: one tangent, one sweep.

    Further arguments of the function come behind the vector, and are constant: `hvp(f, x, v, data)` of `f(x, data)`.

    >>> pb.hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([6., 0.])
    """
    if args:
        inner = function
        function = update_wrapper(lambda x: inner(x, *args), inner)
    return jvp(Gradient(function, 0, with_value=False), (x,), (v,))[1]
