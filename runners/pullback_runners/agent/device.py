"""The device of an agent: held for each job, looked at while a job is measured, and given up when the driver has lost it.

The agent sees it from outside of a job's sandbox: processes of everybody, and errors that no code of a commit can make up.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pullback_runners.agent.errors import JobFailedError, PermanentError
from pullback_runners.errors import UsageError
from pullback_runners.machine.device_lock import HeldDeviceError, device_lock
from pullback_runners.machine.nvml import Device, DeviceError, LostDeviceError, nvml
from pullback_runners.machine.quality import BUSY
from pullback_runners.measurement.device import VISIBLE, MeasuredDevice
from pullback_runners.peers.devices import why_no_device
from pullback_runners.sandbox.readable_paths import device_nodes
from pullback_runners.variants import refuse_unknown_device

_CHECK_EVERY_S = 5.0


class AgentDevice:
    """The device that an agent measures on."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._lost: str | None = None

    @classmethod
    def found(cls, name: str) -> "AgentDevice":
        """The device, which all processes of the agent see alone from now on; PermanentError says why there is none."""
        try:
            refuse_unknown_device(name)
            with nvml() as library:
                device = library.named(os.environ.get(VISIBLE))
        except (UsageError, DeviceError) as error:
            raise PermanentError(f"--label device={name}: {error}") from error
        os.environ[VISIBLE] = device.uuid
        try:
            with device_lock(device.uuid):
                reason = why_no_device(name)
        except HeldDeviceError:  # who measures there would be disturbed; each job looks again
            reason = None
        if reason is not None:
            raise PermanentError(f"--label device={name}: {reason}")
        return cls(device)

    def trouble(self) -> str | None:
        """The reason to claim no job, or None: the device is lost, or another process measures there."""
        if self._lost is not None:
            return self._lost
        try:
            with nvml() as library:
                library.clocks(self.device)
            with device_lock(self.device.uuid):
                return None
        except (DeviceError, HeldDeviceError) as error:
            return str(error)

    @contextmanager
    def held(self) -> Iterator["JobDevice"]:
        """Hold it for a job. Whatever a job failed of while the device was lost is nobody's failure."""
        try:
            with device_lock(self.device.uuid), nvml() as library:
                of_job = JobDevice(MeasuredDevice(library, self.device))
                try:
                    yield of_job
                except Exception:
                    of_job.measured.refuse_lost()
                    raise
                of_job.measured.refuse_lost()
                of_job.measured.record_other_processes("after")
        except LostDeviceError as error:
            self._lost = f"{error}, and then this agent"
            raise JobFailedError("infra", str(error), retryable=True) from error
        except (DeviceError, HeldDeviceError) as error:
            raise JobFailedError("infra", str(error), retryable=True) from error


class JobDevice:
    """The device while a job is measured on it."""

    def __init__(self, measured: MeasuredDevice) -> None:
        self.measured = measured
        self._next_check = 0.0
        measured.record_other_processes("before")

    def nodes(self) -> list[Path]:
        """The device nodes that the job opens, and no others."""
        return device_nodes(*self.measured.numbers())

    def watching(self, stops: Callable[[], str | None]) -> Callable[[], str | None]:
        """The same question, which is asked often, with a look at the device now and then; LostDeviceError ends the job."""

        def watched() -> str | None:
            if time.monotonic() >= self._next_check:
                self._next_check = time.monotonic() + _CHECK_EVERY_S
                self.measured.refuse_lost()
                self.measured.record_other_processes("between", beside_ours=True)
            return stops()

        return watched

    def marked(self, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """The report with the limits that its own process, in a sandbox, could not see to be passed."""
        harness = report["harness"]
        known = {limit["name"] for limit in harness["limits"]}
        passed = [each for each in self.measured.limits() if each.name not in known]
        if not passed:
            return report
        marked = {
            "quality": BUSY,
            "contamination": [*harness["contamination"], *(each.sentence for each in passed)],
            "limits": [*harness["limits"], *(each.document() for each in passed)],
        }
        return {**report, "harness": {**harness, **marked}}
