"""One head of attention over a sequence, under a quadratic loss.

    q = x @ wq    k = x @ wk    v = x @ wv    p = softmax(q @ k.T / sqrt(size))    y = p @ v    L = sum(y**2)

x (batch, length, model) is a constant, wq, wk and wv (model, size); softmax is over the keys, the last axis. With
y_bar = 2 y:

    v_bar = p.T @ y_bar    s_bar = p (p_bar - sum(p_bar p)) / sqrt(size), p_bar = y_bar @ v.T    q_bar = s_bar @ k
    k_bar = s_bar.T @ q    and wq_bar = x.T @ q_bar, summed over the batch, and so for k and v
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

WANTED = ("wq", "wk", "wv")


@workload(
    wrt=WANTED,
    quick=grid(batch=(2,), length=(16,), model=(32,), size=(16,), dtype=("f4",)),
    standard=grid(batch=(4,), length=(64,), model=(128,), size=(32,), dtype=("f4",)),
    full=grid(batch=(1, 8), length=(64, 256), model=(128,), size=(32, 64), dtype=("f4",))
    + grid(batch=(4,), length=(64,), model=(128,), size=(32,), dtype=("f8",)),
)
def attention_head(batch: int, length: int, model: int, size: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """sum(attention(x)**2) of one head with respect to its three matrices."""
    scale = 1 / float(np.sqrt(size))

    def loss(wq: Any, wk: Any, wv: Any, x: Any) -> Any:
        q, k, v = x @ wq, x @ wk, x @ wv
        p = pb.nn.softmax(scale * (q @ np.swapaxes(k, 1, 2)), axis=2)
        return np.sum((p @ v) ** 2)

    return loss


@attention_head.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], batch: int, length: int, model: int, size: int) -> Inputs:
    weights = {name: (rng.standard_normal((model, size)) / np.sqrt(model)).astype(dtype) for name in WANTED}
    return {**weights, "x": rng.standard_normal((batch, length, model)).astype(dtype)}


@attention_head.oracle
def _(wq: Any, wk: Any, wv: Any, x: Any, *, batch: int, length: int, model: int, size: int) -> ValueAndGradients:  # noqa: ARG001
    # Example by example and with the dense Jacobian of softmax, row by row.
    value, bars = 0.0, {"wq": np.zeros_like(wq), "wk": np.zeros_like(wk), "wv": np.zeros_like(wv)}
    for rows in x:
        q, k, v = rows @ wq, rows @ wk, rows @ wv
        s = q @ k.T / np.sqrt(size)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        y = p @ v
        value += np.sum(y**2)
        p_bar = 2 * y @ v.T
        s_bar = np.stack([(np.diag(row) - np.outer(row, row)) @ bar for row, bar in zip(p, p_bar, strict=True)])
        s_bar /= np.sqrt(size)
        bars["wq"] += rows.T @ (s_bar @ k)
        bars["wk"] += rows.T @ (s_bar.T @ q)
        bars["wv"] += rows.T @ (p.T @ (2 * y))
    return value, bars


@attention_head.peer("numpy")
def _(wq: Any, wk: Any, wv: Any, x: Any, *, batch: int, length: int, model: int, size: int) -> ValueAndGradients:
    # One product for the three matrices, in both directions.
    flat = x.reshape(batch * length, model)
    together = (flat @ np.concatenate([wq, wk, wv], axis=1)).reshape(batch, length, 3 * size)
    q, k, v = (together[:, :, part * size : (part + 1) * size] for part in range(3))
    scale = 1 / float(np.sqrt(size))
    p = q @ k.transpose(0, 2, 1)
    p *= scale
    p -= p.max(axis=2, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=2, keepdims=True)
    y = p @ v
    value = np.vdot(y, y)
    y *= 2
    bars = np.empty_like(together)
    np.matmul(p.transpose(0, 2, 1), y, out=bars[:, :, 2 * size :])
    s_bar = y @ v.transpose(0, 2, 1)
    s_bar -= np.einsum("bij,bij->bi", s_bar, p)[:, :, None]
    s_bar *= p
    s_bar *= scale
    np.matmul(s_bar, k, out=bars[:, :, :size])
    np.matmul(s_bar.transpose(0, 2, 1), q, out=bars[:, :, size : 2 * size])
    wanted = flat.T @ bars.reshape(batch * length, 3 * size)
    return value, {name: wanted[:, part * size : (part + 1) * size] for part, name in enumerate(WANTED)}
