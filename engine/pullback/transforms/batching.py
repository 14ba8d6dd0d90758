"""Batching: one run of a function for a whole batch of examples.

A traced value stands for one example and holds all of them, along a leading axis. Every primitive says how it works on
operands of which some have that axis (`Primitive.batch`); what no example differs in stays a single value.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import trees
from pullback.core.primitive import Primitive, Trace, TracedValue, tracing
from pullback.core.types import is_array_like, type_of
from pullback.errors import TracingError
from pullback.numpy_api.call_sites import located
from pullback.numpy_api.traced_stores import given
from pullback.numpy_api.tracer import Tracer


class BatchTracer(Tracer):
    """One example of many."""

    __slots__ = ("examples",)

    def __init__(self, trace: "BatchTrace", examples: Any) -> None:
        self.traced_by = trace
        self.examples = examples
        self.memory = None

    def alias(self) -> "BatchTracer":
        """The same value under another name."""
        trace: Any = self.traced_by
        return BatchTracer(trace, self.examples)

    def is_equal(self, other: Any) -> bool:
        """True if all examples are known to be equal."""
        if not isinstance(other, BatchTracer) or other.traced_by is not self.traced_by:
            return False
        one: Any = self.examples
        return one.is_equal(other.examples) if isinstance(one, TracedValue) else np.array_equal(one, other.examples)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one example."""
        shape: tuple[int, ...] = self.examples.shape
        return shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of every example."""
        dtype: np.dtype[Any] = self.examples.dtype
        return dtype

    def __bool__(self) -> bool:
        now = self.current()
        if now is not self:
            return bool(now)
        raise located(
            "control flow would depend on a value that differs between the examples of a batch; "
            "choose with numpy.where or pb.cond"
        )

    def __int__(self) -> int:
        now = self.current()
        if now is not self:
            return int(now)
        raise located("a value that differs between the examples of a batch was used as an integer")

    __index__ = __int__


class BatchTrace(Trace):
    """Applies primitives to whole batches."""

    def __init__(self, size: int) -> None:
        self.size = size

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the primitive's batched form."""
        if primitive.effect.writes:
            raise TracingError(f"{primitive.name} writes to an array, which the examples of a batch cannot share")
        batched = [isinstance(operand, BatchTracer) and operand.traced_by is self for operand in operands]
        plain = [operand.examples if own else operand for operand, own in zip(operands, batched, strict=True)]
        result = primitive.batch(plain, batched, params)
        if primitive.results > 1:
            return tuple(BatchTracer(self, examples) for examples in result)
        return BatchTracer(self, result)


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """Run a function of one example on a batch of them: `vmap(f)(xs)[i] == f(xs[i])`.

    `in_axes` says along which axis the examples of each argument lie, None for an argument that they share: a number, or
    a tuple with one entry per argument (an entry holds for all leaves of the argument). Keyword arguments are mapped
    along their first axis. The examples of the result lie along `out_axes`.

    >>> pb.vmap(np.dot, in_axes=(0, None))(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, 4.0]))
    array([3., 4.])
    """

    def batched(*args: Any, **keywords: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise TracingError(f"vmap: in_axes has {len(axes)} entries for {len(args)} arguments; give one for each")
        leaves, rebuild = trees.flatten((args, keywords))
        leaf_axes = [axis for axis, argument in zip(axes, args, strict=True) for _ in trees.flatten(argument)[0]]
        leaf_axes += [0] * (len(leaves) - len(leaf_axes))
        size = _batch_size(leaves, leaf_axes)
        with tracing(BatchTrace(size)) as trace:
            traced = [
                leaf if axis is None else given(BatchTracer(trace, np.moveaxis(leaf, axis, 0)))
                for leaf, axis in zip(leaves, leaf_axes, strict=True)
            ]
            positional, named = rebuild(iter(traced))
            output = function(*positional, **named)
            # A constant alone is no result; as a part of one it is the same for all examples.
            results, rebuild_result = ([output], next) if trees.is_constant(output) else trees.flatten(output)
            examples = [_examples(result, trace, out_axes) for result in results]
        return rebuild_result(iter(examples))

    return batched


def _batch_size(leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    """The number of examples; every mapped leaf has to agree."""
    sizes: dict[int, tuple[int, ...]] = {}
    for leaf, axis in zip(leaves, axes, strict=True):
        if axis is None:
            continue
        shape = np.shape(leaf)
        if not isinstance(leaf, TracedValue) and not is_array_like(leaf):
            raise TracingError(f"vmap: a {type(leaf).__name__} has no examples; share it with in_axes=None")
        if not -len(shape) <= axis < len(shape):
            raise TracingError(
                f"vmap: an argument of shape {shape} has no axis {axis}; give in_axes, with None for shared arguments"
            )
        sizes.setdefault(shape[axis], shape)
    if not sizes:
        raise TracingError("vmap: no argument has examples; at least one entry of in_axes must be an axis")
    if len(sizes) > 1:
        (first, shape), (second, other), *_ = sizes.items()
        raise TracingError(f"vmap: arguments of shape {shape} and {other} hold {first} and {second} examples")
    return next(iter(sizes))


def _examples(result: Any, trace: BatchTrace, out_axes: int) -> Any:
    """The examples of a result along the requested axis; what they share is repeated."""
    if isinstance(result, BatchTracer) and result.traced_by is trace:
        return np.moveaxis(result.examples, 0, out_axes) if out_axes else result.examples
    if not isinstance(result, TracedValue) and not is_array_like(result):
        raise TracingError(f"vmap: the function returned a {type(result).__name__}, not an array or a number")
    shape = list(np.shape(result))
    shape.insert(out_axes % (len(shape) + 1), trace.size)
    own: Any = result if isinstance(result, TracedValue) else np.asarray(result, type_of(result).dtype)
    stretched: Any = np.broadcast_to(np.expand_dims(own, out_axes), tuple(shape))
    return stretched if isinstance(stretched, TracedValue) else np.array(stretched)
