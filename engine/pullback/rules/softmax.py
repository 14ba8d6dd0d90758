"""softmax and its relatives along one axis, and the cross-entropy of logits, each in one rule.

| rule               | pattern in primitives                            | saved for the pullback      | pattern saves        |
|--------------------|--------------------------------------------------|-----------------------------|----------------------|
| softmax            | e = exp(x - max(x)); e / sum(e)                  | y                           | e, sum(e), y         |
| logsoftmax         | x - max(x) - log(sum(exp(x - max(x))))           | y                           | exp(…), sum          |
| logsumexp          | max(x) + log(sum(exp(x - max(x))))               | x, y                        | exp(…), sum          |
| logitcrossentropy  | -sum(target * logsoftmax(x))                     | x, target                   | and three of x's size|

The largest element is taken off first (`below_largest`), so nothing overflows, a row of -inf is log(0) and not nan, and an
infinite element has all the weight, several of them equal ones. A target of 0 at a logit of -inf counts 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.cases import cases, normal, positive, whole
from pullback.core.constant_arrays import number
from pullback.core.ignored_warnings import ignoring
from pullback.core.kinds import Scalar, cast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.core.zero_derivatives import ZeroDerivative
from pullback.rules.reductions import reduced_shape


def _floating(x: Any) -> Any:
    x = np.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError("softmax, logsumexp and cross-entropy compare sizes and take real numbers; pass x.real")
    return x if x.dtype.kind == "f" else x.astype(float)


def _top_that_is_taken_off(top: Any) -> Any:
    """The largest elements, or the largest number where they are infinite; nothing of rows of -inf."""
    zero, largest = number(0, top.dtype), np.finfo(top.dtype).max
    return np.where(np.isinf(top), np.where(top > 0, largest, zero), top)


def _below_largest(x: Any, top: Any) -> Any:
    zero, rest = number(0, x.dtype), x - _top_that_is_taken_off(top)
    return np.where(np.less(zero, rest), zero, rest)  # one instruction natively, which `minimum` with its NaN is not


#: Elements below the largest one: at most zero, and zero where both are infinite.
below_largest: Scalar = Scalar("below_largest", _below_largest, lambda v, x, top, y: v, lambda v, x, top, y: -v)


def _shifted(x: Any, axis: int) -> tuple[Any, Any]:
    """The largest elements, and what is left without them."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    rest = x - _top_that_is_taken_off(top)
    return top, np.minimum(rest, 0, out=rest)


def _softmax(x: Any, axis: int) -> Any:
    x = _floating(x)
    e = np.exp(_shifted(x, axis)[1])
    e /= np.sum(e, axis=axis, keepdims=True)
    return e


def _logsumexp(x: Any, axis: int, keepdims: bool = False) -> Any:  # noqa: FBT001, FBT002 (a parameter of the rule)
    x = _floating(x)
    top, rest = _shifted(x, axis)
    total = np.sum(np.exp(rest), axis=axis, keepdims=True)
    with ignoring("divide"):  # the logarithm of no probability is -inf
        y = top + np.log(total)
    return y if keepdims else np.squeeze(y, axis=axis)[()]


def _logsoftmax(x: Any, axis: int) -> Any:
    x = _floating(x)
    return x - _logsumexp(x, axis, keepdims=True)


def _crossentropy(x: Any, target: Any, axis: int) -> Any:
    terms = _logsoftmax(x, axis)
    if np.ndim(target) < np.ndim(x):
        return -np.squeeze(np.take_along_axis(terms, _over(checked_classes(target, x.shape[axis]), axis), axis), axis)
    np.multiply(target, terms, out=terms, where=target != 0)
    terms[np.broadcast_to(target == 0, terms.shape)] = 0
    return -np.sum(terms, axis=axis)


def checked_classes(labels: Any, classes: int) -> Any:
    """Class numbers, if they are; one below 0 would count from the end."""
    if labels.size:
        _check_classes(labels.min(), labels.max(), classes)
    return labels


