"""A control group (cgroup v2) for each job, if the agent can make groups on this machine, which is tested.

One write (`cgroup.kill`) ends all processes of a group, however they were started. With the controllers `memory` and `pids` the kernel also
limits their total. systemd provides both with `Delegate=yes`; containers and machines with cgroup v1 mostly do not.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pullback_runners.sandbox.limits import GIB, Limits

_CONTROLLERS = ("memory", "pids")
_END_S = 5.0


@dataclass(frozen=True)
class Group:
    """The group of one job."""

    place: Path
    limits: Limits

    def trouble(self) -> str | None:
        """The reason why the kernel ended processes of the group; None if it did not."""
        with suppress(OSError, ValueError):
            events = dict(line.split() for line in (self.place / "memory.events").read_text().splitlines())
            if int(events.get("oom_kill", 0)):
                return f"the job took more memory than its limit of {self.limits.memory_bytes / GIB:.1f} GiB, and was ended by the kernel"
        return None

    def end(self) -> None:
        """End all processes of the group, wait until none is left, and remove it."""
        with suppress(OSError):
            (self.place / "cgroup.kill").write_text("1")
        deadline = time.monotonic() + _END_S
        while True:
            try:
                self.place.rmdir()  # refused while a process is in it
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.01)
            else:
                return


@dataclass(frozen=True)
class Groups:
    """The parent group in which an agent makes groups for its jobs."""

    own: Path
    """The group of the agent itself."""
    parent: Path
    name: str
    is_limited: bool
    """True if the kernel limits the memory and the number of processes of a group."""

    @contextmanager
    def begin(self, limits: Limits) -> Iterator[Group]:
        """A new group; the agent itself is in it during the block, so that processes it starts are too."""
        group = Group(self.parent / self.name, limits)
        group.end()  # left by an agent that was killed
        group.place.mkdir()
        if self.is_limited:
            for file, value in (
                ("memory.max", limits.memory_bytes),
                ("memory.oom.group", 1),
                ("pids.max", limits.processes),
            ):
                (group.place / file).write_text(str(value))
            with suppress(OSError):  # a kernel without swap accounting
                (group.place / "memory.swap.max").write_text("0")
        _enter(group.place)
        try:
            yield group
        finally:
            _enter(self.own)


def groups_of_agent(data: Path) -> Groups | None:
    """The control groups of an agent, tested by making one; None if it cannot make any."""
    base = _group_of_this_process()
    if base is None or not os.access(base / "cgroup.procs", os.W_OK):
        return None
    name = f"pullback-job-{sha256(str(data).encode()).hexdigest()[:12]}"
    own, is_limited = base, False
    try:
        has_all = set(_CONTROLLERS) <= set((base / "cgroup.controllers").read_text().split())
        if has_all:
            own = base / name.replace("job", "agent")  # a group that limits others holds no process itself
            own.mkdir(exist_ok=True)
            _enter(own)
            with suppress(OSError):
                (base / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in _CONTROLLERS))
                is_limited = True
        groups = Groups(own, base, name, is_limited)
        with groups.begin(Limits()) as group:
            pass
        is_ended = (group.place / "cgroup.kill").exists()
        group.end()
    except OSError:
        return None
    return groups if is_ended else None


def _group_of_this_process() -> Path | None:
    with suppress(OSError):
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
        results = [Path(words[1]) for words in mounts if words[2] == "cgroup2"]
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        names = [line.removeprefix("0::").strip("/") for line in lines if line.startswith("0::")]
        if results and names:
            return results[0] / names[0]
    return None


def _enter(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))
