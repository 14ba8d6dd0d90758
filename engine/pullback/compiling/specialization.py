"""A function compiled for one signature: recorded, differentiated, simplified, planned, written."""

import types
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from pullback import trees
from pullback.backends.gc_pause import collecting_later
from pullback.backends.native import availability
from pullback.backends.native.entry.result_trees import Constant, Form, NotNativeError, Out
from pullback.compiling.compiled_graph import CompiledGraph, compile_graph, overwritten_inputs
from pullback.compiling.environment import Environment
from pullback.compiling.side_effects import is_generator, noticing
from pullback.compiling.substitution import Substitution
from pullback.core.primitive import TracedValue, innermost_recorder
from pullback.core.types import is_array, is_array_like, type_of
from pullback.dataclass import dataclass
from pullback.errors import PullbackError, TracingError
from pullback.ir.graph import Graph, Guard, Node
from pullback.numpy_api.masked_reads import recording
from pullback.passes import pipeline
from pullback.passes.pipeline import LoopCompiler, Stages, simplify
from pullback.tiers import KEEPING
from pullback.traces.recorder import Recorder, record
from pullback.transforms.arguments import differentiable_leaves, like
from pullback.transforms.gradients import Gradient, scalar, split_aux


class CannotCompileError(Exception):
    """Raised if a function has to stay on the tape; caught here, and reported in the summary."""


