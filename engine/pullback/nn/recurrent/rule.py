"""A recurrent layer over a whole sequence as one primitive, and its gradient as another.

Reference: the loop over `cells`, in primitives. Tests run on both; tangents (forward mode) and every derivative of the
gradient (second order) are the reference's own. Operands: x (steps, batch, inputs), the parameters as one array of one
dimension, the initial states that were given. Results: the states of all steps, then what else the gradient reads; each
cell's file says what is saved and how large. Overwritten: nothing but what the rule itself has made.

In reverse only what is needed is computed: no product for the cotangent of a constant x, for constant weights, for an
initial state that is not needed. The gradient by the parameters is one array in the layout of the block, and the
products over all steps are written straight into its views.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from pullback.control.leaves import leaf_type, zeros
from pullback.control.scans import scan
from pullback.core.cases import tested_in
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape, type_of
from pullback.layouts import Layout
from pullback.nn.recurrent.cells import run_steps
from pullback.nn.recurrent.reverse import Array, Reverse
from pullback.nn.recurrent.weights import Weights
from pullback.transforms.linearization import jvp, vjp


class Recurrence(Primitive):
    """Parameters: layout of the block, which initial states are given, and what the cell takes besides."""

    in_lines = (0,)
    gates: int
    states: int = 1

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.gradient = _Gradient(self)

    @abstractmethod
    def forward(
        self,
        results: Sequence[Array],
        spare: Sequence[Array],
        x: Array,
        weights: Weights,
        initial: Sequence[Any],
        params: dict[str, Any],
    ) -> None:
        """Write the states of all steps, and what is saved beside them, into `results`."""

    @abstractmethod
    def forward_spare(self, batch: int, hidden: int) -> tuple[Shape, ...]:
        """Shapes of what `forward` needs while it runs."""

    @abstractmethod
    def backward(self, reverse: Reverse, params: dict[str, Any]) -> None:
        """Write the cotangents of x, of the weights and of the initial states to the arrays of `reverse`."""

    @abstractmethod
    def backward_spare(self, steps: int, batch: int, hidden: int) -> tuple[Shape, ...]:
        """Shapes of what `backward` needs while it runs, before one of the shape of `Wh` for the initial state's share."""

    @abstractmethod
    def step(self, weights: Weights, x: Any, states: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """The next states, in primitives."""

    def saved(self, steps: int, batch: int, hidden: int, params: dict[str, Any]) -> tuple[Shape, ...]:
        """Shapes of the saved arrays other than the states."""
        return ()

    def reference(self, params: dict[str, Any], x: Any, w: Any, *given: Any) -> tuple[Any, ...]:
        """States of all steps by the plain loop."""

        def step(weights: Weights, x: Any, *states: Any) -> tuple[Any, ...]:
            return self.step(weights, x, states, params)

        return run_steps(step, read(w, params["layout"]), x, _spread(given, params["given"]))

    def loop(self, x: Any, w: Any, *given: Any, **params: Any) -> tuple[Any, ...]:
        """States of all steps by a loop of the graph; a state that is not given starts with zeros.

        For where recorded: a backend that compiles loops does better with one than with a rule it does not know.
        """
        weights = read(w, params["layout"])
        batch, hidden = np.shape(x)[1], weights.hidden
        nothing = [zeros(ArrayType((batch, hidden), w.dtype)) for _ in params["given"]]
        initial = [
            zero if state is None else state
            for zero, state in zip(nothing, _spread(given, params["given"]), strict=True)
        ]

        def step(states: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            after = self.step(weights, x, states, params)
            return after, after

        return tuple(scan(step, tuple(initial), x)[1])

    def written_out(self, *operands: Any, **params: Any) -> Any:
        """The results of the rule by a loop of the graph; zeros for those that only its gradient reads."""
        types = self.infer(*(leaf_type(operand, "an operand", self.name) for operand in operands), **params)
        results = (*self.loop(*operands, **params), *(zeros(type_) for type_ in types[self.states :]))
        return results if self.results > 1 else results[0]

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        """Run forward."""
        types = [type_of(operand) for operand in operands]
        results = tuple(map(_new, self.infer(*types, **params)))
        out = results if self.results > 1 else results[0]
        self.into(out, *operands, **params, scratch=[*map(_new, self.scratch(*types, **params))])
        return out

    def into(self, out: Any, x: Any, w: Any, *given: Any, scratch: Sequence[Any], **params: Any) -> None:
        """Run forward, in memory that is there."""
        results = out if self.results > 1 else (out,)
        self.forward(results, scratch, x, read(w, params["layout"]), _spread(given, params["given"]), params)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        """A step's worth of a few arrays."""
        batch = types[0].shape[1]
        shapes = self.forward_spare(batch, _hidden(params["layout"]))
        return [ArrayType(shape, types[1].dtype) for shape in shapes]

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """States of all steps, and what is saved."""
        x, w = types[:2]
        steps, batch, _ = x.shape
        hidden = _hidden(params["layout"])
        shapes = [(steps, batch, hidden)] * self.states
        return tuple(ArrayType(shape, w.dtype) for shape in (*shapes, *self.saved(steps, batch, hidden, params)))

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Hand over to the gradient, a primitive too, so that it can be recorded and differentiated."""
        results, bars = (y, y_bar) if self.results > 1 else ((y,), (y_bar,))
        leading = tuple(bar is not None for bar in bars[: self.states])
        if not any(leading):
            return [None] * len(operands)
        x_bar, w_bar, *initial = self.gradient(
            *operands,
            *results,
            *(bar for bar in bars[: self.states] if bar is not None),
            **params,
            needed=tuple(needed),
            leading=leading,
        )
        given = [bar for bar, is_given in zip(initial, params["given"], strict=True) if is_given]
        return [bar if need else None for bar, need in zip((x_bar, w_bar, *given), needed, strict=True)]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Tangents of the states by the reference; what is saved has none, since only the gradient reads it."""
        _, pushed = jvp(lambda *xs: self.reference(params, *xs), operands, _filled(tangents, operands))
        return (*pushed, *[None] * (self.results - self.states)) if self.results > 1 else pushed[0]

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        """Batches that share the weights are one larger batch."""
        if batched[1]:
            return super().batch(operands, batched, params)
        size = next(np.shape(operand)[0] for operand, own in zip(operands, batched, strict=True) if own)
        x, w, *given = operands
        own_x, _, *own_given = batched
        xs = np.moveaxis(x, 0, 1) if own_x else _repeated(x, 1, size)
        states = [h if own else _repeated(h, 0, size) for h, own in zip(given, own_given, strict=True)]
        results = self(_joined(xs, 1), w, *(_joined(h, 0) for h in states), **params)
        several = results if self.results > 1 else (results,)
        examples = np.shape(x)[-2]
        split = tuple(
            np.moveaxis(np.reshape(result, (result.shape[0], size, examples, result.shape[2])), 1, 0)
            for result in several
        )
        return split if self.results > 1 else split[0]

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Two products a step; the elementwise work is small beside them."""
        return 2 * self.gates * result.size * (types[0].shape[-1] + result.shape[-1])


class _Gradient(Primitive):
    """Cotangents of x, of the parameters and of every initial state; an empty array where one is not needed.

    Operands: those of the rule, its results, and the cotangents of those states that lead to the output (`leading`).
    """

    def __init__(self, rule: Recurrence) -> None:
        super().__init__(f"{rule.name}_gradient")
        self.rule = rule
        self.in_lines = (0,)
        self.results = 2 + rule.states

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        types = [type_of(operand) for operand in operands]
        out = tuple(map(_new, self.infer(*types, **params)))
        self.into(out, *operands, **params, scratch=[*map(_new, self.scratch(*types, **params))])
        return out

    def into(self, out: Any, *operands: Any, scratch: Sequence[Any], **params: Any) -> None:
        layout: Layout = params["layout"]
        (x, w, *given), results, bars = self._roles(operands, params)
        needs_x, needs_w, *needs_given = params["needed"]
        x_bar, w_bar, *initial_bars = out
        if needs_w and any(name not in {"Wi", "Wh", "b"} for name in layout):
            w_bar.fill(0)  # the block holds more than this layer reads
        needs_initial = _spread(needs_given, params["given"])
        reverse = Reverse(
            x,
            read(w, layout),
            tuple(_spread(given, params["given"])),
            tuple(results),
            tuple(_spread(bars, params["leading"])),
            read(w_bar, layout) if needs_w else None,
            x_bar if needs_x else None,
            tuple(bar if need else None for bar, need in zip(initial_bars, needs_initial, strict=True)),
            tuple(scratch),
        )
        self.rule.backward(reverse, params)

    def scratch(self, *types: ArrayType, **params: Any) -> Sequence[ArrayType]:
        steps, batch, _ = types[0].shape
        hidden, dtype = _hidden(params["layout"]), types[1].dtype
        of_product = (self.rule.gates * hidden, hidden) if any(params["given"]) and params["needed"][1] else (0,)
        return [ArrayType(shape, dtype) for shape in (*self.rule.backward_spare(steps, batch, hidden), of_product)]

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        inputs, _, _ = self._roles(types, params)
        x, w, *given = [
            type_ if need else ArrayType((0,), types[1].dtype)
            for type_, need in zip(inputs, params["needed"], strict=True)
        ]
        absent = ArrayType((0,), types[1].dtype)
        return (x, w, *(absent if type_ is None else type_ for type_ in _spread(given, params["given"])))

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        moving, function = self._function(operands, params)
        values, pullback = vjp(function, *moving)[:2]
        given = [bar for bar, need in zip(self._of_operands(y_bar, params), params["needed"], strict=True) if need]
        bars = pullback(tuple(_filled(given, values)))
        cotangents = iter(bars)
        inputs, results, _ = self._roles(operands, params)
        all_bars = [*(next(cotangents) for _ in inputs), *[None] * len(results), *cotangents]
        return [bar if need else None for bar, need in zip(all_bars, needed, strict=True)]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        moving, function = self._function(operands, params)
        inputs, _, bars = self._roles(tangents, params)
        _, pushed = jvp(function, moving, _filled([*inputs, *bars], moving))
        rest = iter(pushed)
        of_operands = [next(rest) if need else None for need in params["needed"]]
        x, w, *given = of_operands
        return (x, w, *_spread(given, params["given"]))

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """The products for the weights, through time, and for x if its cotangent, the first result, is wanted."""
        steps, batch, inputs = types[0].shape
        hidden = next(type_.shape[-1] for type_ in types[2:] if len(type_.shape) == 3)
        columns = inputs + 2 * hidden + (inputs if result.size else 0)
        return 2 * self.rule.gates * hidden * steps * batch * columns

    def _roles(self, operands: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The operands of the rule, its results, and their cotangents."""
        inputs = 2 + sum(params["given"])
        results = inputs + self.rule.results
        return list(operands[:inputs]), list(operands[inputs:results]), list(operands[results:])

    def _of_operands(self, results: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The results that belong to an operand."""
        x, w, *initial = results
        return [x, w, *(bar for bar, is_given in zip(initial, params["given"], strict=True) if is_given)]

    def written_out(self, *operands: Any, **params: Any) -> tuple[Any, ...]:
        """The gradient by the loop of the rule; what is not needed is still empty."""
        moving, function = self._function(operands, params, lambda *xs: self.rule.loop(*xs, **params))
        cotangents = iter(function(*moving))
        empty = zeros(ArrayType((0,), operands[1].dtype))
        of_operands = [next(cotangents) if need else empty for need in params["needed"]]
        x, w, *given = of_operands
        return (x, w, *(empty if bar is None else bar for bar in _spread(given, params["given"])))

    def _function(
        self, operands: Sequence[Any], params: dict[str, Any], reference: Callable[..., Any] | None = None
    ) -> tuple[list[Any], Any]:
        """The gradient as a function in primitives, and what it is a function of: all but what was saved."""
        inputs, _, bars = self._roles(operands, params)
        forward = reference or (lambda *xs: self.rule.reference(params, *xs))

        def function(*moving: Any) -> tuple[Any, ...]:
            states, pullback = vjp(forward, *moving[: len(inputs)])[:2]
            given = _spread(moving[len(inputs) :], params["leading"])
            cotangents = pullback(tuple(_filled(given, states)))
            return tuple(bar for bar, need in zip(cotangents, params["needed"], strict=True) if need)

        return [*inputs, *bars], function


def gradient_written_out(primitive: Primitive) -> Callable[..., Any] | None:
    """The gradient of a rule by a loop of the graph; None for what is no such gradient."""
    return primitive.written_out if isinstance(primitive, _Gradient) else None


def read(w: Any, layout: Layout) -> Weights:
    """The weights of a layer as views of the one array."""
    return Weights(*(None if (slot := layout.slot(name)) is None else slot.view(w) for name in ("Wi", "Wh", "b")))


@cache
def _absent(dtype: np.dtype[Any]) -> Array:
    """A placeholder for cotangents that are not needed: one empty array for all of a dtype."""
    return np.empty(0, dtype)


def _new(type_: ArrayType) -> Array:
    return _absent(type_.dtype) if type_.shape == (0,) else np.empty(type_.shape, type_.dtype)


def _hidden(layout: Layout) -> int:
    slot = layout.slot("Wh")
    assert slot is not None  # noqa: S101 (the layer has looked at its weights)
    assert isinstance(slot.shape, tuple)  # noqa: S101
    return slot.shape[-1]


def _spread(values: Sequence[Any], present: Sequence[bool]) -> list[Any]:
    """The values at the places that are present, None at the others."""
    rest = iter(values)
    return [next(rest) if is_present else None for is_present in present]


def _repeated(x: Any, axis: int, size: int) -> Any:
    """A value that all batches share, repeated along a new axis."""
    shape = np.shape(x)
    return np.broadcast_to(np.expand_dims(x, axis), (*shape[:axis], size, *shape[axis:]))


def _joined(x: Any, axis: int) -> Any:
    """One axis instead of this and the next: a batch of batches as one batch."""
    shape = np.shape(x)
    return np.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _filled(moves: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    """Zeros for tangents and cotangents that are none."""
    return [np.zeros(np.shape(x), x.dtype) if move is None else move for move, x in zip(moves, like, strict=True)]


tested_in(
    "nn/test_recurrent.py",
    "rnn_gradient",
    "lstm",
    "lstm_gradient",
    "gru_reset_after",
    "gru_reset_before",
    "gru_reset_after_gradient",
    "gru_reset_before_gradient",
)
