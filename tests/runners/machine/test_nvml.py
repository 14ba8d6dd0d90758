"""Devices as NVIDIA's library tells of them, played by a stand-in for its binding."""

import os
import subprocess
import sys

import pytest

from pullback_runners.machine import describe_machine, facts
from pullback_runners.machine.nvml import Clocks, Device, DeviceError, LostDeviceError, nvml

H200 = Device(
    "GPU-11111111-aaaa-4aaa-8aaa-111111111111", "NVIDIA H200", 150754820096, "GPU-11111111-aaaa-4aaa-8aaa-111111111111"
)
L4 = Device(
    "GPU-55555555-eeee-4eee-8eee-555555555555", "NVIDIA L4", 24152899584, "GPU-55555555-eeee-4eee-8eee-555555555555"
)
DIVIDED = "GPU-22222222-bbbb-4bbb-8bbb-222222222222"
LARGE = Device("MIG-33333333-cccc-5ccc-8ccc-333333333333", "NVIDIA H200 MIG 3g.71gb", 74625056768, DIVIDED)
SMALL = Device("MIG-44444444-dddd-5ddd-8ddd-444444444444", "NVIDIA H200 MIG 1g.18gb", 17179869184, DIVIDED)


def test_a_quiet_device_is_told_with_its_clocks_and_versions(nvml_answers):
    with nvml() as library:
        assert library.devices() == [H200]
        assert not H200.is_slice
        assert library.versions() == ("570.86.15", "12.8")
        assert library.clocks(H200) == Clocks(1980, 3201, ())  # an idle device is not throttled
        assert library.processes(H200) == []
        library.watch(H200)
        library.refuse_broken()


def test_reasons_of_slow_clocks_are_told_in_words_and_what_the_driver_does_not_tell_is_none(nvml_answers):
    nvml_answers("throttled")
    with nvml() as library:
        slow = library.clocks(H200)
        assert slow == Clocks(1980, None, ("power cap", "software thermal slowdown", "hardware thermal slowdown"))
    nvml_answers("quiet", reasons=[0x02, 0x100, 0x08, 0x80])  # set by somebody, of a display; hardware's
    with nvml() as library:
        told = [library.clocks(H200).throttled for _ in range(4)]
    assert told == [(), (), ("hardware slowdown",), ("power brake",)]


@pytest.mark.parametrize(
    ("visible", "device"),
    [
        (None, H200),
        ("0", H200),
        ("1", L4),
        ("1,0", L4),
        (L4.uuid, L4),
        ("GPU-5555", L4),
        (f"{H200.uuid},{L4.uuid}", H200),
    ],
)
def test_the_device_is_the_first_that_is_visible(nvml_answers, visible, device):
    nvml_answers("two")
    with nvml() as library:
        assert library.named(visible) == device


@pytest.mark.parametrize("visible", ["", "2", "-1", "GPU-9", "MIG-3", "all"])
def test_what_names_no_device_is_told_with_those_that_there_are(nvml_answers, visible):
    nvml_answers("two")
    said = rf"^CUDA_VISIBLE_DEVICES={visible} names no device; there are NVIDIA H200 \(GPU-1.*\), NVIDIA L4 \(GPU-5.*\): write the UUID"
    with nvml() as library, pytest.raises(DeviceError, match=said):
        library.named(visible)


def test_gpus_that_a_sandbox_may_not_use_are_left_out(nvml_answers):
    nvml_answers("two", handle={"error": 4})
    with nvml() as library:
        assert library.devices() == [L4]
        assert {library.named(visible) for visible in (None, "0", L4.uuid)} == {L4}
    nvml_answers("two", handle={"error": 15})
    with nvml() as library, pytest.raises(LostDeviceError):
        library.devices()


def test_slices_are_devices_in_the_place_of_the_gpu_that_is_divided(nvml_answers):
    nvml_answers("divided")
    with nvml() as library:
        assert library.devices() == [LARGE, SMALL]
        assert all(each.is_slice for each in library.devices())
        named = {visible: library.named(visible) for visible in (None, "0", DIVIDED, SMALL.uuid, "MIG-4")}
        assert named == {None: LARGE, "0": LARGE, DIVIDED: LARGE, SMALL.uuid: SMALL, "MIG-4": SMALL}
        assert library.clocks(SMALL).sm_mhz == 1980  # those of the GPU


