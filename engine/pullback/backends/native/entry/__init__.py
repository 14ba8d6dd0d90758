"""Calling native programs from Python: entry.ll does it without running Python, everything else here prepares that."""

from pullback.backends.native.entry.arguments import argument_steps
from pullback.backends.native.entry.binding import bind, bound_frames, forget_latest, latest_frame
from pullback.backends.native.entry.callables import is_native, native_subclass
from pullback.backends.native.entry.forms import Constant, Form, NotNativeError, Out
from pullback.backends.native.entry.frames import ABSENT, Check, Fetch, Frame, NativeProgram, Step
from pullback.backends.native.entry.offsets import why_unknown
from pullback.backends.native.entry.running import Runner, plain_form, runner
from pullback.backends.suspension import suspended

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
    "argument_steps",
    "bind",
    "bound_frames",
    "forget_latest",
    "is_native",
    "latest_frame",
    "native_subclass",
    "plain_form",
    "runner",
    "suspended",
    "why_unknown",
]
