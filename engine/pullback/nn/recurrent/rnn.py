"""h_t = act(Wi x_t + Wh h_(t-1) + b), for all t.

Saved: the states, which are the result, and nothing else; so act is one whose derivative can be had from its output.
Forward the product with x is one over all steps; each step adds its product with the state before and is activated in
place, where the result lies. In reverse the slopes of all steps are made at once and become the cotangents in place; only
dh goes step by step. Arrays: forward 1 and a step's worth; reverse 1 and a step's worth, beside the cotangents.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal
from pullback.core.constant_arrays import number
from pullback.core.kinds import Scalar
from pullback.core.types import Shape
from pullback.layouts import Layout
from pullback.nn.recurrent.cells import rnn_step
from pullback.nn.recurrent.gate_kernels import slope_of_tanh
from pullback.nn.recurrent.reverse import Array, Reverse, product_with_input, rows
from pullback.nn.recurrent.rule import Recurrence
from pullback.nn.recurrent.weights import Weights
from pullback.rules.activations import relu
from pullback.rules.trigonometric import tanh


def _slope_of_relu(h: Array, out: Array) -> None:
    np.greater(h, number(0, h.dtype), out=out, casting="unsafe")  # truth values as numbers


SLOPES: dict[Any, Callable[[Array, Array], None]] = {tanh: slope_of_tanh, relu: _slope_of_relu}
IN_PLACE: dict[Scalar, Callable[[Array], Any]] = {
    tanh: lambda z: np.tanh(z, out=z),
    relu: lambda z: np.maximum(z, number(0, z.dtype), out=z),
}


class _Rnn(Recurrence):
    """Parameter: act, a key of SLOPES."""

    gates = 1

    def forward_spare(self, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((batch, hidden),)

    def forward(
        self,
        results: Sequence[Array],
        spare: Sequence[Array],
        x: Array,
        weights: Weights,
        initial: Sequence[Any],
        params: dict[str, Any],
    ) -> None:
        activate = IN_PLACE[params["act"]]
        (states,), (product,) = results, spare
        product_with_input(x, weights, states)
        (before,) = initial
        for h in states:
            if before is not None:
                np.add(h, np.matmul(before, weights.wh.T, out=product), out=h)
            activate(h)
            before = h

    def backward_spare(self, steps: int, batch: int, hidden: int) -> tuple[Shape, ...]:
        return ((steps, batch, hidden), (batch, hidden))

    def backward(self, reverse: Reverse, params: dict[str, Any]) -> None:
        (states,), (h_bar,), (initial,) = reverse.results, reverse.bars, reverse.initial
        dz, dh, of_product = reverse.spare
        SLOPES[params["act"]](states, dz)
        dz[-1] *= h_bar[-1]
        for step in range(len(dz) - 2, -1, -1):
            np.matmul(dz[step + 1], reverse.weights.wh, out=dh)
            dh += h_bar[step]
            dz[step] *= dh
        if reverse.gradient is not None:
            reverse.pull_product(dz, states[:-1], initial, reverse.gradient.wh, of_product)
        (initial_bar,) = reverse.initial_bars
        if initial_bar is not None:
            np.matmul(dz[0], reverse.weights.wh, out=initial_bar)
        reverse.pull_input(rows(dz))

    def step(self, weights: Weights, x: Any, states: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return (rnn_step(weights, x, states[0], params["act"]),)


rnn = _Rnn("rnn")

_LAYOUT = Layout.of({"Wi": (3, 2), "Wh": (3, 3), "b": (3,)})
cases(rnn, normal(4, 2, 2), normal(18), normal(2, 3), layout=_LAYOUT, given=(True,), act=tanh)
cases(rnn, normal(4, 2, 2), normal(18), layout=_LAYOUT, given=(False,), act=tanh, because="a state of zeros")
cases(rnn, normal(1, 2, 2), normal(18), layout=_LAYOUT, given=(False,), act=tanh, because="one step")
cases(
    rnn,
    normal(4, 2, 2),
    normal(15),
    normal(2, 3),
    layout=Layout.of({"Wh": (3, 3), "Wi": (3, 2)}),
    given=(True,),
    act=tanh,
    because="no bias, and the matrices the other way round",
)
