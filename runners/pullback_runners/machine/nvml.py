"""Devices as NVIDIA's management library (NVML) knows them: by UUID, slices of MIG as devices, with clocks, throttling, processes.

The library comes with the driver, its binding (nvidia-ml-py) with the extra `gpu`; it is imported when a device is asked for.
Asking starts nothing on a device. `nvidia.py` asks the driver's tool instead, for what is told of every machine.
"""

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psutil

_NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND, _NO_FUNCTION = 3, 4, 6, 13  # nvml.h, nvmlReturn_t
_CANNOT_BE_TOLD = (_NOT_SUPPORTED, _NO_PERMISSION, _NO_FUNCTION)  # the last of a driver older than the binding

_SM, _MEMORY = 1, 2  # nvmlClockType_t

_THROTTLING = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
"""Bits of nvmlClocksThrottleReason* that make clocks slower under load. An idle device and clocks that somebody has set are none."""

_XID_EVENTS = 0x08  # nvmlEventTypeXidCriticalError
_XIDS_OF_HARDWARE = frozenset({48, 62, 64, 74, 79, 94, 95, 119, 120, 140})
"""Errors of memory, links, firmware and the bus (docs.nvidia.com/deploy/xid-errors). Others, such as 13 and 31, are made by programs."""


class DeviceError(Exception):
    """A device that cannot be used, in one sentence."""


class LostDeviceError(DeviceError):
    """A device that the driver has lost: nothing can be measured there before somebody has looked after the machine."""


@dataclass(frozen=True)
class Device:
    """A GPU, or a slice of one."""

    uuid: str
    name: str
    memory_bytes: int
    whole: str
    """UUID of the GPU that it is, or that it is a slice of."""

    @property
    def is_slice(self) -> bool:
        """True of a slice of MIG."""
        return self.uuid != self.whole

    def __str__(self) -> str:
        return f"{self.name} ({self.uuid})"


@dataclass(frozen=True)
class Clocks:
    """The clocks of a device at a moment, and why they are slower than they could be. A fact that the driver does not tell is None."""

    sm_mhz: int | None
    memory_mhz: int | None
    throttled: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeviceProcess:
    """A process that computes on a device."""

    pid: int
    name: str
    used_bytes: int | None = field(default=None, compare=False)
    """Memory that it holds there; None where the driver does not tell."""

    def __str__(self) -> str:
        return f"{self.name}, process {self.pid}"


@contextmanager
def nvml() -> Iterator["Nvml"]:
    """The library while the block lasts; DeviceError says why there is none."""
    try:
        binding = importlib.import_module("pynvml")
    except ImportError as error:
        raise DeviceError(
            "nvidia-ml-py is not installed, but needed for devices, their clocks and processes; pip install 'pullback[gpu]'"
        ) from error
    try:
        binding.nvmlInit()
    except binding.NVMLError as error:
        raise DeviceError(f"NVIDIA's driver does not answer ({error}); install it, or load it again") from error
    try:
        yield Nvml(binding)
    finally:
        with suppress(binding.NVMLError):
            binding.nvmlShutdown()


