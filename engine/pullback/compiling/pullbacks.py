"""vjp as two plans: one that computes the value and saves what the pullback needs, one that runs when it is called.

What is saved are outputs of the forward plan that the pullback holds; in the stateful tier they are used again when the
pullback is gone, like every output. A pullback that may be called once only may write over what was saved.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import trees
from pullback.backends.native.entry.forms import NotNativeError
from pullback.compiling.compiled import Compiled, compile_graph
from pullback.compiling.program import CannotCompileError, Fallback, Finish, Program, named, recorded, require_plain
from pullback.compiling.surroundings import Surroundings
from pullback.errors import DifferentiationError, PullbackReuseError, TracingError
from pullback.ir.graph import Graph, Literal
from pullback.ir.types import ArrayType, shape_of, type_of
from pullback.passes.differentiate import with_pullback
from pullback.passes.parting import part
from pullback.passes.pipeline import Stages, simplify
from pullback.tiers import KEEPING
from pullback.transforms.arguments import differentiable, like
from pullback.transforms.fingerprints import Watch

_Finish = Callable[[tuple[Any, ...], Sequence[Any]], Any]


def build_pullback(
    function: Callable[..., Any], args: tuple[Any, ...], surroundings: Surroundings, *, tier: str, once: bool
) -> Program | Fallback:
    """Compile the value of a function and its pullback, for arguments like these."""
    if surroundings.obstacle is not None:
        return Fallback(surroundings.obstacle)
    try:
        return _build(function, args, surroundings, tier=tier, once=once)
    except (CannotCompileError, TracingError) as reason:
        return Fallback(str(reason))


def _build(
    function: Callable[..., Any], args: tuple[Any, ...], surroundings: Surroundings, *, tier: str, once: bool
) -> Program:
    leaves, rebuild = trees.flatten(args)
    for leaf in leaves:
        require_plain(differentiable(leaf, function))
    stages = Stages()
    graph, rebuild_output = recorded(surroundings, leaves, rebuild)
    stages.add("recorded", graph)
    graph = named(graph, stages, tier)
    _require_values(graph)
    joint, mask = with_pullback(graph, range(len(leaves)))
    stages.add("differentiated", joint)
    joint = simplify(joint, stages, lowered=tier in KEEPING)
    parts = part(joint, len(graph.inputs), len(graph.outputs))
    stages.add("forward", parts.forward)
    stages.add("backward", parts.backward)
    arrays = [number for number, var in enumerate(parts.saved) if var.type.shape]
    backward = compile_graph(parts.backward, tier=tier, owned=arrays if once else ())
    finish = _finish(backward, rebuild, rebuild_output, [atom.type for atom in graph.outputs], mask, once=once)
    finish = _watching(finish, function, rebuild, len(leaves), _values_read(parts.backward, len(parts.saved)))
    return Program(
        compile_graph(parts.forward, tier=tier), Finish(finish, _no_form), graph.guards, stages, backward=backward
    )


def _no_form(_: Sequence[Any]) -> Any:
    raise NotNativeError("a pullback is made by Python")


def _require_values(graph: Graph) -> None:
    if any(node.primitive.effect.writes for node in graph.nodes):
        raise CannotCompileError("what pb.inplace overwrites is put back by its pullback, which runs on the tape")
    if not graph.outputs or any(isinstance(atom, Literal) for atom in graph.outputs):
        raise CannotCompileError("the function returns what depends on no argument")


def _finish(
    backward: Compiled,
    rebuild: trees.Rebuild,
    rebuild_output: trees.Rebuild,
    types: Sequence[ArrayType],
    mask: Sequence[bool],
    *,
    once: bool,
) -> _Finish:
    def finish(outputs: tuple[Any, ...], values: Sequence[Any]) -> Any:
        value = rebuild_output(iter(outputs[: len(types)]))
        structure = trees.structure(value)
        saved: list[Any] | None = list(outputs[len(types) :])
        leaves = values[: len(mask)]

        def pullback(y_bar: Any) -> tuple[Any, ...]:
            nonlocal saved
            if saved is None:
                raise PullbackReuseError(
                    "this pullback was made with once=True and has been called; call vjp(f, …) again for another"
                )
            if trees.structure(y_bar) != structure:
                raise DifferentiationError("the pullback got a cotangent that is not of the form of the value")
            seeds = [
                _seed(cotangent, type_, keeps=backward.state is not None)
                for cotangent, type_ in zip(trees.flatten(y_bar)[0], types, strict=True)
            ]
            operands = [*saved, *values, *seeds]
            if once:
                saved = None
            gradients = iter(backward.run(operands))  # type: ignore[arg-type]  # guards are the forward plan's
            found = [like(next(gradients) if there else None, x) for there, x in zip(mask, leaves, strict=True)]
            result: tuple[Any, ...] = rebuild(trees.Gradients(found))
            return result

        return value, pullback

    return finish


def _values_read(backward: Graph, saved: int) -> list[int]:
    """Which arguments and captured arrays the backward plan reads; they follow what was saved for it."""
    read = {atom for node in backward.nodes for atom in node.inputs} | set(backward.outputs)
    return [number for number, var in enumerate(backward.inputs[saved:]) if var in read]


def _watching(
    finish: _Finish, function: Callable[..., Any], rebuild: trees.Rebuild, leaves: int, read: Sequence[int]
) -> _Finish:
    """Raise if the caller has changed one of the arrays that the pullback reads before it is called."""

    def finish_watched(outputs: tuple[Any, ...], values: Sequence[Any]) -> Any:
        value, pullback = finish(outputs, values)
        kept = [values[number] for number in read if number < len(values) and isinstance(values[number], np.ndarray)]
        watch = Watch(function, rebuild(iter(values[:leaves])), kept)

        def checked_pullback(y_bar: Any) -> tuple[Any, ...]:
            watch.check()
            result: tuple[Any, ...] = pullback(y_bar)
            return result

        return value, checked_pullback

    return finish_watched


def _seed(cotangent: Any, type_: ArrayType, *, keeps: bool) -> Any:
    if shape_of(cotangent) != type_.shape:
        raise DifferentiationError(
            f"the pullback got a cotangent of shape {shape_of(cotangent)}, the value has shape {type_.shape}"
        )
    dtype = type_of(cotangent).dtype
    if not np.can_cast(dtype, type_.dtype, "same_kind"):
        raise DifferentiationError(f"the pullback got a cotangent of {dtype}, the value is {type_.dtype}")
    if keeps and isinstance(cotangent, int | float):
        return cotangent  # filled into a kept array, which converts it without making another
    if type_.shape == () and not isinstance(cotangent, np.ndarray):
        return type_.dtype.type(cotangent)
    if dtype != type_.dtype:
        cotangent = cotangent.astype(type_.dtype)
    return cotangent
