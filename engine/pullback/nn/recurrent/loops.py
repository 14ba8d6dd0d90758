"""Recurrent layers as loops of the graph, for a backend that compiles loops.

A rule over a whole sequence is the best that NumPy can do with one. Where the loop is compiled it is better written out, before
it is differentiated: then the passes for loops find by themselves what the rule does by hand (the product with all inputs
at once, gradients of weights as one product after the loop), and the steps are fused with what comes before and after.
"""

from pullback.core.primitive import Primitive
from pullback.ir.graph import Graph
from pullback.nn.recurrent.rule import Recurrence, gradient_written_out
from pullback.passes.lowering import Form, written_out
from pullback.simplification.dead_code import drop_dead


def write_loops(graph: Graph) -> Graph:
    """The graph with a loop in the place of every recurrent layer whose saved values are not read; the pipeline drops what is dead."""
    if not any(isinstance(node.primitive, Recurrence) for node in graph.nodes):
        return graph
    without_gradients = written_out(graph, gradient_written_out)
    alive = drop_dead(without_gradients)
    read = {atom for node in alive.nodes for atom in node.inputs} | {*alive.outputs}
    kept = {
        node.primitive
        for node in alive.nodes
        if isinstance(node.primitive, Recurrence) and read.intersection(node.outputs[node.primitive.states :])
    }

    def form_of(primitive: Primitive) -> Form:
        return primitive.written_out if isinstance(primitive, Recurrence) and primitive not in kept else None

    return written_out(without_gradients, form_of)