class SideEffectError(CannotCompileError):
    """Raised if a function has a side effect: it changes something that outlives the call."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The conversion of outputs, and of the values of the call (leaves first), to what the caller gets."""

    run: Callable[[tuple[Any, ...], Sequence[Any]], Any]
    form: Callable[[Sequence[Out]], Form]
    """The same of what stands for the outputs; NotNativeError where Python has to make what the caller gets."""

    def __call__(self, outputs: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """The result for the caller."""
        return self.run(outputs, values)


@dataclass(frozen=True, slots=True)
class Program:
    """The program of one signature and one way through the function, and how it came to be."""

    compiled: CompiledGraph
    finish: Finish
    guards: tuple[Guard, ...]
    stages: Stages
    overwritten: tuple[int, ...] = ()
    """Inputs that the function overwrites, whether or not the program does: they must share memory with no other."""
    backward: CompiledGraph | None = None
    """The program of the pullback, where the caller gets one."""
    quiet: frozenset[str] = frozenset()
    """Floating-point warnings (`divide`, `over`, ...) that the function ignores somewhere, and the interpreter all over."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A signature that runs on the tape, and why."""

    reason: str
    changes: bool = False
    """The function changed what is around it."""


class UnanalysedCodeError(Exception):
    """Raised if functions ran while recording that were not analysed; what they read has to be watched first."""

    def __init__(self, codes: Collection[types.CodeType]) -> None:
        super().__init__(codes)
        self.codes = frozenset(codes)


def build(
    function: Callable[..., Any], args: tuple[Any, ...], environment: Environment, *, tier: str
) -> Program | Fallback:
    """Compile a function or a gradient for arguments like these, on the path through it that these lead to.

    In a tier that keeps its memory it is allocated once.
    """
    return attempted(environment, lambda: _build(function, args, environment, tier=tier))


def attempted(environment: Environment, compiling: Callable[[], Program]) -> Program | Fallback:
    """The program, or why there is none; then everything around the function is as it was."""
    if environment.obstacle is not None:
        return Fallback(environment.obstacle)
    with recording(holds=False) as first:
        program = _attempted(environment, compiling)
    if isinstance(program, Program) or not first.has_to_hold:
        return program
    with recording(holds=True):
        return _attempted(environment, compiling)


def _attempted(environment: Environment, compiling: Callable[[], Program]) -> Program | Fallback:
    before = environment.before
    try:
        return compiling()
    except (CannotCompileError, TracingError) as reason:  # if it is an error on the tape too, the tape raises it
        before.put_back()
        return Fallback(str(reason), changes=isinstance(reason, SideEffectError))
    except UnanalysedCodeError:
        before.put_back()
        raise


def inner_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is recorded: of a gradient, the one it differentiates."""
    return function.function if isinstance(function, Gradient) else function


def _build(function: Callable[..., Any], args: tuple[Any, ...], environment: Environment, *, tier: str) -> Program:
    leaves, rebuild = trees.flatten(args)
    wanted = _wanted_leaves(function, leaves, rebuild) if isinstance(function, Gradient) else None
    for leaf in leaves:
        require_plain(leaf)
    stages = Stages()
    gradient = function if isinstance(function, Gradient) else None
    graph, rebuild_output, quiet = recorded(environment, leaves, rebuild, gradient)
    values = [*leaves, *environment.read()] if any(isinstance(leaf, TracedValue) for leaf in leaves) else ()
    lowered = bool(values) or tier in KEEPING
    with collecting_later():
        stages.add("recorded", graph)
        graph = pipeline.match(graph, stages, loop_compiler(tier, on_device=bool(values)))
        if wanted is not None and gradient is not None:
            graph, finish = _differentiated(gradient, graph, wanted, leaves, rebuild_output, stages)
        else:
            finish = _finish_values(rebuild_output)
        overwritten = overwritten_inputs(graph)
        looping = not values and compiles_loops(tier)
        simple = simplify(graph, stages, lowered=lowered, looping=looping, on_device=bool(values))
        compiled = compile_graph(simple, stages, tier=tier, values=values)
    return Program(compiled, finish, graph.guards, stages, overwritten, quiet=quiet)


def compiles_loops(tier: str) -> bool:
    """True if the loops of a plan become machine code."""
    return tier == "native" and availability.why_not() is None


def loop_compiler(tier: str, *, on_device: bool) -> LoopCompiler | None:
    """The backend of a tier, if it compiles loops or their bodies."""
    if on_device:
        return LoopCompiler(None, _write_loops, _has_recurrent_layers)
    return LoopCompiler(_becomes_native, _write_loops, _has_recurrent_layers) if compiles_loops(tier) else None


def _becomes_native(node: Node) -> bool:
    from pullback.backends.native.regions import becomes_native  # noqa: PLC0415 - needs LLVM, which not everybody has

    return becomes_native(node)


def _write_loops(graph: Graph) -> Graph:
    from pullback.nn.recurrent.loops import write_loops  # noqa: PLC0415 - 10 ms that recurrent layers alone pay

    return write_loops(graph)


def _has_recurrent_layers(graph: Graph) -> bool:
    return any(type(node.primitive).__module__.startswith("pullback.nn.recurrent.") for node in graph.nodes)


def require_plain(leaf: Any) -> None:
    """Refuse an argument that plans do not take."""
    if isinstance(leaf, TracedValue) and leaf.on_device:
        return
    if not is_array_like(leaf) or (issubclass(type(leaf), np.ndarray) and type(leaf) is not np.ndarray):
        if isinstance(leaf, TracedValue):
            raise CannotCompileError(
                "it is differentiated or batched from outside; compile what is called outermost: pb.compile(pb.grad(f))"
            )
        if is_generator(leaf):
            raise CannotCompileError(
                f"an argument is a {type(leaf).__name__}, which draws other numbers on each call; draw outside of the function, "
                "and pass the numbers"
            )
        raise CannotCompileError(
            f"an argument is a {type(leaf).__name__}, not an array or a number; bind it with functools.partial, or make its "
            "class a tree with pb.register_pytree_node"
        )
    dtype = type_of(leaf).dtype
    if dtype.kind not in "biufc":
        raise CannotCompileError(f"an argument is of dtype {dtype}, which plans do not take")
    if not dtype.isnative:
        raise CannotCompileError(
            f"an argument is of dtype {dtype.str}, not in the byte order of this machine; pass x.astype('{dtype.str[1:]}')"
        )


def recorded(
    environment: Environment, leaves: list[Any], rebuild: trees.Rebuild, gradient: Gradient | None = None
) -> tuple[Graph, trees.Rebuild, frozenset[str]]:
    """The graph of the function, the tree of what it returns, and the floating-point warnings that it ignores.

    The arrays and numbers around it are inputs after the leaves. Of a function whose gradient is wanted the value
    comes first; the tree is that of its other results.
    """
    if environment.compares_with_truth and any(type(leaf) is bool for leaf in leaves):
        raise CannotCompileError("the function asks whether an argument `is True` or `is False`; ask `if x:`")
    if environment.against_numbers is not None and any(type(leaf) in (bool, int, float, complex) for leaf in leaves):
        raise CannotCompileError(environment.against_numbers)

    def forward(*traced: Any) -> tuple[list[Any], tuple[trees.Rebuild, frozenset[str]]]:
        function, substitution = environment.substituted(traced[len(leaves) :])
        with substitution.in_classes(), _watched(environment):
            traced_args = rebuild(iter(traced[: len(leaves)]))
            _require_watched(traced_args)
            result = function(*traced_args)
        quiet = _checked(environment, substitution, result)
        if gradient is None:
            values, rebuild_values = trees.flatten(result)
            return values, (rebuild_values, quiet)
        value, aux = split_aux(result, gradient.function) if gradient.has_aux else (result, None)
        if trees.structure(value) != "leaf":
            raise CannotCompileError(f"the function returns a {type(value).__name__}, not one number")
        beside, rebuild_aux = trees.flatten(aux)
        return [value, *beside], (rebuild_aux, quiet)

    values = [*leaves, *environment.read()]
    input_types = [*map(type_of, leaves), *environment.input_types]
    try:
        graph, (rebuild_output, quiet) = record(
            forward, input_types, values, [len(leaves) + number for number in environment.numbers()]
        )
    except (CannotCompileError, UnanalysedCodeError, PullbackError):
        raise
    except Exception as error:  # the user's own, or what a traced value cannot do: the tape will tell
        if "SeedSequence" in str(error) and "traced" in str(error):
            raise CannotCompileError(
                "the function seeds a random generator with an argument; draw outside of the function, and pass the numbers"
            ) from error
        raise CannotCompileError(f"{type(error).__name__} while recording: {error}") from error
    return graph, rebuild_output, quiet


def _require_watched(args: Any) -> None:
    """Refuse attributes of arguments that are neither parts of them nor constants."""
    attribute = trees.unwatched(args)
    if attribute is not None:
        raise CannotCompileError(
            f"an argument has an attribute that is no part of it, {attribute}, or an argument of its own"
        )


def _checked(environment: Environment, substitution: Substitution, result: Any) -> frozenset[str]:
    """The floating-point warnings that the function ignores, if it did nothing else that a plan would not do again."""
    if environment.before.has_traced():
        raise CannotCompileError("the function stores a value that depends on its arguments; return it instead")
    if environment.remembers_more():
        raise UnanalysedCodeError(())
    attribute = trees.unwatched(result)
    if attribute is not None:
        raise CannotCompileError(f"the function returns something with an attribute that is no part of it, {attribute}")
    changed = substitution.changed()
    if changed is not None:
        raise SideEffectError(f"the function changes {changed}; return the new value instead")
    recorder = innermost_recorder()
    if not isinstance(recorder, Recorder):  # what else records types has none of these
        return frozenset()
    environment.numbers_matter = recorder.numbers_matter
    if recorder.texts_matter:
        raise CannotCompileError(
            "the function reads the text of an array or of an argument, which a plan does not have"
        )
    return frozenset(recorder.handling.quiet)


@contextmanager
def _watched(environment: Environment) -> Iterator[None]:
    """Run the function so that nothing is missed that it does beside computing, where it may do such a thing."""
    if not environment.is_suspicious:
        yield
        return
    with noticing(environment.obstacles, environment.left_out, environment.generators) as noticed:
        try:
            yield
        except Exception as error:
            if noticed.ran:  # what stands in place of arrays may not have been there
                raise UnanalysedCodeError(noticed.ran) from error
            raise
        finally:
            for logger in noticed.loggers:
                environment.watch_logger(logger)
    if noticed.obstacle is not None:
        raise CannotCompileError(noticed.obstacle)
    if noticed.ran:
        raise UnanalysedCodeError(noticed.ran)


@dataclass(frozen=True, slots=True)
class _GradientLeaves:
    """The leaves to differentiate by, and functions that rebuild the tree of gradients of each argument."""

    leaves: list[int]
    rebuilds: list[trees.Rebuild]
    flat: bool
    """True if every wanted argument is a leaf itself."""


def _wanted_leaves(gradient: Gradient, leaves: list[Any], rebuild: trees.Rebuild) -> _GradientLeaves:
    numbered, arguments = rebuild(iter(range(len(leaves)))), rebuild(iter(leaves))
    parts = [trees.flatten(numbered[position]) for position in gradient.positions]
    wanted = [leaf for part, _ in parts for leaf in part]
    for position in gradient.positions:
        differentiable_leaves(arguments[position], gradient.function)
    flat = all(isinstance(numbered[position], int) for position in gradient.positions)
    return _GradientLeaves(wanted, [rebuild_part for _, rebuild_part in parts], flat)


def _differentiated(
    gradient: Gradient,
    graph: Graph,
    wanted: _GradientLeaves,
    leaves: Sequence[Any],
    rebuild_aux: trees.Rebuild,
    stages: Stages,
) -> tuple[Graph, Finish]:
    """The joint graph, and the function from its outputs to what the caller gets."""
    result = graph.outputs[0].type
    scalar(
        np.broadcast_to(np.zeros((), result.dtype), result.shape), gradient.function, holomorphic=gradient.holomorphic
    )
    joint, mask = pipeline.gradient(graph, stages, wanted.leaves, with_value=gradient.with_value)
    if (
        not result.weak
        and not gradient.has_aux
        and wanted.flat
        and all(mask)
        and all(is_array(leaves[leaf]) for leaf in wanted.leaves)
    ):
        return joint, _finish_arrays(gradient)
    kinds = [type(leaves[leaf]) for leaf in wanted.leaves]
    return joint, _finish_gradients(gradient, wanted, mask, kinds, rebuild_aux)


def _finish_arrays(gradient: Gradient) -> Finish:
    """The usual case, every gradient an array that is there: outputs are handed on as they are."""
    several = isinstance(gradient.wrt, tuple)

    def finish(outputs: Any) -> Any:
        if gradient.with_value:
            return (outputs[0], outputs[1:]) if several else outputs
        return outputs if several else outputs[0]

    return Finish(lambda outputs, _: finish(outputs), finish)


def _finish_gradients(
    gradient: Gradient,
    wanted: _GradientLeaves,
    mask: tuple[bool, ...],
    kinds: Sequence[type],
    rebuild_aux: trees.Rebuild,
) -> Finish:
    def finish(outputs: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
        values = iter(outputs)
        value = next(values) if gradient.with_value else None
        if gradient.with_value and not issubclass(type(value), np.generic | TracedValue):
            value = np.asarray(value)[()]
        gradients = trees.Gradients(
            [
                like(next(values) if present else None, leaves[leaf])
                for leaf, present in zip(wanted.leaves, mask, strict=True)
            ]
        )
        parts = tuple(rebuild(gradients) for rebuild in wanted.rebuilds)
        return gradient.result(value, parts, rebuild_aux(values))

    def form(outs: Sequence[Out]) -> Form:
        values = iter(outs)
        value = replace(next(values), kind=np.generic) if gradient.with_value else None
        gradients = trees.Gradients(
            [form_like(next(values) if present else None, kind) for kind, present in zip(kinds, mask, strict=True)]
        )
        parts = tuple(rebuild(gradients) for rebuild in wanted.rebuilds)
        return gradient.result(value, parts, rebuild_aux(values))

    return Finish(finish, form)


def _finish_values(rebuild: trees.Rebuild) -> Finish:
    return Finish(lambda outputs, _: rebuild(iter(outputs)), lambda outs: rebuild(iter(outs)))


def form_like(out: Out | None, kind: type) -> Form:
    """The form of a gradient by a leaf of some kind, as `like` makes it."""
    if out is None and kind is np.ndarray:
        raise NotNativeError("an array of zeros is made for an argument that the result does not depend on")
    if out is None:
        return Constant(kind(0))
    return replace(out, kind=kind) if kind in (float, complex) else out