class Nvml:
    """The library, initialized."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding
        self._events: Any = None
        self._watched: str | None = None

    def devices(self) -> list[Device]:
        """All devices in the order of the bus, without those of which a sandbox lacks the device node.

        Of a GPU that is divided its slices, since no program can use it as a whole.
        """
        results = []
        with self._answered("a device"):
            for place in range(self._binding.nvmlDeviceGetCount()):
                handle = self._told(self._binding.nvmlDeviceGetHandleByIndex, place, nothing=[_NO_PERMISSION])
                if handle is None:
                    continue
                whole = self._binding.nvmlDeviceGetUUID(handle)
                parts = list(self._slices(handle)) if self._is_divided(handle) else [handle]
                results += [self._described(part, whole) for part in parts]
        return results

    def named(self, visible: str | None) -> Device:
        """The first device that CUDA_VISIBLE_DEVICES names: by UUID or its beginning, or by its place on the bus. None names the first.

        A GPU that is divided stands for its first slice, as it does for CUDA.
        """
        devices = self.devices()
        if not devices:
            raise DeviceError("the driver lists no device")
        if visible is None:
            return devices[0]
        first = visible.partition(",")[0].strip()
        wholes = list(dict.fromkeys(each.whole for each in devices))
        if first.isdigit() and int(first) < len(wholes):
            first = wholes[int(first)]
        fitting = [each for each in devices if first and (each.uuid.startswith(first) or each.whole.startswith(first))]
        if not fitting:
            listed = ", ".join(map(str, devices))
            raise DeviceError(
                f"CUDA_VISIBLE_DEVICES={visible} names no device; there are {listed}: write the UUID of one"
            )
        return fitting[0]

    def versions(self) -> tuple[str, str]:
        """Version of the driver, and the newest CUDA that it knows."""
        with self._answered("a device"):
            cuda = int(self._binding.nvmlSystemGetCudaDriverVersion())
            return str(self._binding.nvmlSystemGetDriverVersion()), f"{cuda // 1000}.{cuda % 1000 // 10}"

    def clocks(self, device: Device) -> Clocks:
        """Clocks of the GPU that the device is on, and why they are slow. LostDeviceError if the driver does not answer for it."""
        with self._answered(str(device)):
            handle = self._binding.nvmlDeviceGetHandleByUUID(device.whole)
            bits = self._told(self._binding.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
            return Clocks(
                self._told(self._binding.nvmlDeviceGetClockInfo, handle, _SM),
                self._told(self._binding.nvmlDeviceGetClockInfo, handle, _MEMORY),
                tuple(reason for bit, reason in _THROTTLING.items() if bits & bit),
            )

    def processes(self, device: Device) -> list[DeviceProcess]:
        """The processes that compute on the device, of whomever."""
        with self._answered(str(device)):
            handle = self._binding.nvmlDeviceGetHandleByUUID(device.uuid)
            listed = self._told(self._binding.nvmlDeviceGetComputeRunningProcesses, handle) or []
        return [DeviceProcess(each.pid, _name_of(each.pid), each.usedGpuMemory) for each in listed]

    def free_bytes(self, device: Device) -> int:
        """The memory of the device that nobody holds."""
        with self._answered(str(device)):
            handle = self._binding.nvmlDeviceGetHandleByUUID(device.uuid)
            return int(self._binding.nvmlDeviceGetMemoryInfo(handle).free)

    def numbers(self, device: Device) -> tuple[int, tuple[int, int] | None]:
        """The minor number of the GPU, and GPU instance and compute instance of a slice: its device nodes are named by these."""
        with self._answered(str(device)):
            handle = self._binding.nvmlDeviceGetHandleByUUID(device.uuid)
            whole = self._binding.nvmlDeviceGetHandleByUUID(device.whole)
            gpu = self._told(self._binding.nvmlDeviceGetMinorNumber, whole)
            if gpu is None:
                raise DeviceError(f"the driver does not report which device node {device} has, which a sandbox needs")
            if not device.is_slice:
                return gpu, None
            instance = self._binding.nvmlDeviceGetGpuInstanceId(handle)
            return gpu, (instance, self._binding.nvmlDeviceGetComputeInstanceId(handle))

    def watch(self, device: Device) -> None:
        """Note errors of hardware from now on, where the driver tells of them."""
        with suppress(self._binding.NVMLError):
            events = self._binding.nvmlEventSetCreate()
            handle = self._binding.nvmlDeviceGetHandleByUUID(device.whole)
            self._binding.nvmlDeviceRegisterEvents(handle, _XID_EVENTS, events)
            self._events, self._watched = events, str(device)

    def refuse_broken(self) -> None:
        """LostDeviceError if the device that is watched had an error of hardware."""
        while self._events is not None:
            try:
                xid = int(self._binding.nvmlEventSetWait_v2(self._events, 0).eventData)
            except self._binding.NVMLError:  # none has come
                return
            if xid in _XIDS_OF_HARDWARE:
                raise LostDeviceError(_lost(str(self._watched), f"Xid {xid}"))

    def _is_divided(self, handle: Any) -> bool:
        mode = self._told(self._binding.nvmlDeviceGetMigMode, handle)
        return mode is not None and bool(mode[0])

    def _slices(self, handle: Any) -> Iterator[Any]:
        for place in range(self._binding.nvmlDeviceGetMaxMigDeviceCount(handle)):
            part = self._told(
                self._binding.nvmlDeviceGetMigDeviceHandleByIndex, handle, place, nothing=(*_CANNOT_BE_TOLD, _NOT_FOUND)
            )
            if part is not None:
                yield part

    def _described(self, handle: Any, whole: str) -> Device:
        return Device(
            uuid=self._binding.nvmlDeviceGetUUID(handle),
            name=self._binding.nvmlDeviceGetName(handle),
            memory_bytes=int(self._binding.nvmlDeviceGetMemoryInfo(handle).total),
            whole=whole,
        )

    def _told(self, ask: Any, *of: Any, nothing: Sequence[int] = _CANNOT_BE_TOLD) -> Any:
        """An answer, or None where the device does not have it or does not tell this user."""
        try:
            return ask(*of)
        except self._binding.NVMLError as error:
            if error.value in nothing:
                return None
            raise

    @contextmanager
    def _answered(self, of: str) -> Iterator[None]:
        """LostDeviceError if the driver gives no answer: for a device that was there it has one as long as that works."""
        try:
            yield
        except self._binding.NVMLError as error:
            raise LostDeviceError(_lost(of, str(error))) from error


def _lost(device: str, why: str) -> str:
    return f"the driver has lost {device} ({why}): read NVRM and Xid in the kernel's log (dmesg), then reset the device or start the machine again"


def _name_of(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:  # of another namespace, or ended
        return "a process without a name here"
