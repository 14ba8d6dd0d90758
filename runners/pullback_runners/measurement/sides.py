"""The side of a commit in a comparison: processes that run its code write to a folder of their own, and reach no process of the other commit.

Two commits are measured beside each other in one sandbox and by one user, with an object cache, a HOME and a TMPDIR for each. The kernel keeps
them apart (Landlock, landlock(7)): a process that has entered a side writes, with all that it starts, beneath its folder and in memory (/tmp,
/dev/shm) alone, and traces or signals no process outside. It costs some system calls, and cannot be undone. A kernel without Landlock keeps
nobody apart. Nothing but the standard library is needed, so that it is entered before anything of a commit is imported.

Run as `python -P -m` with this name, a folder and a command it enters the side and becomes the command: threads that are there already, such as
those of a BLAS, would stay outside.
"""

import ctypes
import os
import struct
import sys

# linux/landlock.h and the table of system calls, which is one for all architectures since 5.1.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _BENEATH_PATH = 1, 1
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_SIGNALS = 1 << 1
_NO_NEW_PRIVILEGES = 38  # of prctl(2)
_SHARED, _NODES = ("/tmp", "/dev/shm"), "/dev"  # noqa: S108 - of the sandbox


def side_command(python: list[str], folder: "os.PathLike[str] | None") -> list[str]:
    """The command that puts the command behind it on a side; none where it is on none."""
    return [] if folder is None else [*python, "-P", "-m", __name__, os.fspath(folder)]


def enter_side(folder: str) -> None:
    """Use and write this folder alone from now on, in this process, which has one thread, and in all that it starts."""
    own = {
        "HOME": folder,
        "TMPDIR": f"{folder}/tmp",  # noqa: S108 - of the side
        "XDG_CACHE_HOME": f"{folder}/cache",
        "PULLBACK_CACHE_DIR": f"{folder}/objects",
    }
    for each in own.values():
        os.makedirs(each, exist_ok=True)  # noqa: PTH103 - pathlib takes 7 ms to import
    os.environ.update(own)
    if (known := sys.modules.get("tempfile")) is not None:
        vars(known)["tempdir"] = None  # it may have looked already
    os.chdir(folder)
    _write_alone(folder)


def _write_alone(folder: str) -> None:
    version = _call(_CREATE_RULESET, None, 0, _ASK_VERSION) if sys.platform == "linux" else -1
    if version < 1:
        return
    files = _WRITE_FILE | (_TRUNCATE if version >= 3 else 0)
    everything = files | _MAKE_AND_REMOVE | (_REFER if version >= 2 else 0)
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
    enter_side(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - a command of ours
