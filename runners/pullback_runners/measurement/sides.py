"""The side of a commit in a comparison: processes that run its code write to a folder of their own, and reach no process of the other commit.

Two commits are measured beside each other in one sandbox and by one user, with an object cache, a HOME and a TMPDIR for each. The kernel keeps
them apart (Landlock, landlock(7), from Linux 5.19): a process that has entered a side writes, with all that it starts, beneath its folder and in
memory (/tmp, /dev/shm) alone, and traces or signals no process outside. It costs some system calls, and cannot be undone. A kernel without it
keeps nobody apart. Not refused is what one process of a user may do to others by their ids or to files by their paths without opening them to
write: prlimit, sched_setaffinity and setpriority; chmod, utime and flock; truncate before Linux 6.2, signals before 6.12.

Run as a file, by our own Python without packages (`-I -S`), with a folder, variables, `--` and a command it enters the side and becomes the
command: threads that are there already, such as those of a BLAS, would stay outside, and so would what the command's interpreter runs as it starts.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Mapping

# linux/landlock.h and the table of system calls, which is one for all architectures since 5.1.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _BENEATH_PATH = 1, 1
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_SIGNALS = 1 << 1
_NO_NEW_PRIVILEGES = 38  # of prctl(2)
_SHARED, _NODES = ("/tmp", "/dev/shm"), "/dev"  # noqa: S108 - of the sandbox


def make_side(folder: str) -> None:
    """Make the folders of a side. FileExistsError if there are any: a commit may have put something into them."""
    for each in _variables(folder).values():
        os.mkdir(each)  # noqa: PTH102 - pathlib takes 7 ms to import


def on_side(
    command: list[str], variables: Mapping[str, str], folder: "os.PathLike[str] | None"
) -> tuple[list[str], Mapping[str, str]]:
    """A command and its environment variables, with the program that enters a side in front; as they are without a side.

    The variables are set when that program becomes the command: one of them may name a library to load.
    """
    if folder is None:
        return command, variables
    told = [f"{name}={value}" for name, value in variables.items()]
    return [sys.executable, "-I", "-S", __file__, os.fspath(folder), *told, "--", *command], os.environ


def enter_side(folder: str) -> None:
    """Use and write this folder alone from now on, in this process, which has one thread, and in all that it starts."""
    os.environ.update(_variables(folder))
    if (known := sys.modules.get("tempfile")) is not None:
        vars(known)["tempdir"] = None  # it may have looked already
    os.chdir(folder)
    _write_alone(folder)


def _variables(folder: str) -> dict[str, str]:
    """The environment variables of a side, with its folders."""
    return {
        "HOME": folder,
        "TMPDIR": f"{folder}/tmp",  # noqa: S108 - of the side
        "XDG_CACHE_HOME": f"{folder}/cache",
        "PULLBACK_CACHE_DIR": f"{folder}/objects",
    }


def _write_alone(folder: str) -> None:
    version = _call(_CREATE_RULESET, None, 0, _ASK_VERSION) if sys.platform == "linux" else -1
    if version < 2:  # the first one refuses to move a file from one folder of a side to another
        return
    files = _WRITE_FILE | (_TRUNCATE if version >= 3 else 0)
    everything = files | _MAKE_AND_REMOVE | _REFER
    # What is refused of files, of the network, and towards processes outside; older kernels know the first of these alone.
    refused = struct.pack("=QQQ", everything, 0, _SIGNALS)[: 24 if version >= 6 else 8]
    rules = _done(_call(_CREATE_RULESET, refused, len(refused), 0))
    shared = [each for each in _SHARED if not folder.startswith(f"{each}/")]  # or the other side would be in it, too
    try:
        for path, rights in ((folder, everything), *((each, everything) for each in shared), (_NODES, files)):
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                _done(_call(_ADD_RULE, rules, _BENEATH_PATH, struct.pack("=Qi", rights, beneath), 0))
            finally:
                os.close(beneath)
        _done(ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _done(_call(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


def _call(number: int, *arguments: int | bytes | None) -> int:
    each = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *each))


def _done(result: int) -> int:
    """The result of a call that must not fail: code of a commit would run outside of its side."""
    if result < 0:
        raise OSError(ctypes.get_errno(), f"a side cannot be entered: {os.strerror(ctypes.get_errno())}")
    return result


if __name__ == "__main__":
    at = sys.argv.index("--")
    enter_side(sys.argv[1])
    theirs = dict(each.split("=", 1) for each in sys.argv[2:at])
    os.execvpe(sys.argv[at + 1], sys.argv[at + 1 :], theirs | _variables(sys.argv[1]))  # noqa: S606 - a command of ours
