"""softmax, its logarithm and the cross-entropy of logits, along an axis that the caller names: layouts differ.

In the unfused tier each runs as its pattern in primitives, elsewhere as one rule.
"""

from typing import Any

import numpy as np

from pullback.core.ignored_warnings import ignoring
from pullback.core.primitive import TracedValue
from pullback.numpy_api.operands import as_operand
from pullback.rules import softmax as rules
from pullback.rules.constants import stop
from pullback.tiers import current_tier


def softmax(x: Any, *, axis: int) -> Any:
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    p = pb.nn.softmax(logits, axis=0)
    """
    x = as_operand(x)
    place = _axis("softmax", axis, x)
    if current_tier() != "unfused":
        return rules.softmax(x, axis=place)
    e = np.exp(_shifted(x, place)[0])
    return e / np.sum(e, axis=place, keepdims=True)


def logsoftmax(x: Any, *, axis: int) -> Any:
    """log(softmax(x)) along an axis, right also where the softmax is 0 to rounding."""
    x = as_operand(x)
    place = _axis("logsoftmax", axis, x)
    if current_tier() != "unfused":
        return rules.logsoftmax(x, axis=place)
    below, _ = _shifted(x, place)
    return below - _log(np.sum(np.exp(below), axis=place, keepdims=True))


def logsumexp(x: Any, *, axis: int, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis, without overflow."""
    x = as_operand(x)
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
    logits, targets = as_operand(logits), as_operand(targets)
    place = _axis("logitcrossentropy", axis, logits)
    if reduce not in ("mean", "sum", "none"):
        raise ValueError(f"logitcrossentropy: reduce is 'mean', 'sum' or 'none', got {reduce!r}")
    shape = np.shape(logits)
    numbered = np.shape(targets) == (*shape[:place], *shape[place + 1 :])
    if numbered and targets.dtype.kind not in "iu":
        raise TypeError(f"logitcrossentropy: class numbers are integers, got {targets.dtype}")
    if not numbered and np.shape(targets) != shape:
        raise ValueError(
            f"logitcrossentropy: targets of shape {np.shape(targets)} fit logits of shape {shape} neither as probabilities "
            "nor, without the axis, as class numbers"
        )
    followed = numbered and isinstance(targets, TracedValue)  # their range is known to the rule only
    if followed or current_tier() != "unfused":
        losses = rules.logitcrossentropy(logits, targets, axis=place)
    else:
        losses = _pattern(logits, targets, place, numbered=numbered)
    return losses if reduce == "none" else np.mean(losses) if reduce == "mean" else np.sum(losses)


def _shifted(x: Any, axis: int) -> tuple[Any, Any]:
    """Give x below its largest element, and that element: the pattern that the rules are compared with, in primitives.

    The shift is the same for every result, so it is a constant to derivatives.
    """
    x = _real(x) if x.dtype.kind == "f" else _real(x).astype(float)
    top = stop(np.max(x, axis=axis, keepdims=True))
    return rules.below_largest(x, top), top


def _log(total: Any) -> Any:
    with ignoring("divide"):  # the logarithm of no probability is -inf
        return np.log(total)


def _real(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise TypeError("softmax, logsumexp and cross-entropy compare sizes and take real numbers; pass x.real")
    return x


def _pattern(logits: Any, targets: Any, axis: int, *, numbered: bool) -> Any:
    logs = logsoftmax(logits, axis=axis)
    if numbered:
        rules.checked_classes(targets, np.shape(logits)[axis])
        return -np.sum(np.where(rules.one_hot(targets, logits, axis), logs, 0), axis=axis)
    counted = np.where((targets == 0) * np.isinf(logs), 0, logs)  # 0 * -inf is nothing lost
    return -np.sum(targets * counted, axis=axis)


def _axis(function: str, axis: int, x: Any) -> int:
    if not -np.ndim(x) <= axis < np.ndim(x):
        raise ValueError(f"{function}: an array of shape {np.shape(x)} has no axis {axis}")
    return int(axis) % np.ndim(x)
