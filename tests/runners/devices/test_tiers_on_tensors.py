"""The tiers by the way of a device, with PyTorch's memory of the host in the place of one."""

from dataclasses import replace

import pytest

from pullback_runners.measurement.gradient_check import check_gradient
from pullback_runners.peers import QueuedCall
from pullback_runners.suites import SUITES
from pullback_runners.variants import open_variant
from pullback_runners.workloads import find_workload

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")


@pytest.mark.parametrize("tier", ["unfused", "fused", "stateful"])
@pytest.mark.parametrize("name", SUITES["quick"].headline)
def test_a_tier_by_the_way_of_a_device_computes_the_gradients_of_the_closed_form(name, tier, monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(None))
    workload = find_workload(name)
    case = workload.cases("quick")[0]
    inputs = workload.draw_inputs(case)
    # Another word for the host, no other device.
    with open_variant(tier, workload, replace(case, device="cpu:0"), inputs) as prepared:
        assert isinstance(prepared.call, QueuedCall)
        check = check_gradient(
            prepared.differentiated(prepared.call()), workload.closed_form(case, inputs), inputs, case.dtype
        )
    assert check.ok, check.complaint
    assert len(waited) == 1
