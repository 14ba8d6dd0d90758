"""Isolation of jobs from their agent, in three levels.

none      builds and measured code run as the agent's user, who can read its token
user      they run as another user of this machine, who can read neither token nor spool nor the lease, and end with the job; with limits
          on what they take
sandbox   they run where nothing of the machine is but what a view shows them (bubblewrap.py), without network but for
          a proxy of the agent while they build (proxy.py); with the same limits. As another user too, where the agent is root's

A level is tried before the agent enrols, with the very command that a job gets.
"""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Literal

from pullback_runners.errors import UsageError
from pullback_runners.sandbox.bubblewrap import View, bubblewrap_command
from pullback_runners.sandbox.groups import Group, Groups, groups_of_agent
from pullback_runners.sandbox.limits import Limits, Watch
from pullback_runners.sandbox.proxy import BuildNetwork
from pullback_runners.sandbox.store import Store, own_folder, secret_key
from pullback_runners.sandbox.users import BuildUser, held_user

Level = Literal["none", "user", "sandbox"]
_END_S = 5.0
_TIMEOUT_S = 60
_TRIAL = """
import json
import os
import socket
import sys

import numpy
import pullback_runners.runs

asked = json.loads(sys.argv[1])
for folder in asked["readable"]:
    try:
        os.listdir(folder)
    except OSError as error:
        sys.exit(f"it cannot read {folder}")
for secret in asked["secret"]:
    try:
        os.listdir(secret) if os.path.isdir(secret) else open(secret).close()
    except OSError:
        continue
    sys.exit(f"it can read {secret}")
if asked["is_sandbox"] and [name for _, name in socket.if_nameindex() if name != "lo"]:
    sys.exit("it has a network")
"""


@dataclass(frozen=True)
class Confined:
    """A process of a job, with all that it starts."""

    process: "subprocess.Popen[bytes]"
    watch: Watch | None = None
    user: BuildUser | None = None
    first: int | None = None
    """A descriptor of the first process of its sandbox, which is the last one to end."""
    group: Group | None = None

    def trouble(self) -> str | None:
        """The reason why it has to end, by what it takes; None where it may go on."""
        watched = None if self.watch is None else self.watch.trouble()
        return watched or (None if self.group is None else self.group.trouble())

    def end(self) -> None:
        """End it, and wait until nothing of it is left."""
        if self.first is not None and self.process.poll() is None:
            self.process.kill()  # the kernel ends the rest of the sandbox
        self.process.wait()
        if self.first is not None:
            select.select([self.first], [], [], _END_S)
            os.close(self.first)
        if self.group is not None:
            self.group.end()
        if self.user is not None:
            self.user.end_all()


@dataclass(frozen=True)
class Isolation:
    """The level that an agent's jobs run in, with what it needs."""

    level: Level = "none"
    user: BuildUser | None = None
    limits: Limits = field(default_factory=Limits)
    builds: BuildNetwork | None = None
    """The part of the network that builds in a sandbox reach; none of it else."""
    groups: Groups | None = None
    """Control groups of jobs, where the machine lets this agent make some."""

    def labels(self) -> dict[str, str]:
        """Labels of an agent, by which jobs choose and people see how its jobs are isolated."""
        if self.level == "none":
            return {}
        kernel = "none" if self.groups is None else "limits" if self.groups.is_limited else "ends"
        return {"isolation": self.level, "cgroup": kernel}

    @property
    def runs_as(self) -> str:
        """The name of the user of jobs, for people."""
        return "the agent's user" if self.user is None else self.user.name

    def cache(self, data: Path, project: str | None, *, trusted: bool = True) -> Path | Store:
        """The environments and builds that were kept: what one user or, in sandboxes, one project wrote is not run by another.

        In sandboxes it is a store that the agent alone writes. A job of a fork is shown the project's, too, and what is kept of it goes into one of its own.
        """
        if self.level != "sandbox":
            return data / ("cache" if self.user is None else f"cache-{self.user.name}")
        folder = data / f"sandboxed-{self.runs_as if self.user else 'own'}"
        own = folder / sha256((project or "").encode()).hexdigest()[:16]
        roots = [own] if trusted else [own, own.with_name(f"{own.name}-forks")]
        for each in (folder, *roots):
            own_folder(each, None if self.user is None else self.user.gid)
        return Store(own, roots, secret_key(data))

    def give(self, folder: Path) -> None:
        """Make a folder that jobs may write, if it is not there."""
        if self.user is None:
            folder.mkdir(mode=0o700, exist_ok=True)
        else:
            self.user.give(folder)

    def parent_pid(self) -> int:
        """The id of the parent that a process of a job sees."""
        return 1 if self.level == "sandbox" else os.getpid()

    def start(
        self,
        command: Sequence[str],
        view: View,
        *,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        **streams: "IO[bytes] | int | None",
    ) -> Confined:
        """Start a process of a job."""
        is_sandbox = self.level == "sandbox"
        told, info_fd = os.pipe()
        in_group: AbstractContextManager[Group | None] = (
            nullcontext() if self.groups is None else self.groups.begin(self.limits)
        )
        with os.fdopen(told, "rb") as answer:
            try:
                with in_group as group:
                    process = self._popen(
                        command, view, environment, [*pass_fds, *([info_fd] if is_sandbox else [])], info_fd, streams
                    )
            finally:
                os.close(info_fd)
            about = answer.read()  # empty where there is no sandbox, or none came to be
        if self.level == "none":
            return Confined(process)
        first = os.pidfd_open(json.loads(about)["child-pid"]) if about else None
        return Confined(process, Watch(self.limits, process.pid, view.work), self.user, first, group)

    def _popen(
        self,
        command: Sequence[str],
        view: View,
        environment: Mapping[str, str],
        pass_fds: Sequence[int],
        info_fd: int,
        streams: "Mapping[str, IO[bytes] | int | None]",
    ) -> "subprocess.Popen[bytes]":
        in_front = bubblewrap_command(_bubblewrap(), view, info_fd) if self.level == "sandbox" else ()
        started: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]  # noqa: S603 - our own module
            [*in_front, *command],
            cwd=view.work,
            env=dict(environment),
            pass_fds=pass_fds,
            start_new_session=True,
            **({} if self.user is None else self.user.process()),
            **streams,
        )
        return started


