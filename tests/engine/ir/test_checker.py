"""The type check between passes finds what a broken pass would do."""

from dataclasses import replace

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import ArrayType
from pullback.errors import GraphError
from pullback.ir.checker import check_graph
from pullback.ir.graph import Var
from pullback.passes.pipeline import Pass, Stages


@pytest.fixture
def graph():
    return pb.trace(lambda x: np.sum(np.tanh(x) * 2))(np.ones(3)).graph


def test_a_recorded_graph_passes(graph):
    assert check_graph(graph) is graph


def test_a_wrong_type_is_found(graph):
    node = graph.nodes[0]
    wrong = replace(node, outputs=(Var(node.outputs[0].index, ArrayType((4,), np.dtype(np.float64))),))
    with pytest.raises(GraphError, match="its rule gives"):
        check_graph(replace(graph, nodes=(wrong, *graph.nodes[1:])))


def test_use_before_definition_is_found(graph):
    with pytest.raises(GraphError, match="before it is defined"):
        check_graph(replace(graph, nodes=graph.nodes[::-1]))


def test_a_second_definition_is_found(graph):
    with pytest.raises(GraphError, match="defined twice"):
        check_graph(replace(graph, nodes=(graph.nodes[0], *graph.nodes)))


def test_an_undefined_output_is_found(graph):
    with pytest.raises(GraphError, match="used by return"):
        check_graph(replace(graph, nodes=graph.nodes[:-1]))


def test_graphs_are_checked_behind_every_pass_of_all_tests_and_where_a_variable_says_so(graph, monkeypatch):
    broken = Pass("broken", lambda graph: replace(graph, nodes=graph.nodes[::-1]))
    with pytest.raises(GraphError, match=r"after the pass broken: .* before it is defined"):
        Stages().run([broken], graph)
    monkeypatch.setenv("PULLBACK_CHECK", "0")
    assert Stages().run([broken], graph).nodes == graph.nodes[::-1]
