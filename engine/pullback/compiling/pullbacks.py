"""vjp as two plans: one that computes the value and saves what the pullback needs, one that runs when it is called.

What is saved are outputs of the forward plan that the pullback holds; in the stateful tier they are used again when the
pullback is gone, like every output. A pullback that may be called once only may write over what was saved.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from pullback import trees
from pullback.backends.gc_pause import collecting_later
from pullback.backends.native.entry import (
    Arena,
    Check,
    Frame,
    Leaf,
    NotNativeError,
    Template,
    WatchedInput,
    bind,
    is_native,
    native_subclass,
    plain_form,
    steps_of,
)
from pullback.compiling.compiled_graph import CompiledGraph, compile_graph
from pullback.compiling.environment import Environment
from pullback.compiling.specialization import (
    CannotCompileError,
    Fallback,
    Finish,
    Program,
    attempted,
    compiles_loops,
    form_like,
    loop_compiler,
    recorded,
    require_plain,
)
from pullback.core.primitive import TracedValue
from pullback.core.types import ArrayType, is_array_like, shape_of, type_of
from pullback.dataclass import dataclass
from pullback.errors import DifferentiationError, PullbackReuseError, name_of
from pullback.ir.graph import Graph, Literal
from pullback.passes import pipeline
from pullback.passes.pipeline import Stages, simplify
from pullback.tiers import KEEPING
from pullback.transforms.arguments import differentiable, like
from pullback.transforms.fingerprints import Watch, samples

#: Frames of pullbacks that are gone which one program keeps for others.
FRAMES_IDLE = 16


def build_pullback(
    function: Callable[..., Any], args: tuple[Any, ...], environment: Environment, *, tier: str, once: bool
) -> Program | Fallback:
    """Compile the value of a function and its pullback, for arguments like these."""
    return attempted(environment, lambda: _build(function, args, environment, tier=tier, once=once))


def _build(
    function: Callable[..., Any], args: tuple[Any, ...], environment: Environment, *, tier: str, once: bool
) -> Program:
    leaves, rebuild = trees.flatten(args)
    for leaf in leaves:
        require_plain(differentiable(leaf, function))
    stages = Stages()
    graph, rebuild_output, quiet = recorded(environment, leaves, rebuild)
    with collecting_later():
        stages.add("recorded", graph)
        on_device = any(isinstance(leaf, TracedValue) for leaf in leaves)
        graph = pipeline.match(graph, stages, loop_compiler(tier, on_device=on_device))
        _require_values(graph, on_device=on_device)
        joint, mask = pipeline.value_and_pullback(graph, stages, len(leaves))
        joint = simplify(joint, stages, lowered=tier in KEEPING, looping=compiles_loops(tier))
        parts = pipeline.partition(joint, stages, len(graph.inputs), len(graph.outputs))
        arrays = [number for number, var in enumerate(parts.saved) if var.type.shape]
        backward = compile_graph(parts.backward, stages.of("backward"), tier=tier, owned=arrays if once else ())
        kinds = [type(leaf) for leaf in leaves]
        derivative = Derivative(
            function,
            backward,
            rebuild,
            rebuild_output,
            tuple(atom.type for atom in graph.outputs),
            tuple(mask),
            tuple(kinds),
            len(parts.saved),
            _values_read(parts.backward, len(parts.saved)),
            once,
        )
        finish = Finish(derivative.finish, _no_form)
        forward = compile_graph(parts.forward, stages.of("forward"), tier=tier)
        return Program(forward, finish, graph.guards, stages, backward=backward, quiet=quiet)


def _no_form(_: Sequence[Any]) -> Any:
    raise NotNativeError("a pullback is made by Python")


def _require_values(graph: Graph, *, on_device: bool) -> None:
    if on_device and any(node.bodies() for node in graph.nodes):
        raise CannotCompileError("loops and branches of a pullback run on the tape on a device")
    if any(node.primitive.effect.writes for node in graph.nodes):
        raise CannotCompileError("what pb.inplace overwrites is put back by its pullback, which runs on the tape")
    if not graph.outputs or any(isinstance(atom, Literal) for atom in graph.outputs):
        raise CannotCompileError("the function returns what depends on no argument")


@dataclass(eq=False)
class Derivative:
    """The common part of all pullbacks of one program."""

    function: Callable[..., Any]
    backward: CompiledGraph
    rebuild: trees.Rebuild
    rebuild_output: trees.Rebuild
    types: tuple[ArrayType, ...]
    """Types of the leaves of the value."""
    mask: tuple[bool, ...]
    """True for each leaf of the arguments that has a gradient."""
    kinds: tuple[type, ...]
    """Types of these leaves."""
    saved: int
    """The number of values of the forward program that the backward one takes first."""
    read: Sequence[int]
    """Numbers of the values behind them that it reads."""
    once: bool
    structure: Any = None
    """The structure of the value; that of a leaf is text."""
    idle: list[Frame] = field(default_factory=list)
    """Frames of pullbacks that are gone."""

    def finish(self, outputs: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """Value and pullback."""
        value = self.rebuild_output(iter(outputs[: len(self.types)]))
        pullback = native_subclass(Pullback) if self.template is not None else Pullback
        if self.structure is None:
            self.structure = trees.structure(value)
        return value, pullback(self, outputs[len(self.types) :], values)

    @cached_property
    def template(self) -> Template | None:
        """The template of the frames of its pullbacks, where they are called natively."""
        native = self.backward.native
        if native is None:
            return None
        seeds = len(native.inputs) - len(native.constants) - len(self.types)
        try:
            leaves = [_seed_leaf(seeds + number, type_) for number, type_ in enumerate(self.types)]
            steps = steps_of((self.rebuild_output(iter(leaves)),))
            outs = iter(plain_form(native.results))
            parts = [
                form_like(next(outs) if there else None, kind)
                for there, kind in zip(self.mask, self.kinds, strict=True)
            ]
            form = self.rebuild(trees.Gradients(parts))
            arrays = [self.saved + number for number in self.read if self.saved + number < seeds]
            watched = [
                WatchedInput(number, *samples(native.inputs[number].shape))
                for number in arrays
                if native.inputs[number].shape
            ]
            return Template(native, 1, steps, form, watched=watched, runs=1 if self.once else -1)
        except NotNativeError:
            return None

    @cached_property
    def _arena(self) -> Arena:
        """Scratch memory for all pullbacks: many may be held, and few run at a time."""
        return Arena(self.backward.native.arena_nbytes if self.backward.native is not None else 0)

    def frame_for(self, saved: Sequence[Any], values: Sequence[Any], watch: Watch) -> Frame | None:
        """A frame with what the backward program is given, if it can read that where it is."""
        template = self.template
        if template is None:
            return None
        given = dict(enumerate(saved)) | {
            self.saved + number: values[number] for number in self.read if number < len(values)
        }
        for number, value in given.items():
            type_ = template.program.inputs[number]
            is_array = type(value) is np.ndarray and value.flags.c_contiguous and value.flags.aligned
            if type_.shape and not (is_array and value.shape == type_.shape and value.dtype == type_.dtype):
                return None
        held = {id(array): fingerprint for array, fingerprint in watch.watched if isinstance(fingerprint, bytes)}
        if any(id(given[watched.input]) not in held for watched in template.watched):
            return None
        try:
            frame = self.idle.pop()
        except IndexError:
            frame = Frame(template, self._arena)
        frame.give(given, {watched.input: held[id(given[watched.input])] for watched in template.watched})
        return frame


class Pullback:
    """A function from a cotangent of the value to the cotangents of the arguments, one each.

    Raises if the caller has changed one of the arrays that are read before it is called.
    """

    def __init__(self, derivative: Derivative, saved: Sequence[Any], values: Sequence[Any]) -> None:
        self._derivative = derivative
        self._saved: Sequence[Any] | None = saved
        self._values = values
        leaves = len(derivative.mask)
        read = [values[number] for number in derivative.read if number < len(values)]
        kept = [value for value in read if issubclass(type(value), np.ndarray)]
        self._watch = Watch(derivative.function, derivative.rebuild(iter(values[:leaves])), kept)
        self._frame = derivative.frame_for(saved, values, self._watch) if is_native(self) else None
        if self._frame is not None:
            bind(self, [self._frame])

    def __call__(self, y_bar: Any) -> tuple[Any, ...]:
        """Run the backward program."""
        derivative, saved = self._derivative, self._saved
        self._watch.check()
        if saved is None or (self._frame is not None and self._frame.runs_left == 0):
            raise PullbackReuseError(
                "this pullback was made with once=True and has been called; call vjp(f, …) again for another"
            )
        if trees.structure(y_bar) != derivative.structure:
            raise DifferentiationError("the pullback got a cotangent that is not of the form of the value")
        seeds = [
            _seed(cotangent, type_, keeps=derivative.backward.state is not None)
            for cotangent, type_ in zip(trees.flatten(y_bar)[0], derivative.types, strict=True)
        ]
        operands = [*saved, *self._values, *seeds]
        if derivative.once:
            self._saved = None
            self._leave_frame()
        gradients = iter(derivative.backward.run(operands))  # type: ignore[arg-type]  # guards are the forward plan's
        leaves = self._values[: len(derivative.mask)]
        found = [like(next(gradients) if there else None, x) for there, x in zip(derivative.mask, leaves, strict=True)]
        result: tuple[Any, ...] = derivative.rebuild(trees.Gradients(found))
        return result

    def __repr__(self) -> str:
        return f"<pullback of {name_of(self._derivative.function)}>"

    def _leave_frame(self) -> None:
        """Leave the frame to other pullbacks, unless a run is on in it."""
        frame, self._frame = self._frame, None
        if frame is None:
            return
        if frame.runs_left == 0:
            self._saved = None
        bind(self, [])
        if not frame.is_busy:
            frame.take_back()
            if len(self._derivative.idle) < FRAMES_IDLE:
                self._derivative.idle.append(frame)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # When Python exits, the frame is not needed, and variables of modules may be gone already.
        if getattr(self, "_frame", None) is not None and not is_finalizing():
            self._leave_frame()  # and no more: others that are finalised with this one may still call it


def _seed_leaf(number: int, type_: ArrayType) -> Leaf:
    """The check of a cotangent: in the type that the backward program takes, or a Python float."""
    if type_.shape:
        return Leaf(number, Check.ARRAY, np.ndarray)
    check = _NUMBERS.get(type_.dtype.str[1:])
    if check is None:
        raise NotNativeError(f"a value is a number of {type_.dtype}")
    return Leaf(number, check, type_.dtype.type)


_NUMBERS = {"f8": Check.DOUBLE_OR_FLOAT, "f4": Check.SINGLE_OR_FLOAT}


def _values_read(backward: Graph, saved: int) -> list[int]:
    """The numbers of the arguments and captured arrays that the backward plan reads; they follow the `saved` inputs."""
    read = backward.uses()
    return [number for number, var in enumerate(backward.inputs[saved:]) if var in read]


def _seed(cotangent: Any, type_: ArrayType, *, keeps: bool) -> Any:
    if not is_array_like(cotangent) and not hasattr(cotangent, "dtype"):
        raise DifferentiationError(
            f"the pullback got a cotangent that is a {type(cotangent).__name__}; give an array or a number"
        )
    if shape_of(cotangent) != type_.shape:
        raise DifferentiationError(
            f"the pullback got a cotangent of shape {shape_of(cotangent)}, the value has shape {type_.shape}"
        )
    dtype = type_of(cotangent).dtype
    if not np.can_cast(dtype, type_.dtype, "same_kind"):
        raise DifferentiationError(f"the pullback got a cotangent of {dtype}, the value is {type_.dtype}")
    if keeps and issubclass(type(cotangent), int | float):
        return cotangent  # filled into a kept array, which converts it without making another
    if type_.shape == () and not issubclass(type(cotangent), np.ndarray):
        return type_.dtype.type(cotangent)
    if dtype != type_.dtype:
        cotangent = cotangent.astype(type_.dtype)
    return cotangent
