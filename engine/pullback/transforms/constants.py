"""Constants, which are not differentiated: values, and all of an object but some of its parts.

pb.stop_gradient(x)                  x, as a constant
pb.cut(model)                        a constant container: no gradient is computed for anything in it …
pb.cut(Model(uncut(w), data))        … but for the parts that are marked; the gradient of the rest is None, not zeros
pb.cut(model).w                      inside a function: a constant, whatever model is
pb.uncut(pb.cut(model)).w            inside a function: the variable again
"""

from collections.abc import Callable, Iterator
from typing import Any

from pullback import trees
from pullback.core.primitive import TracedValue
from pullback.rules.constants import stop


def stop_gradient(tree: Any) -> Any:
    """The same values as constants: no gradient flows through them.

    >>> pb.grad(lambda x: x * pb.stop_gradient(x))(3.0)
    3.0
    """
    leaves, rebuild = trees.flatten(tree)
    return rebuild(iter([stop(leaf) if isinstance(leaf, TracedValue) else leaf for leaf in leaves]))


class VariablePart:
    """A part of a constant container that is variable nevertheless."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"uncut({self.value!r})"


class Cut:
    """A container as a constant: reading an attribute, an item, or calling it gives constants again."""

    __slots__ = ("_container",)

    def __init__(self, container: Any) -> None:
        object.__setattr__(self, "_container", container)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copy and pickle ask for methods before there is a container
        return _constant(getattr(self._container, name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a cut container is constant; set {name} on the container itself")

    def __getitem__(self, key: Any) -> Any:
        return _constant(self._container[key])

    def __iter__(self) -> Iterator[Any]:
        return map(_constant, self._container)

    def __len__(self) -> int:
        return len(self._container)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the container."""
        return self._container(*args, **keywords)

    def __repr__(self) -> str:
        return f"cut({self._container!r})"

    def __reduce__(self) -> Any:
        return Cut, (self._container,)


def cut(tree: Any) -> Any:
    """A container as a constant; an array or a number loses its derivative as by `stop_gradient`.

    Gradients in a cut container are None, but for the parts that `pb.uncut` marks.

    >>> model = {"w": 2.0, "data": 3.0}
    >>> pb.grad(lambda m: m["w"] * m["data"])(pb.cut(model))
    {'w': None, 'data': None}
    >>> pb.grad(lambda m: pb.cut(m)["data"] * m["w"])(model)
    {'w': 3.0, 'data': 0.0}
    """
    if isinstance(tree, Cut):
        return tree
    return stop_gradient(tree) if _is_value(tree) else Cut(tree)


def uncut(tree: Any) -> Any:
    """Undo `cut`: of a cut container the container itself; else a mark for a variable part of one.

    >>> pb.uncut(pb.cut({"w": 2.0}))
    {'w': 2.0}
    >>> pb.grad(lambda m: m["w"] * m["data"])(pb.cut({"w": pb.uncut(2.0), "data": 3.0}))
    {'w': 3.0, 'data': None}
    """
    return tree._container if isinstance(tree, Cut) else VariablePart(tree)  # noqa: SLF001 (the other half of this file)


def _constant(part: Any) -> Any:
    if isinstance(part, VariablePart):
        return part.value
    if part is None or callable(part) or isinstance(part, str | bytes | Cut):
        return part
    return stop_gradient(part) if _is_value(part) else Cut(part)


def _is_value(tree: Any) -> bool:
    return trees.structure(tree) == "leaf" and not hasattr(tree, "__dict__")


def _marked(node: Any) -> tuple[list[Any], Callable[[Callable[[Any], Any], Callable[[Any], Any]], Any]]:
    """The marked parts of a container, and a function that makes a like container: of marked parts, of the others."""
    if isinstance(node, VariablePart):
        return [node.value], lambda marked, _: marked(node)
    if isinstance(node, Cut):
        return _marked(node._container)  # noqa: SLF001 (the other half of this file)
    leaves, rebuild = trees.flatten(node)
    if len(leaves) == 1 and leaves[0] is node:
        return [], lambda _, constant: constant(node)
    children = [_marked(leaf) for leaf in leaves]
    return (
        [value for values, _ in children for value in values],
        lambda marked, constant: rebuild(iter([child(marked, constant) for _, child in children])),
    )


def _variable_parts(node: Cut) -> tuple[Any, ...]:
    return tuple(_marked(node)[0])


def _with_parts(node: Cut, parts: tuple[Any, ...]) -> Cut:
    rest = iter(parts)
    return Cut(_marked(node)[1](lambda _: VariablePart(next(rest)), lambda constant: constant))


def _gradient(node: Cut, parts: tuple[Any, ...]) -> Any:
    """The container with gradients in the marked places, None in the others."""
    rest = iter(parts)
    return _marked(node)[1](lambda _: next(rest), lambda _: None)


class _IdenticalConstant:
    """A constant, which is equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdenticalConstant) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _constants(node: Cut) -> Any:
    """The nesting of a cut container and its constants, which tell it from others."""
    found: list[_IdenticalConstant] = []
    _marked(node)[1](lambda _: None, lambda constant: found.append(_IdenticalConstant(constant)))
    return trees.structure(node._container), *found  # noqa: SLF001 (the other half of this file)


trees.register(Cut, _variable_parts, _with_parts, _constants, _gradient)
