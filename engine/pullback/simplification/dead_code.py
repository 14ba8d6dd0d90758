"""Dead code: what leads to no output and has no effect is dropped."""

from dataclasses import replace

from pullback.ir.graph import Graph, Var


def drop_dead(graph: Graph) -> Graph:
    """Keep the nodes that an output, a guard or a write to memory depends on."""
    live = {atom for atom in graph.ends() if isinstance(atom, Var)}
    nodes = []
    for node in reversed(graph.nodes):
        if node.primitive.effect.writes or any(var in live for var in node.outputs):
            nodes.append(node)
            live.update(atom for atom in node.inputs if isinstance(atom, Var))
    return replace(graph, nodes=tuple(reversed(nodes)))
