"""Operations that write into an array they are given, and can still be differentiated.

    c = pb.inplace.matmul(c, a, b)                          # c <- a @ b
    c = pb.inplace.gemm(c, a, b, alpha=2.0, beta=1.0)       # c <- 2 a @ b + c
    x = pb.inplace.multiply(x, y)                           # x <- x * y; so for every ufunc that has a rule

The pullback puts the old contents back, bit for bit, so that after `grad` the caller's arrays are as they were. What is
returned is the only name the new contents may be read under: reading the array itself where a trace can see it is
refused, and so is a result that is not read at all: what no trace sees, such as `np.sum(c)` with nothing traced in it,
would read the new contents as constants. Arrays that the function makes by `np.zeros_like` of a traced value, or by
`pb.numpy.zeros`, may be read under any name.

Operands may share memory with the array that is written to, wholly or in part: they are copied first, and the result is
that of operands that do not. Derivatives of the first order only in reverse; write `a @ b` for higher ones.

>>> a, b, c = np.ones((2, 3)), np.ones((3, 2)), np.zeros((2, 2))
>>> pb.grad(lambda a: np.sum(pb.inplace.matmul(c, a, b)))(a)
array([[2., 2., 2.],
       [2., 2., 2.]])
>>> c  # as before
array([[0., 0.],
       [0., 0.]])
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.contexts import Frame
from pullback.core.kinds import Scalar
from pullback.core.primitive import Trace, TracedValue, innermost_trace
from pullback.core.types import type_of
from pullback.errors import NeedsValueError
from pullback.numpy_api.concrete_tracer import memory_of
from pullback.numpy_api.traced_stores import assign
from pullback.numpy_api.tracer import WritableArray
from pullback.numpy_api.ufuncs import UFUNCS
from pullback.rules.gemm import gemm_into
from pullback.rules.inplace import OverwritingPrimitive, copy, elementwise_into, matmul_into, may_overlap
from pullback.tiers import current_tier
from pullback.traces.recorder import Recorder
from pullback.traces.tape import Tape

_FLAGS = ("N", "T", "C")


def matmul(c: Any, a: Any, b: Any) -> Any:
    """C <- a @ b; returns c."""
    return _overwrite(matmul_into, c, a, b)


def gemm(c: Any, a: Any, b: Any, alpha: Any = 1, beta: Any = 0, *, trans_a: str = "N", trans_b: str = "N") -> Any:
    """C <- alpha op(a) @ op(b) + beta c; returns c.

    op is N (the matrix), T (its transpose) or C (its conjugate transpose). Where beta is 0, c is not read.
    `pb.inplace.gemm(c, a, b, beta=1, trans_a="T")` adds a.T @ b to c.
    """
    for name, flag in (("trans_a", trans_a), ("trans_b", trans_b)):
        if flag not in _FLAGS:
            raise ValueError(f"pb.inplace.gemm: {name}={flag!r} is none of {', '.join(_FLAGS)}")
    return _overwrite(gemm_into, c, a, b, alpha, beta, trans_a=trans_a, trans_b=trans_b)


def __getattr__(name: str) -> Callable[..., Any]:
    rule = UFUNCS.get(getattr(np, name, None)) if not name.startswith("_") else None
    if not isinstance(rule, Scalar) or not rule.moves:
        raise AttributeError(f"pb.inplace has no {name!r}: it has matmul, gemm and NumPy's ufuncs with a derivative")
    return _elementwise(rule, name)


def __dir__() -> list[str]:
    ufuncs = [ufunc.__name__ for ufunc, rule in UFUNCS.items() if isinstance(rule, Scalar) and rule.moves]
    return sorted(["gemm", "matmul", *ufuncs])


@cache
def _elementwise(rule: Scalar, name: str) -> Callable[..., Any]:
    def overwriting(x: Any, *others: Any) -> Any:
        if len(others) + 1 != len(rule.maps):
            raise TypeError(f"pb.inplace.{name} takes {len(rule.maps)} operands, got {len(others) + 1}")
        return _overwrite(elementwise_into, x, *others, rule=rule)

    overwriting.__name__ = overwriting.__qualname__ = name
    overwriting.__doc__ = f"x <- numpy.{name}(x{', …' if len(rule.maps) > 1 else ''}); returns x."
    return overwriting


def _overwrite(rule: OverwritingPrimitive, target: Any, /, *others: Any, **params: Any) -> Any:
    if type(target) is WritableArray:  # made while the function is traced: what is written there is seen under any name
        kept = type_of(target)
        rule.infer(kept, *map(type_of, others), kept, **params)  # says what does not fit
        assign(target, rule.computed(target, *others, **params))
        return target
    trace = innermost_trace()
    if trace is None:
        return rule.evaluate(target, *others, None, **params)
    memory = memory_of(target)
    if isinstance(trace, Recorder) and np.shape(target) == ():
        raise NeedsValueError("pb.inplace writes into a number or an array of shape (), which plans do not tell apart")
    others = tuple(copy(other) if _may_overlap(trace, target, memory, other) else other for other in others)
    operands = (target, *others, _kept(trace, target, memory))
    if any(isinstance(operand, TracedValue) and operand.traced_by.level >= trace.level for operand in operands):
        return rule(*operands, **params)
    # Results of constants alone are undone with the rest, so the trace must know of them.
    return trace.apply(rule, operands, params)


def _may_overlap(trace: Trace, target: Any, memory: Any, other: Any) -> bool:
    if isinstance(trace, Recorder):
        return trace.memory_of(other) is not None and trace.memory_of(other) is trace.memory_of(target)
    return may_overlap(memory, memory_of(other))


def _kept(trace: Trace, target: Any, memory: Any) -> np.ndarray[Any, Any] | Frame | Any:
    """The contents of the target, as the trace can keep them until the pullback."""
    if isinstance(trace, Tape) and isinstance(memory, TracedValue) and memory.on_device:
        return memory  # no array on a device is ever written to
    if not isinstance(trace, Tape) or not issubclass(type(memory), np.ndarray):
        return copy(target)  # a value like any other: part of the graph, or followed by outer traces
    return np.array(memory) if current_tier() == "unfused" else trace.run.save(memory)
