"""Linearization: a function at a point as a linear map, pulled back, pushed forward, by rows and by columns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import TracedValue, tracing
from pullback.core.types import dtype_of, is_array_like, shape_of
from pullback.devices import DeviceCall, carried
from pullback.errors import DifferentiationError, PullbackReuseError, name_of
from pullback.numpy_api.traced_stores import given
from pullback.traces.tangents import DualTracer, ForwardTrace
from pullback.traces.tape import Tape
from pullback.transforms.arguments import differentiable_leaves, like
from pullback.transforms.fingerprints import Watch, saved_arrays
from pullback.transforms.gradients import plain_tree, split_aux


class Linearization:
    """One run of a function on a tape, from which cotangents are pulled back and tangents pushed forward."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], *, has_aux: bool = False) -> None:
        self.function = function
        self.leaves, self._rebuild = argument_leaves(args, function)
        with Tape() as tape:
            self.inputs = [given(tape.watch(leaf)) for leaf in self.leaves]
            try:
                output = function(*self._rebuild(iter(self.inputs)))
                output, aux = split_aux(output, function) if has_aux else (output, None)
                self.outputs, self.rebuild_output = output_leaves(output, function)
                self.values = [checked_array(tape.value_of(leaf), function) for leaf in self.outputs]
            except BaseException:
                tape.undo()
                raise
        self.tape = tape
        self.structure = trees.structure(output)
        self.aux = plain_tree(aux, tape) if has_aux else None

    def value(self) -> Any:
        """The result of the function; arrays are copied, because what the tape saved is not for the caller to write to."""
        copies = [
            np.array(value) if issubclass(type(value), np.ndarray) and not self.tape.has_overwritten else value
            for value in self.values
        ]
        return self.rebuild_output(iter(copies))

    def pull(self, y_bars: Sequence[Any], *, once: bool = False) -> list[Any]:
        """Cotangents of the leaves of the arguments from those of the leaves of the value."""
        try:
            gradients = self.tape.sweep(list(zip(self.outputs, y_bars, strict=True)), self.inputs, once=once)
        except BaseException:
            if self.tape.sweeps_once:
                self.tape.undo()  # the rest of it: this pullback cannot be called again
            raise
        return [like(gradient, leaf) for gradient, leaf in zip(gradients, self.leaves, strict=True)]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the leaves of the value from those of the leaves of the arguments."""
        pushed = self.tape.push(list(zip(self.inputs, tangents, strict=True)), self.outputs)
        return [zero_like(value) if dy is None else dy for dy, value in zip(pushed, self.values, strict=True)]

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients by the leaves as gradients by the arguments."""
        args: tuple[Any, ...] = self._rebuild(trees.Gradients(leaves))
        return args


def vjp(
    function: Callable[..., Any], *args: Any, once: bool = False, has_aux: bool = False
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]] | tuple[Any, Callable[[Any], tuple[Any, ...]], Any]:
    """Value of `function(*args)` and its pullback: from a cotangent of the value to a tuple, one cotangent per argument.

    The pullback may be called many times, unless `once`, which lets it give up what it saved as it goes. With `has_aux`
    the function returns `(value, aux)` and aux comes third.

    >>> y, pullback = pb.vjp(np.multiply, np.array([1.0, 2.0]), 3.0)
    >>> a_bar, b_bar = pullback(np.ones(2))
    >>> print(y, a_bar, b_bar)
    [3. 6.] [3. 3.] 3.0
    """
    on_device = carried(function, args, {})
    result: tuple[Any, Callable[[Any], tuple[Any, ...]]] = (
        _vjp(function, args, once=once, has_aux=has_aux)
        if on_device is None
        else _vjp_on_device(function, on_device, once=once, has_aux=has_aux)
    )
    return result