@contextmanager
def isolated(
    data: Path,
    level: Level,
    build_user: str | None = None,
    *,
    readable: Sequence[Path] = (),
    secret: Sequence[Path] = (),
    limits: Limits | None = None,
    builds: BuildNetwork | None = None,
) -> Iterator[Isolation]:
    """The isolation of an agent's jobs, tried; UsageError says why a level cannot be had here, and the remedy.

    Tried are that a job can run, can read the repositories that are folders, and cannot read what is secret.
    """
    if level == "none":
        yield Isolation()
        return
    if level == "sandbox":
        _bubblewrap()
    if build_user is None and (level == "user" or os.geteuid() == 0):
        raise UsageError(
            f"--isolation {level}: name the user of jobs, who need not exist if it is a number (--build-user 61234)"
        )
    with nullcontext() if build_user is None else held_user(build_user) as user:
        isolation = Isolation(level, user, limits or Limits(), builds, groups_of_agent(data))
        for folder, mode in (("", 0o711), ("jobs", 0o711), ("mirrors", 0o750), ("spool", 0o700)):
            (data / folder).mkdir(exist_ok=True)
            (data / folder).chmod(mode)
        if user is not None:
            os.chown(data / "mirrors", -1, user.gid)
        found = isolation.cache(data, None)
        cache = found if isinstance(found, Path) else found.place
        if level != "sandbox":
            isolation.give(cache)
        _try(
            isolation,
            cache,
            [data / "mirrors", *readable],
            [data / name for name in ("token", "cache.key", "spool")] + [*secret],
        )
        yield isolation


def _bubblewrap() -> str:
    program = shutil.which("bwrap")
    if program is None:
        raise UsageError(
            "--isolation sandbox: bubblewrap is not installed; install it (apt-get install bubblewrap), or start the agent with another "
            "level of isolation"
        )
    return program


def _try(isolation: Isolation, cache: Path, readable: Sequence[Path], secret: Sequence[Path]) -> None:
    is_sandbox = isolation.level == "sandbox"
    option = "--isolation sandbox" if is_sandbox else f"--build-user {isolation.runs_as}"
    asked = {
        "readable": [str(each) for each in (cache, *readable)],
        "secret": [str(each) for each in secret if each.exists()],
        "is_sandbox": is_sandbox,
    }
    try:
        confined = isolation.start(
            [sys.executable, "-P", "-c", _TRIAL, json.dumps(asked)],
            View(cache, readable),
            environment=os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _, written = confined.process.communicate(timeout=_TIMEOUT_S)
        finally:
            confined.process.kill()
            confined.end()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"{option}: it cannot run {sys.executable} ({error}); install Pullback and Python where it may"
        ) from error
    status = confined.process.returncode
    if status != 0:
        said = written.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {status}"]
        remedy = (
            "containers and some systems forbid the namespaces that bubblewrap needs (kernel.apparmor_restrict_unprivileged_userns, "
            "seccomp): allow them, or start the agent with another level of isolation"
            if said[0].startswith("bwrap: ")
            else "Pullback, repositories and --data have to lie where it may read, the token where it may not"
        )
        raise UsageError(f"{option}: {said[0]}; {remedy}")
