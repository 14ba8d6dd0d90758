"""The text of `plan.explain()` and `pb.trace(f)(x).explain()`: inputs, passes, program and memory.

Sections begin with `# ` and their name, and are parted by an empty line.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from pullback import trees
from pullback.compiling.compiled_graph import CompiledGraph
from pullback.core.types import ArrayType
from pullback.ir.graph import Graph, Guard
from pullback.ir.printer import format_graph, input_names
from pullback.passes.pipeline import Stages


def names_of_leaves(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """The caller's name of each leaf of the arguments: `params['w'][0]`."""
    parameters = _parameters(function)
    called = (parameters[place] if place < len(parameters) else f"argument {place}" for place in range(len(args)))
    return [f"{name}{path}" for name, arg in zip(called, args, strict=True) for path in trees.paths(arg)]


def arguments(graph: Graph, names: Sequence[str], *, in_program: bool = False) -> str:
    """The inputs of a graph under the names that it and the program print, and where each comes from."""
    inputs = [(var, name or "made on the way") for var, name in zip_longest(graph.inputs, names[: len(graph.inputs)])]
    captured = [(capture.var, "an array that the function makes for itself") for capture in graph.captures]
    printed = input_names(graph)
    inside = [f"in{position}" for position in range(len(inputs))] + [""] * len(captured)
    rows = [
        (printed[var], *([place] if in_program else []), _with_bytes(var.type), name)
        for (var, name), place in zip([*inputs, *captured], inside, strict=True)
    ]
    return _section("arguments", _aligned(rows) if rows else "none")


def passes(stages: Stages) -> Iterator[str]:
    """The graph as it was recorded and after each pass."""
    return _stages((name, format_graph(graph)) for name, graph in stages.graphs)


def kernel_passes(compiled: CompiledGraph, prefix: str = "") -> Iterator[str]:
    """The kernels of programs after each pass over kernels, and those of each launch on a device."""
    yield from _stages((f"kernels: {prefix}{name}", kernels) for name, kernels in compiled.kernel_stages())
    yield from (_section(f"kernels: {prefix}{name}", kernels) for name, kernels in compiled.launches())


def _stages(stages: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A section for each pass, and one for the names of those in succession that changed nothing."""
    before, unchanged = None, list[str]()
    for name, text in stages:
        if text == before:
            unchanged.append(name)
            continue
        if unchanged:
            yield _section(", ".join(unchanged), "nothing changed")
        yield _section(name, text)
        before, unchanged = text, []
    if unchanged:
        yield _section(", ".join(unchanged), "nothing changed")


def program(compiled: CompiledGraph, title: str = "program") -> Iterator[str]:
    """The text of a program, the native programs that it calls, and the memory it works in."""
    yield _section(title, compiled.page.text.rstrip("\n"))
    for name, kernels in compiled.regions:
        yield _section(f"{name} of the {title}", kernels)
    yield _section(f"memory of the {title}", _memory(compiled))


def why_through_python(compiled: CompiledGraph) -> str:
    """The reason why the calls of a program are not native, and what to do; of a program that is not native throughout."""
    reasons, programs = "; ".join(compiled.counts["fallbacks"]), len(compiled.regions)
    if not programs:  # nothing of it is native, and the reason says all there is to do
        return reasons
    calls = programs + compiled.interpreted
    return (
        f"{reasons}. {counted(compiled.interpreted, 'step')} by NumPy and {counted(programs, 'native program')} take turns: "
        f"about {calls} µs of calls beside their own work; where that is too much, compute outside of the plan what is not native"
    )


def replaying(counts: dict[str, int], reasons: Sequence[str], *, entered: bool) -> str:
    """The way in which calls reach a program that is captured as a CUDA graph; natively, if they are `entered`."""
    if reasons:
        return f"each call {reasons[0]}"
    if not counts["sets"]:
        return "calls run step by step until the program is captured as a CUDA graph, which is on the third"
    return (
        f"calls launch a CUDA graph of {counted(counts['nodes'], 'node')} with {counted(counts['branches'], 'branch')} "
        f"on {counted(counts['streams'], 'stream')}, one of {counted(counts['sets'], 'set')} of addresses; "
        f"the latest told {counted(counts['moved'], 'nest')} where arrays lie and copied {counted(counts['copies'], 'array')}"
        + ("\ncalls like it are native: no Python between the caller and the launch" if entered else "")
    )


def counted(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"


def counts(summary: dict[str, Any], guards: Sequence[Guard]) -> str:
    """The counts of `plan.summary()` in words."""
    transient = f"; on the way {', '.join(summary['transient'])} allocate" if summary["transient"] else ""
    return (
        f"{summary['kernels']} kernels, {summary['flops']} flops, {summary['copies']} copies\n"
        f"new arrays on each call: {summary['arrays']} ({bytes_of(summary['bytes'])}){transient}; "
        f"kept between calls: {bytes_of(summary['state_bytes'])}{_guarded(len(guards))}"
    )


def _guarded(guards: int) -> str:
    if not guards:
        return ""
    hold = "1 guard holds" if guards == 1 else f"{guards} guards hold"
    return f"\nvalid while {hold} (`guard` in the graph: a value that the function used in Python); otherwise recorded again"


def bytes_of(nbytes: int) -> str:
    """A number of bytes for people."""
    if nbytes < 10_000:
        return f"{nbytes} bytes"
    return f"{nbytes / 1024:.1f} KiB" if nbytes < 10_000_000 else f"{nbytes / 1024**2:.1f} MiB"


def _memory(compiled: CompiledGraph) -> str:
    rows = [(piece.name, _with_bytes(piece.type), piece.whose) for piece in compiled.memory]
    total = f"at most {bytes_of(compiled.counts['peak_bytes'])} of it in use at once"
    return f"{_aligned(rows)}\n{total}" if rows else "none: every result is a number or a view"


def _with_bytes(type_: ArrayType) -> str:
    return f"{type_}, {bytes_of(type_.nbytes)}" if type_.shape else str(type_)


def _section(title: str, text: str) -> str:
    return f"# {title}\n{text}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function in C that does not tell
        return []
    return [parameter.name for parameter in parameters if parameter.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