def _vjp_on_device(function: Callable[..., Any], on_device: DeviceCall, *, once: bool, has_aux: bool) -> Any:
    """`vjp` of arrays on a device: the pullback takes and gives arrays of the kind that went in."""
    value, pullback, *aux = _vjp(function, on_device.args, once=once, has_aux=has_aux)

    def pulled(y_bar: Any) -> tuple[Any, ...]:
        on_device.check(function)
        cotangents: tuple[Any, ...] = on_device.back(pullback(on_device.there(y_bar)))
        return cotangents

    return (on_device.back(value, copied=True), pulled, *(on_device.back(part, copied=True) for part in aux))


def _vjp(function: Callable[..., Any], args: tuple[Any, ...], *, once: bool, has_aux: bool) -> Any:
    linear = Linearization(function, args, has_aux=has_aux)
    watch = Watch(function, args, saved_arrays(linear.tape.records))
    used = False

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        nonlocal used
        if used and (once or linear.tape.sweeps_once):
            why = "was made with once=True" if once else "put back what pb.inplace or a stateful rule had kept"
            raise PullbackReuseError(f"this pullback {why} and has been called; call vjp(f, …) again for another")
        y_bars = _leaves_like(y_bar, linear.structure, "cotangent", "value")
        y_bars = [
            _fitting(cotangent, value, "the pullback got a cotangent", "the value")
            for cotangent, value in zip(y_bars, linear.values, strict=True)
        ]
        watch.check()
        used = True
        return linear.arguments(linear.pull(y_bars, once=once))

    return (linear.value(), pullback, linear.aux) if has_aux else (linear.value(), pullback)


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Value of `function(*primals)` and its derivative there as a function of tangents, one per argument.

    The function itself runs once, however many tangents are pushed.

    >>> y, push = pb.linearize(np.square, np.array([1.0, 2.0]))
    >>> print(push(np.array([1.0, 0.0])), push(np.array([0.0, 1.0])))
    [2. 0.] [0. 4.]
    """
    on_device = carried(function, primals, {})
    if on_device is not None:
        value, push_there = _linearize(function, on_device.args)

        def pushed(*tangents: Any) -> Any:
            on_device.check(function)
            return on_device.back(push_there(*on_device.there(tangents)))

        return on_device.back(value, copied=True), pushed
    return _linearize(function, primals)


def _linearize(function: Callable[..., Any], primals: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    linear = Linearization(function, primals)
    if linear.tape.sweeps_once:
        linear.tape.undo()
        raise DifferentiationError(
            "linearize cannot keep what pb.inplace overwrites or a stateful rule keeps; use pb.jvp, or write a @ b"
        )
    watch = Watch(function, primals, saved_arrays(linear.tape.records))
    expected = trees.structure(primals)

    def push(*tangents: Any) -> Any:
        leaves = _leaves_like(tangents, expected, "tangents", "arguments")
        fitting = [
            _fitting(tangent, leaf, "the push got a tangent", "its argument")
            for tangent, leaf in zip(leaves, linear.leaves, strict=True)
        ]
        watch.check()
        return linear.rebuild_output(trees.Tangents(linear.push(fitting)))

    return linear.value(), push


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Value of `function(*primals)` and its tangent when the arguments move along `tangents`: `(y, dy)`.

    Primals and tangents are sequences of one length, one entry per argument. With `has_aux` the function returns
    `(value, aux)` and aux comes third.

    >>> y, dy = pb.jvp(np.square, (np.array([1.0, 2.0]),), (np.array([0.0, 1.0]),))
    >>> print(y, dy)
    [1. 4.] [0. 4.]
    """
    for sequence in (primals, tangents):
        if not isinstance(sequence, tuple | list):
            raise DifferentiationError(
                f"jvp takes the arguments and their tangents as tuples, not as {type(sequence).__name__}: jvp(f, (x,), (dx,))"
            )
    on_device = carried(function, tuple(primals), {})
    if on_device is None:
        return _jvp(function, primals, tangents, has_aux=has_aux)
    results: tuple[Any, ...] = on_device.back(
        _jvp(function, on_device.args, on_device.there(tuple(tangents)), has_aux=has_aux)
    )
    return results


