"""A language model of long short-term memories without matrices, as ADBench has it: every unit sees itself alone.

A layer of b units with weights W and biases B, four of each, input y, hidden h and cell c:

    f = sigmoid(y W_f + B_f)  i = sigmoid(h W_i + B_i)  o = sigmoid(y W_o + B_o)  g = tanh(h W_g + B_g)
    c <- f c + i g            h <- o tanh(c), which is the next layer's y

    y_t = x_t * extra_0 through all layers, then * extra_1 + extra_2
    L = - sum over t < steps - 1 of x_(t+1) . (y_t - log(2 + sum(exp(y_t)))) / ((steps - 1) b)

main (2 layers, 4 b): weights and biases in turn, in the order f, i, o, g; extra (3, b); state (2 layers, b): hidden and cell
in turn; x (steps, b) bits of letters.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload


@workload(
    wrt=("main", "extra"),
    quick=grid(layers=(2,), steps=(64,), units=(14,)),
    standard=grid(layers=(2,), steps=(1024,), units=(14,)),
    full=grid(layers=(2, 4, 6), steps=(1024, 4096, 8192), units=(14,)),
)
def lstm_lm(layers: int, steps: int, units: int) -> Callable[..., Any]:
    """Loss of ADBench's language model with respect to all of its parameters."""

    def loss(main: Any, extra: Any, state: Any, x: Any) -> Any:
        weights = np.reshape(main[0::2], (layers, 4, units))
        biases = np.reshape(main[1::2], (layers, 4, units))

        def step(carry: Any, x: Any) -> tuple[Any, Any]:
            y, after = x * extra[0], []
            for layer, (hidden, cell) in enumerate(carry):
                w, b = weights[layer], biases[layer]
                forget, output = pb.nn.sigmoid(y * w[0] + b[0]), pb.nn.sigmoid(y * w[2] + b[2])
                admit, change = pb.nn.sigmoid(hidden * w[1] + b[1]), np.tanh(hidden * w[3] + b[3])
                kept = cell * forget + admit * change
                y = output * np.tanh(kept)
                after.append((y, kept))
            return tuple(after), y

        start = tuple((state[2 * layer], state[2 * layer + 1]) for layer in range(layers))
        _, outputs = pb.scan(step, start, x[:-1])
        predicted = outputs * extra[1] + extra[2]
        normalised = predicted - np.log(2 + np.sum(np.exp(predicted), axis=1, keepdims=True))
        return -np.sum(x[1:] * normalised) / ((steps - 1) * units)

    return loss


@lstm_lm.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], layers: int, steps: int, units: int) -> Inputs:
    return {
        "main": rng.uniform(size=(2 * layers, 4 * units)).astype(dtype),
        "extra": rng.uniform(size=(3, units)).astype(dtype),
        "state": rng.uniform(size=(2 * layers, units)).astype(dtype),
        "x": rng.integers(0, 2, (steps, units)).astype(dtype),
    }


def _sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


@lstm_lm.oracle
def _(main: Any, extra: Any, state: Any, x: Any, *, layers: int, steps: int, units: int) -> ValueAndGradients:
    # By hand: all steps forward with everything kept, then back through steps and layers one by one.
    w, b = (main[part::2].reshape(layers, 4, units) for part in (0, 1))
    hidden, cell = list(state[0::2]), list(state[1::2])
    count, value = (steps - 1) * units, 0.0
    kept, tops, slopes = [], [], []
    for t in range(steps - 1):
        y, seen = x[t] * extra[0], []
        for layer in range(layers):
            h, c = hidden[layer], cell[layer]
            f, o = _sigmoid(y * w[layer, 0] + b[layer, 0]), _sigmoid(y * w[layer, 2] + b[layer, 2])
            i, g = _sigmoid(h * w[layer, 1] + b[layer, 1]), np.tanh(h * w[layer, 3] + b[layer, 3])
            cell[layer] = c * f + i * g
            squashed = np.tanh(cell[layer])
            seen.append((y, h, c, f, i, o, g, squashed))
            y = hidden[layer] = o * squashed
        kept.append(seen)
        tops.append(y)
        predicted = y * extra[1] + extra[2]
        total = 2 + np.exp(predicted).sum()
        value -= x[t + 1] @ (predicted - np.log(total)) / count
        slopes.append((x[t + 1].sum() * np.exp(predicted) / total - x[t + 1]) / count)
    w_bar, b_bar, extra_bar = np.zeros_like(w), np.zeros_like(b), np.zeros_like(extra)
    h_bar, c_bar = np.zeros((2, layers, units))
    for t in range(steps - 2, -1, -1):
        extra_bar[1] += slopes[t] * tops[t]
        extra_bar[2] += slopes[t]
        y_bar = slopes[t] * extra[1]
        for layer in range(layers - 1, -1, -1):
            y, h, c, f, i, o, g, squashed = kept[t][layer]
            out_bar = y_bar + h_bar[layer]
            through = c_bar[layer] + out_bar * o * (1 - squashed**2)
            z_bar = np.stack(
                [
                    through * c * f * (1 - f),
                    through * g * i * (1 - i),
                    out_bar * squashed * o * (1 - o),
                    through * i * (1 - g**2),
                ]
            )
            w_bar[layer] += z_bar * np.stack([y, h, y, h])
            b_bar[layer] += z_bar
            y_bar = z_bar[0] * w[layer, 0] + z_bar[2] * w[layer, 2]
            h_bar[layer] = z_bar[1] * w[layer, 1] + z_bar[3] * w[layer, 3]
            c_bar[layer] = through * f
        extra_bar[0] += y_bar * x[t]
    main_bar = np.empty_like(main)
    main_bar[0::2], main_bar[1::2] = w_bar.reshape(layers, -1), b_bar.reshape(layers, -1)
    return value, {"main": main_bar, "extra": extra_bar}
