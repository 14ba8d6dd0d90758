"""A run while it is measured: its start, the state of the machine, and the part of the report about them."""

import importlib.metadata
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pullback_runners.machine import ActivityWatch, describe_machine, judge_quality, take_preflight
from pullback_runners.measurement.device import MeasuredDevice
from pullback_runners.report.document import FORMAT, VERSION


class Run:
    """A run, watched from its creation until `head`."""

    def __init__(self) -> None:
        self._started_at, self.started = datetime.now(UTC), time.monotonic()
        self.preflight = take_preflight()
        self._watch = ActivityWatch()

    def head(
        self,
        waiting: float | None,
        harness: Mapping[str, Any],
        *,
        device: MeasuredDevice | None = None,
        slices: tuple[int, int] = (0, 0),
        **parts: Any,
    ) -> dict[str, Any]:
        """The report beside what was measured; `waiting` is the share of the time that processes waited for their CPU.

        `slices` are how many were timed on the device, and during how many of them it was throttled.
        """
        if device is not None:
            device.record_other_processes("after")
        seen = [] if device is None else device.limits(*slices)
        quality, passed = judge_quality(self.preflight, self._watch.stop(), waiting, seen)
        return {
            "format": FORMAT,
            "version": VERSION,
            "id": str(uuid.uuid4()),
            "started_at": self._started_at.isoformat(),
            "duration_s": round(time.monotonic() - self.started, 3),
            **parts,
            "machine": describe_machine(device=None if device is None else device.device),
            "harness": {
                "version": importlib.metadata.version("pullback"),
                "quality": quality,
                "contamination": [each.sentence for each in passed],
                "limits": [each.document() for each in passed],
                "preflight": self.preflight.document(),
                **({} if device is None else {"device": device.document()}),
                **harness,
            },
        }
