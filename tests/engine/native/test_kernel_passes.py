"""Passes over kernels: their order is the pipeline's, and each is checked."""

from dataclasses import replace

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import kernel_passes
from pullback.backends.native.kernel_passes import KernelInput
from pullback.backends.nests.fusion import FusedNodes
from pullback.backends.nests.kernel_passes import check_kernels
from pullback.errors import GraphError
from pullback.passes.pipeline import KERNEL_PASSES, Stages, simplify

X = np.ones((5, 4))


def grouped():
    graph = pb.trace(lambda x: np.sum(np.sin(x.T @ x)))(X).graph
    return KernelInput(simplify(graph, Stages(), lowered=True), 256)


def test_the_pipeline_names_all_passes_over_kernels():
    assert set(kernel_passes.PASSES) == set(KERNEL_PASSES)


def test_the_kernels_are_those_after_the_last_pass():
    names, stages = zip(*grouped().stages(), strict=True)
    assert names == KERNEL_PASSES
    assert len(stages[-1].kernels) == len(grouped().kernels().kernels) == 2


def test_a_kernel_that_reads_what_is_made_behind_it_is_refused():
    one = grouped()
    kernels = one.kernels()
    with pytest.raises(GraphError, match="reads a value that no kernel before it makes"):
        check_kernels(one.graph, replace(kernels, kernels=kernels.kernels[::-1]))


def test_an_output_that_no_kernel_makes_is_refused():
    one = grouped()
    kernels = one.kernels()
    with pytest.raises(GraphError, match="return reads a value"):
        check_kernels(one.graph, replace(kernels, kernels=kernels.kernels[:-1]))


def test_a_node_in_two_kernels_is_refused():
    one = grouped()
    kernels = one.kernels()
    with pytest.raises(GraphError, match="is in two kernels"):
        check_kernels(one.graph, replace(kernels, kernels=kernels.kernels * 2))


def test_a_pass_that_breaks_a_type_is_named(monkeypatch):
    def broken(grouping, found):
        *before, nest = found.kernels
        *nodes, total = nest.nodes
        nodes.append(replace(total, params=(("axes", (0,)), ("keepdims", False))))
        return replace(found, kernels=(*before, FusedNodes(nest.space, nodes, nest.values, nest.read)))

    monkeypatch.setitem(kernel_passes.PASSES, "sunk nodes", broken)
    with pytest.raises(
        GraphError, match=r"after the pass sunk nodes: sum at .* is declared to give f8\[\], its rule gives"
    ):
        grouped().kernels()


def test_a_page_shows_the_kernels_after_each_pass_and_where_values_lie():
    plan = pb.compile(lambda x: np.concatenate([np.sin(x), np.cos(x)]), tier="native")
    plan(X)
    page = plan.explain()
    assert "# kernels: fused nests\nnest [5, 4]: b c\nd = concatenate b c" in page
    assert "# kernels: joins in place\nnest [5, 4]: b c; b in d; c in d\nd = concatenate b c" in page
