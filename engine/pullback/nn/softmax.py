"""softmax, its logarithm and the cross-entropy of logits, along an axis that the caller names: layouts differ."""

from typing import Any

import numpy as np

from pullback.ir.types import is_array_like
from pullback.primitive import Traced
from pullback.rules import softmax as rules


def softmax(x: Any, *, axis: int) -> Any:
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    p = pb.nn.softmax(logits, axis=0)
    """
    return rules.softmax(x, axis=_axis("softmax", axis, x))


def logsoftmax(x: Any, *, axis: int) -> Any:
    """log(softmax(x)) along an axis, right also where the softmax is 0 to rounding."""
    return rules.logsoftmax(x, axis=_axis("logsoftmax", axis, x))


def logsumexp(x: Any, *, axis: int, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis, without overflow."""
    return rules.logsumexp(x, axis=_axis("logsumexp", axis, x), keepdims=bool(keepdims))


def logitcrossentropy(logits: Any, targets: Any, *, axis: int, reduce: str = "mean") -> Any:
    """Cross-entropy of softmax(logits) along an axis: -sum(targets * logsoftmax(logits)), averaged over the examples.

    `targets` are probabilities of the shape of the logits, or class numbers of the shape without the axis. `reduce` is
    "mean", "sum" or "none".

        loss = pb.nn.logitcrossentropy(logits, labels, axis=0)
    """
    place = _axis("logitcrossentropy", axis, logits)
    if reduce not in ("mean", "sum", "none"):
        raise ValueError(f"logitcrossentropy: reduce is 'mean', 'sum' or 'none', got {reduce!r}")
    shape = np.shape(logits)
    if not isinstance(targets, Traced):
        targets = targets if is_array_like(targets) else np.asarray(targets)
        if np.shape(targets) == (*shape[:place], *shape[place + 1 :]):
            targets = _one_hot(targets, shape, place, logits.dtype)
    if np.shape(targets) != shape:
        raise ValueError(
            f"logitcrossentropy: targets of shape {np.shape(targets)} fit logits of shape {shape} neither as probabilities "
            "nor, without the axis, as class numbers"
        )
    losses = rules.logitcrossentropy(logits, targets, axis=place)
    return losses if reduce == "none" else np.mean(losses) if reduce == "mean" else np.sum(losses)


def _one_hot(labels: Any, shape: tuple[int, ...], axis: int, dtype: np.dtype[Any]) -> Any:
    labels = np.asarray(labels)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"logitcrossentropy: class numbers are integers, got {labels.dtype}")
    if labels.size and not (labels.min() >= 0 and labels.max() < shape[axis]):
        raise ValueError(
            f"logitcrossentropy: class numbers go from 0 to {shape[axis] - 1}, got {labels.min()} to {labels.max()}"
        )
    classes = np.arange(shape[axis]).reshape(-1, *[1] * (len(shape) - 1 - axis))
    return (np.expand_dims(labels, axis) == classes).astype(dtype if dtype.kind == "f" else float)


def _axis(function: str, axis: int, x: Any) -> int:
    if not -np.ndim(x) <= axis < np.ndim(x):
        raise ValueError(f"{function}: an array of shape {np.shape(x)} has no axis {axis}")
    return int(axis) % np.ndim(x)