def _jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool
) -> tuple[Any, ...]:
    leaves, rebuild = argument_leaves(tuple(primals), function)
    moves = _leaves_like(tuple(tangents), trees.structure(tuple(primals)), "tangents", "primals")
    moves = [
        _fitting(move, leaf, f"{name_of(function)} got a tangent", "its argument")
        for move, leaf in zip(moves, leaves, strict=True)
    ]
    with tracing(ForwardTrace()) as trace:
        duals = [given(DualTracer(trace, leaf, move)) for leaf, move in zip(leaves, moves, strict=True)]
        output = function(*rebuild(iter(duals)))
        output, aux = split_aux(output, function) if has_aux else (output, None)
        results, rebuild_output = output_leaves(output, function)
        values = [checked_array(trace.value_of(result), function) for result in results]
        pushed = [trace.tangent_of(result) for result in results]
        dys = [zero_like(value) if dy is None else dy for value, dy in zip(values, pushed, strict=True)]
        beside, rebuild_aux = trees.flatten(aux)
        aux = rebuild_aux(iter([trace.value_of(leaf) for leaf in beside]))
        trace.refuse_unread()
    result = rebuild_output(iter(values)), rebuild_output(trees.Tangents(dys))
    return (*result, aux) if has_aux else result


def argument_leaves(args: tuple[Any, ...], function: Callable[..., Any]) -> tuple[list[Any], trees.Rebuild]:
    """The leaves of arguments, each of which can have a derivative, and what rebuilds the arguments."""
    for argument in args:
        differentiable_leaves(argument, function)
    return trees.flatten(args)


def output_leaves(output: Any, function: Callable[..., Any]) -> tuple[list[Any], trees.Rebuild]:
    """The leaves of what a function returned, which is no constant, and what rebuilds it."""
    return trees.flatten(checked_array(output, function) if trees.is_constant(output) else output)


def checked_array(value: Any, function: Callable[..., Any]) -> Any:
    """The value, if it is an array or a number."""
    if not is_array_like(value) and not isinstance(value, TracedValue):
        raise DifferentiationError(
            f"{name_of(function)} returned a {type(value).__name__}, which has no derivative; "
            "return arrays and numbers, and anything else with has_aux=True"
        )
    return value


def zero_like(value: Any) -> Any:
    """The tangent of a value that does not move; integers move in the default precision, as in NumPy's promotion."""
    if getattr(type(value), "on_device", False) and value.dtype.kind in "fc":
        return value.filled(0)
    dtype = dtype_of(value)
    return np.zeros(shape_of(value), dtype if dtype.kind in "fc" else float)[()]


def _leaves_like(tree: Any, structure: Any, what: str, owner: str) -> list[Any]:
    """Leaves of a tree that has to be built like another."""
    if structure == "leaf":
        return [tree]
    if trees.structure(tree) != structure:
        raise DifferentiationError(f"the {what} must be nested like the {owner}: the same containers, keys and lengths")
    return trees.flatten(tree)[0]


def _fitting(move: Any, value: Any, got: str, what: str) -> Any:
    """A tangent or cotangent in the precision of its value, if it has the value's shape."""
    if not is_array_like(move) and not hasattr(move, "dtype"):
        raise DifferentiationError(f"{got} that is a {type(move).__name__}; give an array or a number")
    if shape_of(move) != shape_of(value):
        raise DifferentiationError(f"{got} of shape {shape_of(move)}, {what} has shape {shape_of(value)}")
    dtype = dtype_of(value)
    if isinstance(move, TracedValue) or dtype.kind not in "fc":
        return move
    if dtype.kind != "c" and _is_complex(move):
        raise DifferentiationError(f"{got} that is complex, {what} is real; pass its real part")
    if getattr(type(value), "on_device", False):
        return value.placed(move)
    # A number stays a number: an array of shape () would cost memory.
    return np.asarray(move, dtype) if shape_of(value) else dtype.type(move)


def _is_complex(move: Any) -> bool:
    return np.iscomplexobj(move) if shape_of(move) else dtype_of(move).kind == "c"
