"""Ending a child when its parent ends, however the parent ends.

Linux sends a signal of our choice to a child whose parent died (prctl PR_SET_PDEATHSIG, see prctl(2)); it must be asked
for by the child. Elsewhere nothing happens here, and what a killed parent left is cleaned at the next start from the
process marks on disk.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
PARENT_VARIABLE = "PULLBACK_PARENT_PID"


def die_with_parent(parent_pid: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Ask for `with_signal` when the parent dies; ends at once when it is already gone.

    The signal comes when the *thread* that started us ends, so parents start their children from their main thread.
    """
    if sys.platform != "linux":
        return
    _prctl(_PR_SET_PDEATHSIG, int(with_signal))
    if os.getppid() != parent_pid:  # it died between starting us and the call above
        os._exit(1)


def die_with_named_parent() -> None:
    """Do the same for the parent named in the environment, if one is; the name goes no further than this process."""
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is not None:
        die_with_parent(int(parent))


def gain_no_privileges() -> None:
    """Let no program that this process and its children start have more rights than they do: `sudo` and `su` do not help them."""
    if sys.platform == "linux":
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
