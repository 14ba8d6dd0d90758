"""The command of bubblewrap (bwrap(1)) that gives a process a view of the machine.

It has its own namespaces for users, mounts, processes, IPC, host name and network. Everything is read-only except the writable folders of
the view; `/tmp` and `/dev/shm` are in memory, of limited size. Programs gain no privileges: there are no capabilities, set-user-ID has no
effect, and no further user namespaces can be made. The sandbox ends with the process that started it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pullback_runners.sandbox.readable_paths import python_places, system_places, without_inner

_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True)
class SandboxView:
    """The files and devices that one process can reach."""

    work: Path
    """The writable working directory, HOME and TMPDIR of the sandbox."""
    readable: Sequence[Path] = ()
    writable: Mapping[Path, Path] = field(default_factory=dict)
    """Folders by their path inside the sandbox."""
    kept: Sequence[tuple[Path, Path]] = ()
    """Read-only files and folders within those, each with its path inside the sandbox."""
    devices: Sequence[Path] = ()
    """Device nodes, beside those that every process has."""


def bubblewrap_command(program: str, view: SandboxView, info_fd: int) -> list[str]:
    """The command prefix that runs a program with a view; bwrap writes the id of the sandbox's first process to `info_fd`."""
    return [
        *(program, "--die-with-parent", "--new-session", "--info-fd", str(info_fd)),
        *(
            "--unshare-user",
            "--disable-userns",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-net",
            "--unshare-cgroup-try",
        ),
        *("--cap-drop", "ALL"),
        *_mounts(view),
        *("--chdir", str(view.work), "--"),
    ]


def _mounts(view: SandboxView) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    for node in view.devices:
        yield from ("--dev-bind", str(node), str(node))
    for folder in ("/dev/shm", "/tmp"):  # noqa: S108 - of the sandbox
        yield from ("--perms", "1777", "--size", str(_MEMORY_BYTES), "--tmpfs", folder)
    for path in without_inner([*system_places(), *python_places(), *view.readable]):
        if path.is_symlink() and len(path.parts) == 2:  # /lib, of a system that has merged it into /usr
            yield from ("--symlink", str(path.readlink()), str(path))
        else:
            yield from ("--ro-bind", os.path.realpath(path), str(path))
    for name, path in (*view.writable.items(), (view.work, view.work)):
        yield from ("--bind", str(path), str(name))
    for path, name in view.kept:
        yield from ("--ro-bind", str(path), str(name))
    yield from ("--remount-ro", "/dev", "--remount-ro", "/")
