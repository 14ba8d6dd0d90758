"""Logistic regression with a ridge: the mean cross-entropy of labelled points, and its gradient.

    L(w, b) = mean over points i of softplus(-y_i (x_i . w + b)) + ridge |w|**2 / 2      y_i = 1 or -1

With g_i = -y_i sigmoid(-y_i (x_i . w + b)) / n:  w_bar = x.T @ g + ridge w, b_bar = sum(g). x (n, features) and y are data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback_runners.workloads.registry import Inputs, ValueAndGradients, grid, workload

RIDGE = 1e-3


@workload(
    wrt=("w", "b"),
    quick=grid(n=(1_000,), features=(20,), dtype=("f8",)),
    standard=grid(n=(1_000, 20_000), features=(20,), dtype=("f8",)),
    full=grid(n=(100, 1_000, 20_000), features=(20, 200), dtype=("f4", "f8")),
)
def logistic_regression(n: int, features: int) -> Callable[..., Any]:  # noqa: ARG001 - every size parameter is passed
    """Mean cross-entropy of logistic regression with a ridge, with respect to weights and offset."""

    def loss(w: Any, b: Any, x: Any, y: Any) -> Any:
        return np.mean(pb.nn.softplus(-y * (x @ w + b))) + 0.5 * RIDGE * np.sum(w**2)

    return loss


@logistic_regression.inputs
def _(rng: np.random.Generator, dtype: np.dtype[Any], n: int, features: int) -> Inputs:
    x = rng.standard_normal((n, features))
    signal = x @ rng.standard_normal(features) / np.sqrt(features) + 0.5 * rng.standard_normal(n)
    return {
        "w": (rng.standard_normal(features) / np.sqrt(features)).astype(dtype),
        "b": np.asarray(0.3 * rng.standard_normal(), dtype=dtype),
        "x": x.astype(dtype),
        "y": np.where(signal > 0, 1.0, -1.0).astype(dtype),
    }


@logistic_regression.oracle
def _(w: Any, b: Any, x: Any, y: Any, *, n: int, features: int) -> ValueAndGradients:  # noqa: ARG001
    # By probabilities and labels of 0 and 1, the other way of writing it down.
    z = x @ w + b
    p, label = 1 / (1 + np.exp(-z)), (y + 1) / 2
    value = np.mean(np.logaddexp(0, z) - label * z) + 0.5 * RIDGE * w @ w
    return value, {"w": x.T @ (p - label) / n + RIDGE * w, "b": np.mean(p - label)}


@logistic_regression.peer("numpy")
def _(w: Any, b: Any, x: Any, y: Any, *, n: int, features: int) -> ValueAndGradients:  # noqa: ARG001
    z = x @ w
    z += b
    z *= y
    value = np.mean(np.maximum(-z, 0) + np.log1p(np.exp(-np.abs(z)))) + 0.5 * RIDGE * np.dot(w, w)
    z *= 0.5
    g = np.tanh(z, out=z)
    g -= 1
    g *= y
    g *= 0.5 / n
    w_bar = g @ x
    w_bar += RIDGE * w
    return value, {"w": w_bar, "b": g.sum()}