def _check_classes(low: Any, high: Any, classes: int) -> None:
    if not (low >= 0 and high < classes):
        raise ValueError(f"logitcrossentropy: class numbers go from 0 to {classes - 1}, got {low} to {high}")


def one_hot(labels: Any, x: Any, axis: int) -> Any:
    """Truth values of the shape of x: where the place along the axis is the class number."""
    classes = np.arange(np.shape(x)[axis])
    return np.expand_dims(labels, axis) == classes.reshape(-1, *[1] * (np.ndim(x) - 1 - axis))


def _float_type(type_: ArrayType) -> np.dtype[Any]:
    return type_.dtype if type_.dtype.kind == "f" else np.dtype(float)


def _over(v: Any, axis: int) -> Any:
    """A value of every row, beside the rows."""
    return np.expand_dims(v, axis)


# --- the same steps in primitives, for plans that keep all memory ----------------------------------------------------


class _QuietLog(Primitive):
    """The logarithm of sums of exponentials: of no probability it is -inf, which is nothing to warn of."""

    in_place = True

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(*operands)

    def into(self, out: Any, x: Any) -> None:
        with np.errstate(divide="ignore"):
            np.log(x, out=out)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return types

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (y_bar / operands[0],)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        return tangents[0] / operands[0]

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return self(*operands)


def _write_class_numbers(out: Any, labels: Any, classes: int, scratch: Sequence[Any]) -> None:
    low, high = scratch
    np.copyto(out, labels)
    if labels.size:
        np.minimum.reduce(labels, axis=None, out=low)
        np.maximum.reduce(labels, axis=None, out=high)
        _check_classes(low.item(), high.item(), classes)


quiet_log = _QuietLog("quiet_log")
#: Class numbers as they are, if they are; a rule, so that a plan looks at them on every call.
class_numbers: ZeroDerivative = ZeroDerivative(
    "class_numbers",
    checked_classes,
    lambda type_, **_: type_,
    batch=lambda labels, classes: class_numbers(labels, classes=classes),
    into=_write_class_numbers,
    scratch=lambda type_, **_: [ArrayType((), type_.dtype)] * 2,
)


def _shifted_steps(x: Any, axis: int) -> tuple[Any, Any]:
    """The largest elements, and what is left without them."""
    if not np.shape(x)[axis]:
        raise ValueError("rows of no elements are left to the rule as it stands")
    x = x if x.dtype.kind == "f" else x.astype(float)
    top = np.max(x, axis=axis, keepdims=True)
    return top, _below_largest(x, top)


def _softmax_steps(x: Any, axis: int) -> Any:
    e = np.exp(_shifted_steps(x, axis)[1])
    return e / np.sum(e, axis=axis, keepdims=True)


def _logsumexp_steps(x: Any, axis: int, keepdims: bool = False) -> Any:  # noqa: FBT001, FBT002 (a parameter of the rule)
    top, rest = _shifted_steps(x, axis)
    y = top + quiet_log(np.sum(np.exp(rest), axis=axis, keepdims=True))
    return y if keepdims else np.squeeze(y, axis=axis)


def _logsoftmax_steps(x: Any, axis: int) -> Any:
    return x - _logsumexp_steps(x, axis, keepdims=True)


def _crossentropy_steps(x: Any, target: Any, axis: int) -> Any:
    terms = _logsoftmax_steps(x, axis)
    if np.ndim(target) < np.ndim(x):
        labels = class_numbers(target, classes=np.shape(x)[axis])
        return -np.squeeze(np.take_along_axis(terms, _over(labels, axis), axis), axis)
    return -np.sum(target * np.where(target == 0, number(0, terms.dtype), terms), axis=axis)


class _AlongAxis(Primitive):
    """Parameters: axis, not negative. Batched, the axis is one further."""

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        return (ArrayType(types[0].shape, _float_type(types[0])),)

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        if not all(batched):
            return super().batch(operands, batched, params)
        return self(*operands, **{**params, "axis": params["axis"] + 1})

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        return 4 * types[0].size


