"""softmax, its logarithm and the cross-entropy of logits, along an axis that the caller names: layouts differ.

In the unfused tier each runs as its pattern in primitives, elsewhere as one rule.
"""

from typing import Any

import numpy as np

from pullback.ir.types import is_array_like
from pullback.primitive import Traced
from pullback.rules import softmax as rules
from pullback.rules.constants import stop
from pullback.tiers import current_tier


def softmax(x: Any, *, axis: int) -> Any:
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    p = pb.nn.softmax(logits, axis=0)
    """
    place = _axis("softmax", axis, x)
    if current_tier() != "unfused":
        return rules.softmax(x, axis=place)
    e = np.exp(_shifted(x, place)[0])
    return e / np.sum(e, axis=place, keepdims=True)


def logsoftmax(x: Any, *, axis: int) -> Any:
    """log(softmax(x)) along an axis, right also where the softmax is 0 to rounding."""
    place = _axis("logsoftmax", axis, x)
    if current_tier() != "unfused":
        return rules.logsoftmax(x, axis=place)
    below, _ = _shifted(x, place)
    return below - _log(np.sum(np.exp(below), axis=place, keepdims=True))


def logsumexp(x: Any, *, axis: int, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis, without overflow."""
    place = _axis("logsumexp", axis, x)
    if current_tier() != "unfused":
        return rules.logsumexp(x, axis=place, keepdims=bool(keepdims))
    below, top = _shifted(x, place)
    total = _log(np.sum(np.exp(below), axis=place, keepdims=keepdims))
    return total + (top if keepdims else np.squeeze(top, axis=place))


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
    if current_tier() != "unfused":
        losses = rules.logitcrossentropy(logits, targets, axis=place)
    else:
        logs = logsoftmax(logits, axis=place)
        counted = np.where((targets == 0) * np.isinf(logs), 0, logs)  # 0 * -inf is nothing lost
        losses = -np.sum(targets * counted, axis=place)
    return losses if reduce == "none" else np.mean(losses) if reduce == "mean" else np.sum(losses)


def _shifted(x: Any, axis: int) -> tuple[Any, Any]:
    """Give x below its largest element, and that element: the pattern that the rules are compared with, in primitives.

    The shift is the same for every result, so it is a constant to derivatives.
    """
    top = stop(np.max(_real(x), axis=axis, keepdims=True))
    top = np.where(np.isinf(top), 0, top).astype(top.dtype)
    return x - top, top


def _log(total: Any) -> Any:
    with np.errstate(divide="ignore"):  # the logarithm of no probability is -inf
        return np.log(total)


def _real(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("softmax, logsumexp and cross-entropy compare sizes and take real numbers; pass x.real")
    return x


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
