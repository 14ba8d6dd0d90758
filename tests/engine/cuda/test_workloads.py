"""Every workload of the suite `quick` on a device: NumPy's values in every tier, and a CUDA graph of it or the reason why there is none."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from pullback_runners.workloads.registry import known_workloads  # noqa: E402 - beside what loads PyTorch

CASES = [
    pytest.param(workload, case, id=case.name)
    for workload in known_workloads()
    if workload.has_numpy and not workload.is_foreign
    for case in workload.cases("quick")
]

#: By workload, a part of the reason why it is no CUDA graph.
NO_GRAPH = {"ba": "waits for the device"}

#: Bounds of errors, of the largest element.
RTOL = {"f4": 2e-4, "f8": 1e-9}


def _flat(tree):
    return [np.asarray(leaf) for leaf in pb.trees.flatten(pb.fetch(tree))[0]]


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
@pytest.mark.parametrize(("workload", "case"), CASES)
def test_values_are_numpys_and_what_is_no_graph_says_why(workload, case, tier):
    function, inputs = workload.differentiated(pb, **dict(case.params)), tuple(workload.draw_inputs(case).values())
    plan, expected, arguments = pb.compile(function, tier=tier), _flat(function(*inputs)), pb.put(inputs, "cpu")
    for _ in range(4):
        found = plan(*arguments)
    for ours, theirs in zip(_flat(found), expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        bound = RTOL[case.dtype] * max(1, np.max(np.abs(theirs), initial=0))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound)
    summary = plan.summary()
    assert summary["hash"] is not None, summary["fallbacks"]
    if tier == "native":
        reasons = " ".join(summary["fallbacks"])
        if workload.name in NO_GRAPH:
            assert NO_GRAPH[workload.name] in reasons
        else:
            assert reasons == ""
            assert summary["graph"]["nodes"] > 0
