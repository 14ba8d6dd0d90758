"""The device of a run: found by its UUID, held by its lock, and looked at while it is measured on."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import psutil

from pullback_runners.errors import DeviceMemoryError, UsageError
from pullback_runners.machine.device_lock import HeldDeviceError, device_lock
from pullback_runners.machine.nvml import Clocks, Device, DeviceError, DeviceProcess, Nvml, nvml
from pullback_runners.machine.quality import PassedLimit
from pullback_runners.peers.devices import why_no_device
from pullback_runners.workloads import CPU

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Says which device is measured on, and from then on names it by UUID for all processes of a run."""

MOST_THROTTLED = 0.05
"""Share of slices that were timed while the device was throttled."""


class MeasuredDevice:
    """A device, and what was seen there of others."""

    def __init__(self, library: Nvml, device: Device) -> None:
        self.device = device
        self.driver, self.cuda = library.versions()
        self._library = library
        self._others: dict[DeviceProcess, list[str]] = {}
        library.watch(device)

    def clocks(self) -> Clocks:
        """Its clocks now, and why they are slow; LostDeviceError if the driver has lost it."""
        return self._library.clocks(self.device)

    def numbers(self) -> tuple[int, tuple[int, int] | None]:
        """The numbers that its device nodes are named by; DeviceError if the driver does not tell them."""
        return self._library.numbers(self.device)

    def refuse_lost(self) -> None:
        """LostDeviceError if the driver has lost it, or it had an error of hardware."""
        self._library.refuse_broken()
        self.clocks()

    def record_other_processes(self, when: str, *, beside_ours: bool = False) -> None:
        """Note the processes of others that compute there.

        Beside processes of ours they are told apart by ids. Where none of ours is known by its id, as in some containers, nobody
        can be told apart, and nobody is noted.
        """
        listed = self._library.processes(self.device)
        ours = _own_processes()
        if beside_ours and not any(each.pid in ours for each in listed):
            return
        for each in listed:
            if each.pid not in ours and when not in (moments := self._others.setdefault(each, [])):
                moments.append(when)

    def free_bytes(self) -> int:
        """Its memory that nobody holds."""
        return self._library.free_bytes(self.device)

    def refuse_without_room(self, what: str, needs: Mapping[str, tuple[int, int | None]]) -> None:
        """DeviceMemoryError if processes do not fit together. `needs` has by name the bytes of each, and the peak of its plan if it has one."""
        needed, free = sum(each for each, _ in needs.values()), self.free_bytes()
        if needed <= free:
            return
        named = ", ".join(
            f"{name} {nbytes:,}" + (f" with a plan of {peak:,}" if peak is not None else "")
            for name, (nbytes, peak) in needs.items()
        )
        ours = _own_processes()
        others = [each for each in self._library.processes(self.device) if each.pid not in ours]
        holders = "; ".join(
            f"{each} holds {'some' if each.used_bytes is None else f'{each.used_bytes:,}'}" for each in others
        )
        may_pass = needed <= self.device.memory_bytes
        remedy = "end the process that uses the rest" if may_pass else "compare smaller sizes, or on a larger device"
        raise DeviceMemoryError(
            f"{what}: the processes that take turns on {self.device} need {needed:,} bytes together ({named}), and {free:,} of "
            f"{self.device.memory_bytes:,} are free ({holders or 'no other process is known there'}); {remedy}",
            may_pass=may_pass,
        )

    def limits(self, slices: int = 0, throttled: int = 0) -> list[PassedLimit]:
        """The limits that were passed there: of so many timed slices so many were throttled."""
        passed = []
        if self._others:
            named = "; ".join(f"{each} ({', '.join(moments)})" for each, moments in self._others.items())
            sentence = f"others computed on {self.device}: {named}; the limit is 0"
            passed.append(PassedLimit("gpu_processes", 0, len(self._others), sentence))
        if throttled > MOST_THROTTLED * slices:
            share = throttled / slices
            sentence = f"{self.device} was throttled in {share:.0%} of the slices; the limit is {MOST_THROTTLED:.0%}"
            passed.append(PassedLimit("throttled", MOST_THROTTLED, round(share, 4), sentence))
        return passed

    def document(self) -> dict[str, Any]:
        """The device as a report writes it."""
        return {
            "uuid": self.device.uuid,
            "name": self.device.name,
            "memory_bytes": self.device.memory_bytes,
            "slice": self.device.is_slice,
            "driver": self.driver,
            "driver_cuda": self.cuda,
        }


@contextmanager
def measured_device(device: str, *, is_held: bool = False) -> Iterator[MeasuredDevice | None]:
    """The device of a run while it lasts, None of the CPU; UsageError says why it cannot be had, or that it was lost.

    Its lock is taken unless the caller holds it. Processes that are started meanwhile see this device alone.
    """
    if device == CPU:
        yield None
        return
    before = os.environ.get(VISIBLE)
    try:
        with nvml() as library:
            measured = MeasuredDevice(library, library.named(before))
            with nullcontext() if is_held else device_lock(measured.device.uuid):
                os.environ[VISIBLE] = measured.device.uuid
                if (reason := why_no_device(device)) is not None:
                    raise UsageError(f"--device {device}: {reason}")
                measured.record_other_processes("before")
                yield measured
    except (DeviceError, HeldDeviceError) as error:
        raise UsageError(f"--device {device}: {error}") from error
    finally:
        if before is None:
            os.environ.pop(VISIBLE, None)
        else:
            os.environ[VISIBLE] = before


def _own_processes() -> set[int]:
    """Ids of this process and all below it."""
    own = psutil.Process()
    return {own.pid, *(each.pid for each in own.children(recursive=True))}
