"""Functions of numbers on whole arrays, differentiated with dual numbers.

The rule behind `pb.elementwise` is `elementwise_map(x…; function)`. Reference: the function itself, run on the arrays.
Instead of one array for every operation in it, the pullback keeps the operands alone: it runs the function again on dual
numbers that carry one partial per *active* operand, none for the others, and multiplies. Orders and modes: any; the dual
numbers are made of differentiable operations.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from pullback.core import counters
from pullback.core.cases import cases, normal, positive
from pullback.core.kinds import Scalar, cast, unbroadcast
from pullback.core.primitive import Primitive, Trace, TracedValue, tracing
from pullback.core.types import ArrayType, dtype_of
from pullback.errors import TracingError
from pullback.numpy_api.concrete_tracer import ConcreteTracer, kind_of
from pullback.tiers import current_tier


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one rule over arrays that broadcast: its derivative keeps no array but the operands.

    The function computes with operators and NumPy's ufuncs, one element at a time. Its derivative carries one partial
    per requested argument. In the `unfused` tier, while a plan is recorded (which fuses by itself), and where
    the function takes a traced value from around it, it simply runs.

    >>> poly = pb.elementwise(lambda x, a, b, c: a + x * (b + x * c))
    >>> x = np.array([1.0, 2.0])
    >>> pb.grad(lambda b: np.sum(poly(x, 1.0, b, 3.0)))(2.0)  # one partial, not four
    3.0
    """

    @wraps(function)
    def on_arrays(*operands: Any) -> Any:
        if current_tier() == "unfused" or not any(isinstance(operand, TracedValue) for operand in operands):
            return function(*operands)
        try:
            return elementwise_map(*operands, function=function)
        except TakesTracedError:
            return function(*operands)

    return on_arrays


class TakesTracedError(Exception):
    """The function takes a traced value from around it, whose derivative this rule would lose."""


class _Dual(ConcreteTracer):
    """A value and its partials, by the position of the operand they are with respect to."""

    __slots__ = ("partials",)

    def __init__(self, trace: "_DualTrace", value: Any, partials: dict[int, Any]) -> None:
        self.traced_by = trace
        self.value = value
        self.partials = partials
        self.memory = None

    def alias(self) -> "_Dual":
        """The same value under another name."""
        trace: Any = self.traced_by
        return _Dual(trace, self.value, self.partials)


class _DualTrace(Trace):
    """Pushes the partials of every active operand along, each only where it goes."""

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        if not isinstance(primitive, Scalar):
            raise TracingError(
                f"a function for pb.elementwise works on one element at a time, and {primitive.name} does not; "
                "call it on the arrays instead"
            )
        mine = [isinstance(operand, _Dual) and operand.traced_by is self for operand in operands]
        plain = [operand.value if own else operand for operand, own in zip(operands, mine, strict=True)]
        y = primitive(*plain, **params)
        if not primitive.moves or kind_of(y) not in "fc":
            return y
        partials: dict[int, Any] = {}
        for active in sorted(
            {key for operand, own in zip(operands, mine, strict=True) if own for key in operand.partials}
        ):
            for counts in counters.active:
                counts.pushed[primitive.name] += 1
            moves = [operand.partials.get(active) if own else None for operand, own in zip(operands, mine, strict=True)]
            partial = primitive.push(moves, y, plain, params)
            if partial is not None:
                partials[active] = partial
        return _Dual(self, y, partials)


def _partials(function: Callable[..., Any], operands: Sequence[Any], active: Sequence[bool]) -> list[Any]:
    """Derivative by each active operand, None by the others and by those that do not matter."""
    with tracing(_DualTrace()) as trace:
        duals = [
            _Dual(trace, x, {position: dtype_of(x).type(1)}) if own else x
            for position, (x, own) in enumerate(zip(operands, active, strict=True))
        ]
        y = function(*duals)
    found = y.partials if isinstance(y, _Dual) and y.traced_by is trace else {}
    return [found.get(position) for position in range(len(operands))]


class _ElementwiseMap(Primitive):
    """Parameters: function."""

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """A graph holds the function's own operations, which its passes fuse; a trace with values holds the rule."""
        if any(isinstance(operand, TracedValue) and operand.traced_by.records_types for operand in operands):
            return params["function"](*operands)
        return super().__call__(*operands, **params)

    def evaluate(self, *operands: Any, **params: Any) -> Any:
        y = params["function"](*operands)
        if isinstance(y, TracedValue):
            raise TakesTracedError
        return y

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        shape = np.broadcast_shapes(*(type_.shape for type_ in types))
        # On no elements at all nothing can overflow; the dtype is what it will be.
        probe = params["function"](*(np.zeros((0,), type_.dtype) for type_ in types))
        return (ArrayType(shape, np.asarray(probe).dtype),)

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        del y
        partials = _partials(params["function"], operands, needed)
        return [
            None if partial is None else unbroadcast(y_bar * partial, np.shape(x), dtype_of(x))
            for partial, x in zip(partials, operands, strict=True)
        ]

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        partials = _partials(params["function"], operands, [dx is not None for dx in tangents])
        terms = [dx * partial for dx, partial in zip(tangents, partials, strict=True) if partial is not None]
        if not terms:
            return None
        dy = cast(sum(terms[1:], start=terms[0]), dtype_of(y))
        return dy if np.shape(dy) == np.shape(y) else np.broadcast_to(dy, np.shape(y))

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
        return Scalar.batch(self, operands, batched, params)  # type: ignore[arg-type] # it asks for a broadcast, no more


elementwise_map = _ElementwiseMap("elementwise_map")


def _gaussian(x: Any, mean: Any, width: Any) -> Any:
    return np.exp(-(((x - mean) / width) ** 2))


cases(elementwise_map, normal(3, 4), normal(4), positive(3, 1), function=_gaussian)
cases(elementwise_map, normal(5), normal(), positive(), function=_gaussian, because="numbers against an array")
