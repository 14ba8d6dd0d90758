"""Isolation of jobs from their agent.

none    builds and measured code run as the agent's user, who can read its token
user    they run as another user of this machine, who can read neither token nor spool nor the lease; all processes of that
        user end with a job
"""

import fcntl
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from pullback_runners.agent.errors import PermanentError

_LOCKS = Path("/run")
_TIMEOUT_S = 60
_TRIAL = """
import json
import os
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
"""

_END = "import os, signal; os.kill(-1, signal.SIGKILL)"
"""What ends every process of the user that runs it at once: no fork can outrun it."""

_END_S = 5.0


@dataclass(frozen=True)
class BuildUser:
    """The user that builds and measured code run as, where isolation is `user`."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @classmethod
    def named(cls, name: str) -> Self:
        """The user of a name, or of a number as containers have them; PermanentError says why it cannot be had."""
        if os.geteuid() != 0:
            raise PermanentError(
                f"--build-user {name}: only root can start processes of another user; start the agent as root"
            )
        try:
            found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
            uid, gid, groups = found.pw_uid, found.pw_gid, os.getgrouplist(found.pw_name, found.pw_gid)
        except (KeyError, OverflowError) as error:
            if not name.isdecimal():
                raise PermanentError(
                    f"--build-user {name}: this machine has no such user; `useradd --system {name}` makes it"
                ) from error
            uid, gid, groups = int(name), int(name), []
        if uid == 0:
            raise PermanentError(f"--build-user {name}: it reads everything; name a user that exists for this alone")
        return cls(name, uid, gid, tuple(groups))

    def process(self) -> dict[str, Any]:
        """Arguments of Popen for a process of this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups}

    def give(self, folder: Path) -> None:
        """Make a folder that belongs to this user alone, if it is not there."""
        folder.mkdir(exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)

    def end_all(self) -> None:
        """End all processes of this user, those that left their process group included, and wait until none is left."""
        subprocess.run([sys.executable, "-I", "-S", "-c", _END], check=False, cwd="/", **self.process())  # noqa: S603 - our own program
        psutil.wait_procs([each for each in psutil.process_iter(["uids"]) if self._owns(each)], timeout=_END_S)

    def _owns(self, process: psutil.Process) -> bool:
        return process.info["uids"] is not None and self.uid in process.info["uids"]


@contextmanager
def isolated(
    data: Path, name: str | None, *, readable: Sequence[Path] = (), secret: Sequence[Path] = ()
) -> Iterator[BuildUser | None]:
    """Keep an agent's data folder from a user, and the user for this agent alone; None if none is named.

    That the user can run a job, can read the repositories that are folders, and cannot read what is secret is tried.
    """
    if name is None:
        yield None
        return
    user = BuildUser.named(name)
    with ExitStack() as held:
        try:
            lock = held.enter_context((_LOCKS / f"pullback-build-user-{user.uid}.lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermanentError(
                f"--build-user {name}: another agent builds as that user, and ends all its processes; name another one"
            ) from error
        except OSError as error:
            raise PermanentError(
                f"--build-user {name}: {_LOCKS} cannot be written ({error.strerror}); make it writable"
            ) from error
        for folder, mode in (("", 0o711), ("jobs", 0o711), ("mirrors", 0o750), ("spool", 0o700)):
            (data / folder).mkdir(exist_ok=True)
            (data / folder).chmod(mode)
        os.chown(data / "mirrors", -1, user.gid)
        cache = cache_of(data, user)
        user.give(cache)
        _try(user, readable=[cache, data / "mirrors", *readable], secret=[data / "token", data / "spool", *secret])
        yield user


def cache_of(data: Path, user: BuildUser | None) -> Path:
    """The folder of environments and builds: what one user wrote is not run by another."""
    return data / ("cache" if user is None else f"cache-{user.name}")


def _try(user: BuildUser, *, readable: Sequence[Path], secret: Sequence[Path]) -> None:
    asked = {"readable": [str(each) for each in readable], "secret": [str(each) for each in secret if each.exists()]}
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-P", "-c", _TRIAL, json.dumps(asked)],
            check=False,
            capture_output=True,
            cwd="/",
            timeout=_TIMEOUT_S,
            **user.process(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PermanentError(
            f"--build-user {user.name}: it cannot run {sys.executable} ({error}); install Pullback and Python where it may"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise PermanentError(
            f"--build-user {user.name}: {said[0]}; Pullback, repositories and --data have to lie where it may read, the token where "
            "it may not"
        )