def test_a_slice_is_a_class_of_its_own_and_a_whole_gpu_is_the_class_that_it_was(nvml_answers):
    machines = {device: describe_machine(device=device) for device in (None, H200, LARGE, SMALL)}
    assert machines[H200] == machines[None]
    assert len({machine["fingerprint"] for machine in machines.values()}) == 3
    assert machines[SMALL]["facts"]["gpu"] == "NVIDIA H200 MIG 1g.18gb, 16 GiB"


def test_a_gpu_beside_others_of_another_kind_is_a_class_of_its_own(monkeypatch):
    listed = [["NVIDIA H200", "143771", "570.86.15"], ["NVIDIA L4", "23034", "570.86.15"]]
    monkeypatch.setattr(facts, "query_driver", lambda _: listed)
    machines = {device: describe_machine(device=device) for device in (None, H200, L4)}
    assert len({machine["fingerprint"] for machine in machines.values()}) == 3
    assert machines[L4]["facts"]["gpu"] == "NVIDIA L4, 22 GiB"
    monkeypatch.setattr(facts, "query_driver", lambda _: [listed[0], listed[0]])
    assert describe_machine(device=H200)["fingerprint"] == describe_machine()["fingerprint"]


def test_what_a_driver_older_than_its_binding_does_not_know_is_not_told_and_no_loss(nvml_answers):
    nvml_answers("quiet", reasons=[{"error": 13}], processes=[{"error": 13}])
    with nvml() as library:
        assert library.clocks(H200) == Clocks(1980, 3201, ())
        assert library.processes(H200) == []


def test_processes_are_told_by_pid_and_name(nvml_answers):
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        nvml_answers("quiet", processes=[["self", other.pid, 2**22 + 1]])
        with nvml() as library:
            own, theirs, unknown = library.processes(H200)
    finally:
        other.communicate(b"\n")
    assert (own.pid, theirs.pid) == (os.getpid(), other.pid)
    assert str(theirs).startswith("python")
    assert str(theirs).endswith(f", process {other.pid}")
    assert str(unknown) == f"a process without a name here, process {2**22 + 1}"


LOST = (
    r"^the driver has lost NVIDIA H200 \(GPU-1.*\) \({}\): read NVRM and Xid in the kernel's log \(dmesg\), then reset"
)


def test_what_is_free_and_what_each_process_holds_is_told(nvml_answers):
    nvml_answers("quiet", free=7 << 30, processes=[[["self", 3 << 30], 2**22 + 1]])
    with nvml() as library:
        assert library.free_bytes(H200) == 7 << 30
        assert [each.used_bytes for each in library.processes(H200)] == [3 << 30, None]


def test_a_lost_device_is_told_in_one_sentence(nvml_answers):
    nvml_answers("lost")
    with nvml() as library:
        library.watch(H200)
        with pytest.raises(LostDeviceError, match=LOST.format("GPU is lost")):
            library.clocks(H200)
        assert library.processes(H200) == []
        with pytest.raises(LostDeviceError, match=LOST.format("GPU is lost")):
            library.processes(H200)
        with pytest.raises(LostDeviceError, match=LOST.format("Xid 79")):
            library.refuse_broken()
        library.refuse_broken()  # each is told once


def test_errors_that_programs_make_are_no_loss_and_those_before_the_watch_are_past(nvml_answers):
    nvml_answers("quiet", xids=[13, 31, 43, 95])
    with nvml() as library:
        library.refuse_broken()
        library.watch(H200)
        with pytest.raises(LostDeviceError, match=LOST.format("Xid 95")):
            library.refuse_broken()


def test_without_binding_or_driver_one_sentence_says_what_to_install(nvml_answers, monkeypatch):
    nvml_answers("quiet", init={"error": 9})
    with (
        pytest.raises(DeviceError, match=r"^NVIDIA's driver does not answer \(Driver Not Loaded\); install it"),
        nvml(),
    ):
        pass
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with (
        pytest.raises(DeviceError, match=r"^nvidia-ml-py is not installed, .*; pip install 'pullback\[gpu\]'$"),
        nvml(),
    ):
        pass
