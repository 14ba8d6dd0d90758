"""Isolation of jobs from their agent, in three levels.

none      builds and measured code run as the agent's user, who can read its token
user      they run as another user of this machine, who can read neither token nor spool nor lease, and end with the job; their
          resources are limited
sandbox   they see only the listed paths of the machine (bubblewrap.py), and no network except a proxy of the agent during builds
          (proxy.py); with the same limits. If the agent runs as root, as another user too

A level is tested before the agent enrols, with the same command as a job.
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
from pullback_runners.sandbox.bubblewrap import SandboxView, bubblewrap_command
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
class ConfinedProcess:
    """A process of a job, with all processes that it starts."""

    process: "subprocess.Popen[bytes]"
    watch: Watch | None = None
    user: BuildUser | None = None
    first: int | None = None
    """A pidfd of the first process of its sandbox, which ends last."""
    group: Group | None = None

    def trouble(self) -> str | None:
        """The limit that it exceeded, as a sentence; None if it may continue."""
        watched = None if self.watch is None else self.watch.trouble()
        return watched or (None if self.group is None else self.group.trouble())

    def end(self) -> None:
        """End it, and wait until none of its processes is left."""
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
    """The level of isolation of an agent's jobs, with its resources."""

    level: Level = "none"
    user: BuildUser | None = None
    limits: Limits = field(default_factory=Limits)
    builds: BuildNetwork | None = None
    """The hosts that builds in a sandbox can reach; None for no network."""
    groups: Groups | None = None
    """The control groups of jobs; None if the agent cannot make any on this machine."""

    def labels(self) -> dict[str, str]:
        """Labels of the agent that state how its jobs are isolated; jobs can require them."""
        if self.level == "none":
            return {}
        kernel = "none" if self.groups is None else "limits" if self.groups.is_limited else "ends"
        return {"isolation": self.level, "cgroup": kernel}

    @property
    def runs_as(self) -> str:
        """The name of the user that runs jobs, for messages."""
        return "the agent's user" if self.user is None else self.user.name

    def cache(self, data: Path, project: str | None, *, trusted: bool = True) -> Path | Store:
        """The cache of environments and builds. Each user, and in sandboxes each project, has its own.

        In sandboxes it is a store that only the agent writes. A job of a fork can read the store of the project, and adds to one of its own.
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
        """Make a folder that jobs may write, if it does not exist."""
        if self.user is None:
            folder.mkdir(mode=0o700, exist_ok=True)
        else:
            self.user.give(folder)

    def parent_pid(self) -> int:
        """The parent process id that a process of a job sees."""
        return 1 if self.level == "sandbox" else os.getpid()

    def start(
        self,
        command: Sequence[str],
        view: SandboxView,
        *,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        **streams: "IO[bytes] | int | None",
    ) -> ConfinedProcess:
        """Start a process of a job."""
        is_sandbox = self.level == "sandbox"
        read_fd, info_fd = os.pipe()
        in_group: AbstractContextManager[Group | None] = (
            nullcontext() if self.groups is None else self.groups.begin(self.limits)
        )
        with os.fdopen(read_fd, "rb") as answer:
            try:
                with in_group as group:
                    process = self._popen(
                        command, view, environment, [*pass_fds, *([info_fd] if is_sandbox else [])], info_fd, streams
                    )
            finally:
                os.close(info_fd)
            about = answer.read()  # empty if there is no sandbox, or it did not start
        if self.level == "none":
            return ConfinedProcess(process)
        first = os.pidfd_open(json.loads(about)["child-pid"]) if about else None
        return ConfinedProcess(process, Watch(self.limits, process.pid, view.work), self.user, first, group)

    def _popen(
        self,
        command: Sequence[str],
        view: SandboxView,
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
    """The tested isolation of an agent's jobs; UsageError says why a level does not work here, and the remedy.

    The test: a job can run, can read the repositories that are folders, and cannot read secrets.
    """
    if level == "none":
        yield Isolation()
        return
    if level == "sandbox":
        _bubblewrap()
    if build_user is None and (level == "user" or os.geteuid() == 0):
        raise UsageError(
            f"--isolation {level}: name the user that runs jobs; a number needs no such user on the machine (--build-user 61234)"
        )
    with nullcontext() if build_user is None else held_user(build_user) as user:
        isolation = Isolation(level, user, limits or Limits(), builds, groups_of_agent(data))
        for folder, mode in (("", 0o711), ("jobs", 0o711), ("mirrors", 0o750), ("spool", 0o700)):
            (data / folder).mkdir(exist_ok=True)
            (data / folder).chmod(mode)
        if user is not None:
            os.chown(data / "mirrors", -1, user.gid)
        result = isolation.cache(data, None)
        cache = result if isinstance(result, Path) else result.place
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
    request = {
        "readable": [str(each) for each in (cache, *readable)],
        "secret": [str(each) for each in secret if each.exists()],
        "is_sandbox": is_sandbox,
    }
    try:
        confined = isolation.start(
            [sys.executable, "-P", "-c", _TRIAL, json.dumps(request)],
            SandboxView(cache, readable),
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
            f"{option}: {sys.executable} cannot be started ({error}); install Pullback and Python where the jobs can run them"
        ) from error
    status = confined.process.returncode
    if status != 0:
        message = written.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {status}"]
        remedy = (
            "containers and some systems forbid the namespaces that bubblewrap needs (kernel.apparmor_restrict_unprivileged_userns, "
            "seccomp): allow them, or start the agent with another level of isolation"
            if message[0].startswith("bwrap: ")
            else "put Pullback, repositories and --data where jobs can read them, and the token where they cannot"
        )
        raise UsageError(f"{option}: {message[0]}; {remedy}")
