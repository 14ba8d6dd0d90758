"""The order of all passes, from the graph that was recorded to the kernels of a program.

    recorded -> match -> differentiate -> simplify -> partition (of a pullback)
        -> NATIVE -> python numbers -> WHOLLY_NATIVE -> KERNEL_PASSES    of a native program
        -> NATIVE -> native regions -> KERNEL_PASSES of each             of a program with native parts
        -> positions -> DEVICE_KERNEL_PASSES                             of a program on a device

Bodies that are taken apart while they are differentiated are simplified by the first of EVERYWHERE, `simplification/order.py`.
`plan.explain()` shows the graph after each pass, and where `PULLBACK_CHECK=1` is set, as in all tests, it is checked there.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from importlib import import_module
from typing import NamedTuple

from pullback.dataclass import dataclass
from pullback.ir.checker import check_graph, is_checking, naming
from pullback.ir.graph import Graph, Node
from pullback.passes.decompositions import drop_vectors, share_decompositions
from pullback.passes.differentiate import differentiate, with_pullback
from pullback.passes.layout_copies import copy_for_layouts
from pullback.passes.loops import FEWEST_NODES_SAVED
from pullback.passes.lowering import lower
from pullback.passes.masks import mask_before_spreading
from pullback.passes.outer_products import join_outer_products
from pullback.passes.partition import Partition, partition_joint
from pullback.passes.parts import join_parts
from pullback.passes.patterns import find_patterns
from pullback.passes.powers import share_powers
from pullback.passes.scalar_hoisting import hoist_scalars
from pullback.passes.shifts import hold_shifts
from pullback.passes.stacked_products import sum_within_products
from pullback.passes.store_forwarding import forward_stores
from pullback.passes.store_order import order_stores
from pullback.passes.sums import sum_factors
from pullback.passes.systems import factor_systems
from pullback.passes.transposed_products import transpose_products
from pullback.passes.undone_overwrites import drop_undone_writes
from pullback.passes.whole_array_keys import reshape_wholes
from pullback.rules.contractions import matmul
from pullback.rules.pooling import max_spread
from pullback.simplification.common_subexpressions import merge_common
from pullback.simplification.dead_code import drop_dead
from pullback.simplification.order import REWRITINGS

#: Passes over the kernels of a native program, in order; `backends.native.kernel_passes` has them by these names.
KERNEL_PASSES = (
    "fused nests",
    "merged nests",
    "sunk nodes",
    "order of axes",
    "joins in place",
    "matmul epilogues",
)

#: Passes over the kernels of a program on a device, in order; `backends.cuda.kernel_passes` has them by these names.
DEVICE_KERNEL_PASSES = (
    "fused nests",
    "merged nests",
    "sunk nodes",
    "joined rows",
    "joins in place",
)


class Pass(NamedTuple):
    """A function of graphs, and the graphs that it is for."""

    name: str
    run: Callable[[Graph], Graph]
    is_for: Callable[[Graph], bool] = lambda _: True


def _later(module: str, name: str) -> Callable[[Graph], Graph]:
    """A pass whose module is loaded for the first graph that it is for: each takes 0.6 ms of a first plan."""

    def run(graph: Graph) -> Graph:
        changed: Graph = getattr(import_module(f"pullback.passes.{module}"), name)(graph)
        return changed

    return run


class Group(NamedTuple):
    """Passes that run one after the other for the graphs that they are for at the beginning."""

    passes: "Sequence[Pass | Group]"
    is_for: Callable[[Graph], bool]


@dataclass
class Stages:
    """The graph after each pass, for `plan.explain()`."""

    graphs: list[tuple[str, Graph]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The caller's names of the inputs of the first graph."""
    prefix: str = ""
    _checks: bool = field(default_factory=is_checking)
    _typed: set[Node] = field(default_factory=set)
    """Nodes that were checked: most passes change a few."""

    def add(self, name: str, graph: Graph) -> Graph:
        """Note a graph, checked if it is new."""
        if self._checks and not (self.graphs and self.graphs[-1][1] is graph):
            with naming(name):
                check_graph(graph, self._typed)
        self.graphs.append((self.prefix + name, graph))
        return graph

    def of(self, part: str) -> "Stages":
        """Further stages of one part of the graph, noted among the others."""
        return replace(self, prefix=f"{part}: ")

    def run(self, passes: Sequence[Pass | Group], graph: Graph) -> Graph:
        """Run the passes that are for this graph, one after the other."""
        for one in passes:
            if one.is_for(graph):
                graph = self.run(one.passes, graph) if isinstance(one, Group) else self.add(one.name, one.run(graph))
        return graph


