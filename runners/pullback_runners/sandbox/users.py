"""The user that runs builds and measured code, for an agent that runs as root."""

import fcntl
import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from pullback_runners.errors import UsageError

_LOCKS = Path("/run")
_END = ("/bin/sh", "-c", "kill -s KILL -- -1")
"""A command that ends every other process of its own user at once: no fork can outrun it."""

_END_S = 5.0


@dataclass(frozen=True)
class BuildUser:
    """The user that runs builds and measured code."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @classmethod
    def named(cls, name: str) -> Self:
        """The user with a name, or with a number that needs no account, as in containers; UsageError says why it cannot be used."""
        if os.geteuid() != 0:
            raise UsageError(
                f"--build-user {name}: only root can start processes of another user; start the agent as root"
            )
        try:
            result = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
            uid, gid, groups = result.pw_uid, result.pw_gid, os.getgrouplist(result.pw_name, result.pw_gid)
        except (KeyError, OverflowError) as error:
            if not name.isdecimal():
                raise UsageError(
                    f"--build-user {name}: this machine has no such user; `useradd --system {name}` makes it"
                ) from error
            uid, gid, groups = int(name), int(name), []
        if uid == 0:
            raise UsageError(f"--build-user {name}: root can read everything; name a user of its own for jobs")
        return cls(name, uid, gid, tuple(groups))

    def process(self) -> dict[str, Any]:
        """The arguments of Popen for a process of this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups}

    def give(self, folder: Path) -> None:
        """Make a folder that only this user can access, if it does not exist."""
        folder.mkdir(exist_ok=True)
        os.chown(folder, self.uid, self.gid)
        folder.chmod(0o700)

    def end_all(self) -> bool:
        """End all processes of this user, in any process group; False if some are left after a few seconds.

        A process of the user can end the command that ends them all, but not this process of root, which ends them one by one.
        """
        deadline = time.monotonic() + _END_S
        while True:
            subprocess.run(_END, check=False, cwd="/", **self.process())  # noqa: S603 - our own command
            own = [each for each in psutil.process_iter(["uids", "status"]) if self.uid in (each.info["uids"] or ())]
            for each in own:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            if not own or time.monotonic() > deadline:  # where nobody waits for orphans, zombies stay for ever
                return all(each.info["status"] == psutil.STATUS_ZOMBIE for each in own)
            time.sleep(0.05)


@contextmanager
def held_user(name: str) -> Iterator[BuildUser]:
    """The user with a name, reserved for this agent; UsageError says why it cannot be used."""
    user = BuildUser.named(name)
    with ExitStack() as stack:
        try:
            lock = stack.enter_context((_LOCKS / f"pullback-build-user-{user.uid}.lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"--build-user {name}: another agent builds as that user, and ends all its processes; name another one"
            ) from error
        except OSError as error:
            raise UsageError(
                f"--build-user {name}: {_LOCKS} cannot be written ({error.strerror}); make it writable"
            ) from error
        yield user
