"""Paths that a sandbox shows."""

import pytest

from pullback_runners.machine.nvml import DeviceError, nvml
from pullback_runners.sandbox.bubblewrap import SandboxView, bubblewrap_command
from pullback_runners.sandbox.readable_paths import device_nodes

MINORS = """config 1
monitor 2
gpu0/gi0/access 3
gpu0/gi0/ci0/access 4
gpu3/gi1/access 30
gpu3/gi1/ci0/access 31
gpu3/gi9/access 57
gpu3/gi9/ci0/access 58
"""


@pytest.fixture
def nodes_of(tmp_path):
    """Return how to list the nodes of a device among those of a machine with four GPUs, of which the last one is divided."""
    dev, minors = tmp_path / "dev", tmp_path / "mig-minors"
    (dev / "nvidia-caps").mkdir(parents=True)
    caps = [f"nvidia-caps/nvidia-cap{number}" for number in (1, 2, 3, 4, 30, 31, 57, 58)]
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-nvswitchctl", *caps):
        (dev / name).touch()
    for number in range(4):
        (dev / f"nvidia{number}").touch()
    minors.write_text(MINORS)

    def nodes(place=0):
        with nvml() as library:
            numbers = library.numbers(library.devices()[place])
        return [str(each.relative_to(dev)) for each in device_nodes(*numbers, dev=dev, minors=minors)]

    return nodes


SHARED = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]


def test_a_job_sees_the_nodes_of_its_gpu_and_of_no_other_one(nvml_answers, nodes_of):
    nvml_answers("two")
    assert nodes_of(0) == [*SHARED, "nvidia0"]
    assert nodes_of(1) == [*SHARED, "nvidia1"]


def test_a_job_on_a_slice_sees_the_capabilities_of_that_slice(nvml_answers, nodes_of):
    nvml_answers("divided")
    assert nodes_of(0) == [*SHARED, "nvidia3", "nvidia-caps/nvidia-cap30", "nvidia-caps/nvidia-cap31"]
    assert nodes_of(1) == [*SHARED, "nvidia3", "nvidia-caps/nvidia-cap57", "nvidia-caps/nvidia-cap58"]


def test_a_driver_that_does_not_number_its_devices_is_named(nvml_answers, nodes_of):
    nvml_answers("quiet")
    with pytest.raises(DeviceError, match=r"^the driver does not report which device node NVIDIA H200 \(GPU-1.*\) has"):
        nodes_of()


def test_a_sandbox_has_the_devices_of_its_view_alone(tmp_path):
    command = bubblewrap_command("bwrap", SandboxView(tmp_path, devices=[tmp_path / "nvidia3"]), 3)
    bound = [command[place + 1] for place, word in enumerate(command) if word == "--dev-bind"]
    assert bound == [str(tmp_path / "nvidia3")]
    assert "--dev-bind" not in bubblewrap_command("bwrap", SandboxView(tmp_path), 3)