@dataclass(frozen=True, slots=True)
class LoopCompiler:
    """A backend that compiles the body of a loop once, and what the passes need of it."""

    becomes_native: Callable[[Node], bool] | None
    """True of a node that may stand in a loop of machine code; None where loops do not become machine code."""
    write_loops: Callable[[Graph], Graph]
    """Layers that are rules written as loops."""
    has_layers: Callable[[Graph], bool]
    """True of a graph that has such layers."""


def _has_no_writes(graph: Graph) -> bool:
    # If memory is overwritten, two names for one value, or reads of one value at two times, may differ.
    return not any(node.primitive.effect.writes for node in graph.nodes)


def _writes(graph: Graph) -> bool:
    return not _has_no_writes(graph)


def _has_loops(graph: Graph) -> bool:
    return any(node.bodies() for node in graph.nodes)


def _has_pure_loops(graph: Graph) -> bool:
    return _has_loops(graph) and _has_no_writes(graph)


def _has_complex(graph: Graph) -> bool:
    """True if a value is complex, inside loops and branches too."""
    atoms = (*graph.inputs, *(atom for node in graph.nodes for atom in (*node.inputs, *node.outputs)))
    return any(atom.type.dtype.kind == "c" for atom in atoms) or any(
        _has_complex(body) for node in graph.nodes for _, body in node.bodies()
    )


def _has_complex_alone(graph: Graph) -> bool:
    return _has_complex(graph) and _has_no_writes(graph)


def _has_empty(graph: Graph) -> bool:
    """True if a value has no elements, inside loops and branches too."""
    if any(not var.type.size for var in (*graph.inputs, *(var for node in graph.nodes for var in node.outputs))):
        return True
    return any(_has_empty(body) for node in graph.nodes for _, body in node.bodies())


def _multiplies(graph: Graph) -> bool:
    """True if there is a product of matrices, inside loops and branches too."""
    return any(node.primitive is matmul or any(_multiplies(body) for _, body in node.bodies()) for node in graph.nodes)


def _spreads_maxima(graph: Graph) -> bool:
    return any(node.primitive is max_spread for node in graph.nodes) and _has_no_writes(graph)


def _may_repeat(graph: Graph) -> bool:
    return len(graph.nodes) > FEWEST_NODES_SAVED or _has_loops(graph)


# --- before a function is differentiated ---------------------------------------------------------------------------------
def match(graph: Graph, stages: Stages, compiler: LoopCompiler | None) -> Graph:
    """Put in the rules that the graph spells out; for a compiler of loops, write repeated steps and layers as loops."""
    passes: list[Pass | Group] = [Pass("patterns", _with_patterns), Pass("stores", forward_stores)]
    if compiler is not None:
        if compiler.becomes_native is not None:
            roll = partial(_rolled, becomes_native=compiler.becomes_native)
            passes.append(Pass("repeated steps as loops", roll, _may_repeat))
        layers = (
            Pass("recurrent layers as loops", compiler.write_loops),
            Pass("recurrent layers: dead code", drop_dead),
        )
        passes.append(Group(layers, compiler.has_layers))
    return stages.run(passes, graph)


def _with_patterns(graph: Graph) -> Graph:
    found = drop_dead(find_patterns(graph))
    return found if len(found.nodes) < len(graph.nodes) else graph


def _rolled(graph: Graph, becomes_native: Callable[[Node], bool]) -> Graph:
    from pullback.passes.loops.rolling import roll_loops  # noqa: PLC0415 - 6 ms that long programs alone pay

    return roll_loops(graph, becomes_native)


# --- differentiation -----------------------------------------------------------------------------------------------------
def gradient(graph: Graph, stages: Stages, wrt: Sequence[int], *, with_value: bool) -> tuple[Graph, tuple[bool, ...]]:
    """The joint graph of value and gradients, and which inputs of `wrt` have one."""
    graph = stages.run([Pass("shifts", partial(hold_shifts, values_count=1))], graph)
    joint, mask = differentiate(graph, wrt, with_value=with_value)
    return stages.add("differentiated", joint), mask


def value_and_pullback(graph: Graph, stages: Stages, leaves: int) -> tuple[Graph, tuple[bool, ...]]:
    """The joint graph of values and cotangents, and which of the first inputs, the leaves, have one."""
    graph = stages.run([Pass("shifts", partial(hold_shifts, values_count=len(graph.outputs)))], graph)
    joint, mask = with_pullback(graph, range(leaves))
    return stages.add("differentiated", joint), mask


def partition(joint: Graph, stages: Stages, inputs_count: int, values_count: int) -> Partition:
    """The joint graph of values and cotangents as two, of which the backward one runs later."""
    parts = partition_joint(joint, inputs_count, values_count)
    stages.add("forward", parts.forward)
    stages.add("backward", parts.backward)
    return parts


