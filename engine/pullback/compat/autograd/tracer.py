"""Traced values under autograd's names, and `trace`, which hands each step of a function to a node class of the caller's."""

import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Self

from pullback.compat.autograd.primitives import getval, notrace_primitive, primitive
from pullback.core.primitive import Primitive, Trace, current, tracing
from pullback.numpy_api.concrete_tracer import ConcreteTracer
from pullback.numpy_api.tracer import Tracer as Box

__all__ = ["Box", "Node", "getval", "isbox", "notrace_primitive", "primitive", "trace"]


def isbox(x: Any) -> bool:
    """True if a value is traced."""
    return isinstance(x, Box)


class Node:
    """One step of a traced function. Subclasses define both methods; `parents` are the nodes of the arguments `parent_argnums`."""

    __slots__: Sequence[str] = ()

    def __init__(
        self, value: Any, fun: Any, args: Any, kwargs: Any, parent_argnums: Sequence[int], parents: Sequence["Node"]
    ) -> None:
        raise NotImplementedError

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Set the attributes of the node that stands for the input."""
        raise NotImplementedError

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Self:
        """The node of the input."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


def trace(start_node: Node, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Node | None]:
    """Value and node of `fun(x)`; the node is None where the value does not depend on x."""
    with tracing(_NodeTrace()) as nodes:
        end = current(fun(_NodeTracer(nodes, x, start_node)))
        if isinstance(end, _NodeTracer) and end.traced_by is nodes:
            return end.value, end.node
    warnings.warn("Output seems independent of input.", stacklevel=2)
    return end, None


class _NodeTracer(ConcreteTracer):
    __slots__ = ("node",)

    def __init__(self, trace: Trace, value: Any, node: Node) -> None:
        self.traced_by, self.value, self.node, self.memory = trace, value, node, None

    def alias(self) -> "_NodeTracer":
        return _NodeTracer(self.traced_by, self.value, self.node)


class _NodeTrace(Trace):
    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        own = {n: x for n, x in enumerate(operands) if isinstance(x, _NodeTracer) and x.traced_by is self}
        args = tuple(own[n].value if n in own else x for n, x in enumerate(operands))
        value = primitive(*args, **params)
        parents = [x.node for x in own.values()]
        fun = SimpleNamespace(__name__=primitive.name)
        node = type(parents[0])(value, fun, args, params, tuple(own), parents)
        if primitive.results > 1:
            return tuple(_NodeTracer(self, part, node) for part in value)
        return _NodeTracer(self, value, node)