class _Softmax(_AlongAxis):
    lower = staticmethod(_softmax_steps)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return _softmax(*operands, **params)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (self.push((y_bar,), y, operands, params),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The Jacobian is symmetric: one map serves both directions."""
        (v,) = tangents
        return y * (v - np.sum(y * v, axis=params["axis"], keepdims=True))


class _LogSoftmax(_AlongAxis):
    lower = staticmethod(_logsoftmax_steps)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return _logsoftmax(*operands, **params)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        return (y_bar - np.exp(y) * np.sum(y_bar, axis=params["axis"], keepdims=True),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        (dx,) = tangents
        return dx - np.sum(np.exp(y) * dx, axis=params["axis"], keepdims=True)


class _LogSumExp(_AlongAxis):
    lower = staticmethod(_logsumexp_steps)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return _logsumexp(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        keepdims = params.get("keepdims", False)
        return (ArrayType(reduced_shape(types[0].shape, (params["axis"],), keepdims=keepdims), _float_type(types[0])),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        if not params.get("keepdims", False):
            y_bar = _over(y_bar, params["axis"])
        return (y_bar * softmax(operands[0], axis=params["axis"]),)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        (dx,) = tangents
        moved = softmax(operands[0], axis=params["axis"]) * dx
        return np.sum(moved, axis=params["axis"], keepdims=params.get("keepdims", False))


class _LogitCrossEntropy(_AlongAxis):
    """Operands: logits, and targets of their shape or class numbers of that shape without the axis. One loss for each row."""

    lower = staticmethod(_crossentropy_steps)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        return _crossentropy(*operands, **params)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        logits, targets = types
        rows = reduced_shape(logits.shape, (params["axis"],), keepdims=False)
        numbered = targets.shape == rows and targets.dtype.kind in "iu"
        if targets.shape != logits.shape and not numbered:
            raise ValueError(f"logitcrossentropy: logits of shape {logits.shape} and targets of shape {targets.shape}")
        dtype = _float_type(logits)
        return (ArrayType(rows, dtype if numbered else np.result_type(dtype, targets.dtype)),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        x, target = operands
        axis = params["axis"]
        v = _over(y_bar, axis)
        return (
            cast(v * _slope(x, target, axis), x.dtype) if needed[0] else None,
            cast(-v * logsoftmax(x, axis=axis), target.dtype) if needed[1] else None,
        )

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        x, target = operands
        axis = params["axis"]
        dx, dtarget = tangents
        dy = None if dx is None else np.sum(_slope(x, target, axis) * dx, axis=axis)
        if dtarget is not None:
            term = -np.sum(logsoftmax(x, axis=axis) * dtarget, axis=axis)
            dy = term if dy is None else dy + term
        return dy


def _slope(x: Any, target: Any, axis: int) -> Any:
    """Derivative of every loss by the logits of its row."""
    p = softmax(x, axis=axis)
    if np.ndim(target) < np.ndim(x):
        return p - one_hot(target, x, axis)
    return p * np.sum(target, axis=axis, keepdims=True) - target


softmax = _Softmax("softmax")
logsoftmax = _LogSoftmax("logsoftmax")
logsumexp = _LogSumExp("logsumexp")
logitcrossentropy = _LogitCrossEntropy("logitcrossentropy")

cases(quiet_log, positive(3, 4))
cases(below_largest, normal(3, 4), lambda rng: rng.uniform(4.0, 5.0, size=(3, 1)), because="below the largest")
for _rule in (softmax, logsoftmax, logsumexp):
    cases(_rule, normal(3, 4), axis=0)
    cases(_rule, normal(2, 3, 4), axis=1)
cases(logsumexp, normal(3, 4), axis=1, keepdims=True)
cases(logitcrossentropy, normal(3, 4), positive(3, 4), axis=0)
cases(logitcrossentropy, normal(3, 4), whole(3, 4), axis=0, because="class numbers are targets too")
cases(logitcrossentropy, normal(2, 3), positive(2, 3), axis=1, because="targets need not sum to one")