# --- simplification ------------------------------------------------------------------------------------------------------
def simplify(
    graph: Graph, stages: Stages, *, lowered: bool = False, looping: bool = False, on_device: bool = False
) -> Graph:
    """Run the simplifying passes; `lowered`, with fused rules written out, for plans that keep all memory.

    `looping`: for a backend that compiles loops, and for which how operands of products lie is worth a copy before them.
    `on_device`: for a program of PyTorch's functions, which take complex numbers.
    """
    return stages.run(_simplifying(lowered=lowered, looping=looping, on_device=on_device), graph)


def simplify_bodies(graph: Graph) -> Graph:
    """The passes of every graph inside loops and branches, innermost first."""

    def simplified(body: Graph) -> Graph:
        return Stages().run(EVERYWHERE, body)

    return replace(graph, nodes=tuple(node.with_bodies(simplified) for node in graph.nodes))


#: Passes for every graph, bodies of loops and branches included.
EVERYWHERE = (
    Group(tuple(Pass(name, rewrite) for name, rewrite in REWRITINGS), _has_no_writes),
    Pass("dead code", drop_dead),
    Group((Pass("masks", mask_before_spreading), Pass("masks: dead code", drop_dead)), _spreads_maxima),
    Group(
        (
            Pass("bodies", simplify_bodies),
            Pass("loops: carries", _later("loops.carries", "drop_dead_carries")),
            Pass("loops: hoisting", _later("loops.hoisting", "hoist_invariants")),
            Pass("loops: sums", _later("loops.deferred_sums", "sum_after_loops")),
            Pass("loops: products", _later("loops.input_products", "split_products")),
            Pass("loops: common subexpressions", merge_common),
            Pass("loops: dead code", drop_dead),
            Pass("loops: dead carries", _later("loops.carries", "drop_dead_carries")),
        ),
        _has_pure_loops,
    ),
)


@lru_cache
def _simplifying(*, lowered: bool, looping: bool, on_device: bool) -> tuple[Pass | Group, ...]:
    native = lowered and looping
    passes: list[Pass | Group] = [
        Pass("undone writes", drop_undone_writes, _writes),
        Pass("decompositions", partial(share_decompositions, native=native), _has_no_writes),
        Pass("systems", partial(factor_systems, native=native), _has_no_writes),
    ]
    if lowered:
        passes += [Pass("lowered", lower)]
        if native:
            passes += [Pass("empty arrays", _later("empty_arrays", "leave_out_empty"), _has_empty)]
        if looping and not on_device:
            passes += [Pass("complex parts", _later("complex_parts", "split_complex"), _has_complex_alone)]
        passes += [
            Pass("parts", join_parts, _has_no_writes),
            Pass("whole-array keys", reshape_wholes, _has_no_writes),
            Pass("stores", forward_stores, _has_no_writes),
        ]
    passes += EVERYWHERE
    passes += [Pass("decompositions: values alone", drop_vectors)]
    if native:
        passes += [Pass("outer products", join_outer_products, _has_no_writes)]
    if lowered:
        passes += [
            Pass("stacked products", sum_within_products, _has_no_writes),
            Pass("transposed products", transpose_products, _has_no_writes),
        ]
    if native:
        loops = (
            Pass("loops: shifted carries", _later("loops.shifted_carries", "shift_carries")),
            Pass("loops: sunk additions", _later("loops.sunk_additions", "sink_additions")),
            Pass("loops: slices", _later("slice_pushdown", "slice_operands")),
            Pass("loops: panels", _later("loops.panels", "lay_in_panels")),
        )
        passes += [Group(loops, _has_loops)]
    if lowered:
        passes += [
            Pass("loops: packing", _later("loops.transposition", "pack_before_loops"), _has_loops),
            Pass("layouts", copy_for_layouts),
            Pass("order of stores", order_stores),
        ]
    return tuple(passes)


# --- native programs -----------------------------------------------------------------------------------------------------
#: Passes for a graph that becomes one or several native programs.
NATIVE = (Pass("powers", share_powers),)

#: Passes for a graph that is a native program as a whole.
WHOLLY_NATIVE = (
    Pass("invariants of loops", _later("loops.hoisting", "hoist_from_whiles"), _has_loops),
    Pass("sums of products", sum_factors),
    Pass("common factors", _later("common_factors", "factor_out"), _multiplies),
    Pass("symmetric products", _later("symmetric_products", "halve_symmetric"), _multiplies),
    Pass("scalar hoisting", hoist_scalars),
)
