"""Passes over the kernels of programs on a device: their order is the pipeline's, and each is checked."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engine.nests.test_joins_in_place import lowered

from pullback.backends.cuda import kernel_passes
from pullback.backends.cuda.kernel_passes import KernelInput
from pullback.backends.nests.kernel_listing import format_stages
from pullback.errors import GraphError
from pullback.passes.pipeline import DEVICE_KERNEL_PASSES


def grouped(function):
    graph = lowered(function, np.ones((5, 4)))
    values = (*graph.inputs, *(var for node in graph.nodes for var in node.outputs))
    return KernelInput(graph, dict.fromkeys(values, True), (), lambda node: False)


def _softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.concatenate([e / np.sum(e, axis=1, keepdims=True), x @ np.ones((4, 4))])


def test_the_pipeline_names_all_passes_over_kernels_of_a_device():
    assert set(kernel_passes.PASSES) == set(DEVICE_KERNEL_PASSES)


def test_kernels_are_made_by_the_passes_in_order():
    names, stages = zip(*grouped(_softmax).stages(), strict=True)
    assert names == DEVICE_KERNEL_PASSES
    counts = dict(zip(names, (len(found.kernels) for found in stages), strict=True))
    assert counts["sunk nodes"] > counts["joined rows"] == 3


def test_a_page_shows_nests_of_rows_and_where_parts_of_a_join_lie():
    one = grouped(_softmax)
    texts = dict(format_stages(one.graph, one.stages()))
    assert texts["sunk nodes"].count("nest") > texts["joined rows"].count("nest") == 1
    assert " in " in texts["joins in place"]
    assert " in " not in texts["joined rows"]


def test_a_pass_that_breaks_the_order_is_named(monkeypatch):
    def broken(_, found):
        return replace(found, kernels=found.kernels[::-1])

    monkeypatch.setitem(kernel_passes.PASSES, "joined rows", broken)
    with pytest.raises(GraphError, match=r"after the pass joined rows: .* no kernel before it makes"):
        list(grouped(_softmax).stages())
