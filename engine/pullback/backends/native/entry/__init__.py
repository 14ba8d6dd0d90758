"""Calling native programs from Python: entry.ll does it without running Python, everything else here prepares that."""

from pullback.backends.native.entry.binding import bind, bound_frames, latest_frame, unbind
from pullback.backends.native.entry.callables import is_native, native_subclass
from pullback.backends.native.entry.forms import Constant, Form, NotNativeError, Out
from pullback.backends.native.entry.frames import ABSENT, Check, Fetch, Frame, NativeProgram, Step
from pullback.backends.native.entry.offsets import why_unknown
from pullback.backends.native.entry.running import Runner, runner
from pullback.backends.native.entry.suspension import suspended

__all__ = [
    "ABSENT",
    "Check",
    "Constant",
    "Fetch",
    "Form",
    "Frame",
    "NativeProgram",
    "NotNativeError",
    "Out",
    "Runner",
    "Step",
    "bind",
    "bound_frames",
    "is_native",
    "latest_frame",
    "native_subclass",
    "runner",
    "suspended",
    "unbind",
    "why_unknown",
]
