"""Parameters of recurrent layers: Wi (gates * hidden, inputs), Wh (gates * hidden, hidden), b (gates * hidden,) or none.

Which rows belong to which gate is private: the order suits the rules here (all gates with a sigmoid are neighbours), and
other libraries have others. `lstm_gates` and `gru_gates` give the views of a gate by its name.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from pullback.blocks import Block
from pullback.core.types import Shape

LSTM_GATES = ("output", "input", "forget", "cell")
GRU_GATES = ("reset", "update", "candidate")

Parameters = Mapping[str, Any]
"""A block, or any mapping, with Wi, Wh and b; without b, or with None for it, the layer has no bias."""


class Weights(NamedTuple):
    """The parameters that a layer reads."""

    wi: Any
    wh: Any
    b: Any = None

    @property
    def hidden(self) -> int:
        """Number of hidden units."""
        return int(np.shape(self.wh)[-1])


def weights_of(layer: str, gates: int, params: Any) -> Weights:
    """The weights of a layer, with shapes that fit each other."""
    if not isinstance(params, Mapping) or "Wi" not in params or "Wh" not in params:
        has = f"has {', '.join(params)}" if isinstance(params, Mapping) else f"is a {type(params).__name__}"
        raise TypeError(f"{layer}: the parameters are a block or mapping with Wi, Wh and perhaps b; this one {has}")
    weights = Weights(params["Wi"], params["Wh"], params.get("b"))
    if np.ndim(weights.wi) != 2 or np.ndim(weights.wh) != 2:
        raise ValueError(
            f"{layer}: Wi and Wh are matrices, got shapes {np.shape(weights.wi)} and {np.shape(weights.wh)}"
        )
    rows = gates * weights.hidden
    expected = {"Wi": (rows, np.shape(weights.wi)[1]), "Wh": (rows, weights.hidden), "b": (rows,)}
    for (name, shape), found in zip(expected.items(), weights, strict=True):
        if found is not None and np.shape(found) != shape:
            raise ValueError(
                f"{layer}: with {weights.hidden} hidden units {name} has shape {shape}, got {np.shape(found)}"
            )
    return weights


def glorot_uniform(rng: np.random.Generator) -> Callable[[Shape], np.ndarray[Any, Any]]:
    """An initialiser: uniform in ±sqrt(6 / (rows + columns)) (Glorot and Bengio 2010)."""
    return lambda shape: rng.uniform(-1, 1, shape) * np.sqrt(6 / sum(shape))


def rnn_block(
    inputs: int,
    hidden: int,
    *,
    bias: bool = True,
    layers: int = 1,
    dtype: DTypeLike | None = None,
    init: Callable[[Shape], Any] | None = None,
) -> Block:
    """Parameters of `rnn`, all in one block. `init` fills Wi and Wh; without it they are zero, as b always is.

    With several layers the block has a block for each: layer1, layer2, …

    `block = pb.nn.rnn_block(3, 5, init=pb.nn.glorot_uniform(rng))`
    """
    return _block(1, inputs, hidden, bias, layers, dtype, init)


def lstm_block(
    inputs: int,
    hidden: int,
    *,
    bias: bool = True,
    layers: int = 1,
    dtype: DTypeLike | None = None,
    init: Callable[[Shape], Any] | None = None,
) -> Block:
    """Parameters of `lstm`; see `rnn_block`."""
    return _block(len(LSTM_GATES), inputs, hidden, bias, layers, dtype, init)


def gru_block(
    inputs: int,
    hidden: int,
    *,
    bias: bool = True,
    layers: int = 1,
    dtype: DTypeLike | None = None,
    init: Callable[[Shape], Any] | None = None,
) -> Block:
    """Parameters of `gru`; see `rnn_block`."""
    return _block(len(GRU_GATES), inputs, hidden, bias, layers, dtype, init)


def lstm_gates(params: Parameters) -> dict[str, dict[str, Any]]:
    """The rows of Wi, Wh and b that belong to each gate: input, forget, cell, output. They are views.

    `pb.nn.lstm_gates(block)["forget"]["b"][...] = 1`
    """
    return _gates(params, LSTM_GATES, ("input", "forget", "cell", "output"))


def gru_gates(params: Parameters) -> dict[str, dict[str, Any]]:
    """The rows of Wi, Wh and b that belong to each gate: reset, update, candidate. They are views."""
    return _gates(params, GRU_GATES, GRU_GATES)


def _block(
    gates: int,
    inputs: int,
    hidden: int,
    bias: bool,  # noqa: FBT001 (the callers, the public functions, take it by keyword)
    layers: int,
    dtype: DTypeLike | None,
    init: Callable[[Shape], Any] | None,
) -> Block:
    if min(inputs, hidden, layers) < 1:
        raise ValueError(
            f"inputs, hidden and layers are at least one, got inputs={inputs}, hidden={hidden}, layers={layers}"
        )
    rows = gates * hidden

    def shapes(inputs: int) -> dict[str, Any]:
        return {"Wi": (rows, inputs), "Wh": (rows, hidden), **({"b": (rows,)} if bias else {})}

    matrices: Any = {} if init is None else {"Wi": init, "Wh": init}
    if layers == 1:
        return Block(shapes(inputs), dtype, init=matrices)
    stack = {f"layer{layer + 1}": shapes(hidden if layer else inputs) for layer in range(layers)}
    return Block(stack, dtype, init=dict.fromkeys(stack, matrices))


def _gates(params: Parameters, order: tuple[str, ...], names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    hidden = np.shape(params["Wh"])[-1]
    rows = {name: slice(place * hidden, (place + 1) * hidden) for place, name in enumerate(order)}
    return {gate: {name: part[rows[gate]] for name, part in params.items() if part is not None} for gate in names}
