"""A graph on one page."""

import numpy as np

import pullback as pb
from pullback.ir.printer import format_graph


def loss(w, x, b):
    return np.sum(np.tanh(w @ x + b) ** 2)


def test_the_graph_of_a_layer_reads_like_the_mathematics():
    graph = pb.trace(loss)(np.ones((4, 5), np.float32), np.ones((5, 3), np.float32), np.ones((4, 1), np.float32)).graph
    assert format_graph(graph, sources=False).splitlines() == [
        "graph(a: f4[4,5], b: f4[5,3], c: f4[4,1]):",
        "  d = matmul a b                                 f4[4,3]",
        "  e = add d c                                    f4[4,3]",
        "  f = tanh e                                     f4[4,3]",
        "  g = power f 2                                  f4[4,3]",
        "  h = sum g {axes=(0, 1), keepdims=False}        f4[]",
        "  return h",
    ]


def test_every_node_names_the_line_of_the_user():
    text = str(pb.trace(loss)(np.ones((4, 5)), np.ones((5, 3)), np.ones((4, 1))))
    line = loss.__code__.co_firstlineno + 1
    assert all(node.endswith(f"test_printer.py:{line}") for node in text.partition("  return")[0].splitlines()[1:])


def test_backward_nodes_name_the_line_they_differentiate():
    plan = pb.compile(pb.value_and_grad(loss), tier="fused")
    plan(np.ones((4, 5)), np.ones((5, 3)), np.ones((4, 1)))
    differentiated = plan.explain().partition("# differentiated")[2].partition("\n\n")[0].splitlines()
    line = loss.__code__.co_firstlineno + 1
    assert all(f"test_printer.py:{line}" in node for node in differentiated[2:-2] if "return" not in node)


def test_python_numbers_are_weak_in_the_text():
    assert "a: f[]" in str(pb.trace(lambda p: p * 2)(3.0))


def test_captured_arrays_stand_apart():
    c = np.ones(3)
    assert str(pb.trace(lambda x: x * c)(c + 1)).startswith("graph(a: f8[3] | b: f8[3]):")
