"""Quality of a run: which limits the machine passed while the run was timed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from pullback_runners.machine.activity import Activity
from pullback_runners.machine.preflight import Preflight

MOST_OTHERS_CPUS = 0.2
"""CPUs that other processes use on average. An idle system uses 0.01 to 0.05; the kernel counts by ticks, which are off by
as much."""

MOST_STEAL = 0.02
MOST_WAITING = 0.05
"""Share of the timed slices' time that processes waited for their CPU. On an idle machine with two CPUs it is 0.001."""

LEAST_FREE_DISK_BYTES = 2**30

BUSY: Final = "contaminated"
"""The word for a busy machine in the file of a report, and nowhere else: a service of the release before, with which processes are
restarted on the way back while agents go on (docs/operating.md), refuses `busy`. A service of this release stores and answers `busy`."""


@dataclass(frozen=True)
class PassedLimit:
    """A limit that was passed."""

    name: str
    limit: float
    measured: float
    sentence: str

    def document(self) -> dict[str, Any]:
        """The limit as a report writes it."""
        return asdict(self)


def judge_quality(
    preflight: Preflight, activity: Activity, waiting: float | None, seen: Sequence[PassedLimit] = ()
) -> tuple[str, list[PassedLimit]]:
    """Return the quality of a run, and each limit that was passed.

    `waiting` is the share of the timed slices' time that processes waited for their CPU, None where no slice was timed.
    `seen` are limits that were passed on a device, which names the processes that the preflight counts.
    """
    passed = []
    if activity.others_cpus > MOST_OTHERS_CPUS:
        most = f", most of it {activity.busiest}" if activity.busiest else ""
        used = f"other processes used {activity.others_cpus:.2f} CPUs{most}; the limit is {MOST_OTHERS_CPUS:g}"
        passed.append(PassedLimit("others_cpus", MOST_OTHERS_CPUS, activity.others_cpus, used))
    if activity.steal is not None and activity.steal > MOST_STEAL:
        stolen = f"the hypervisor took {activity.steal:.0%} of the CPU time; the limit is {MOST_STEAL:.0%}"
        passed.append(PassedLimit("steal", MOST_STEAL, activity.steal, stolen))
    if waiting is not None and waiting > MOST_WAITING:
        waited = f"the timed processes waited {waiting:.0%} of the time for their CPU; the limit is {MOST_WAITING:.0%}"
        passed.append(PassedLimit("waiting", MOST_WAITING, round(waiting, 4), waited))
    if preflight.free_disk_bytes < LEAST_FREE_DISK_BYTES:
        free = f"only {preflight.free_disk_bytes / 2**20:.0f} MiB of disk were free; the limit is 1024"
        passed.append(PassedLimit("free_disk_bytes", LEAST_FREE_DISK_BYTES, preflight.free_disk_bytes, free))
    passed += seen
    if preflight.gpu_processes and all(each.name != "gpu_processes" for each in seen):
        others = f"{preflight.gpu_processes} other processes were computing on the GPU; the limit is 0"
        passed.append(PassedLimit("gpu_processes", 0, preflight.gpu_processes, others))
    return (BUSY if passed else "clean"), passed
