"""Calling native programs from Python: entry.c does it without running Python, everything else here prepares that.

NativeProgram     machine code, what it takes and gives      machine_programs.py
Step              what is fetched and checked before a run   argument_steps.py
Out, Form         what is made of the results                result_trees.py
Block             all of that as words                       blocks.py
Frame             words in use, and what they refer to       frames.py
native_subclass   types whose calls try frames               callables.py, binding.py
Runner            a program as a callable of its own         callable_program.py
"""

from pullback.backends.native.entry.arenas import Arena
from pullback.backends.native.entry.argument_steps import (
    ABSENT,
    Check,
    Fetch,
    Leaf,
    Step,
    argument_steps,
    item_fetch,
    leaf_like,
    steps_of,
)
from pullback.backends.native.entry.binding import bind, bound_frames, forget_latest, latest_frame
from pullback.backends.native.entry.callable_program import Runner, Writer, in_order, plain_form, runner, writer
from pullback.backends.native.entry.callables import is_native, native_subclass
from pullback.backends.native.entry.frames import Frame
from pullback.backends.native.entry.machine_programs import NativeProgram
from pullback.backends.native.entry.offsets import why_unknown
from pullback.backends.native.entry.result_trees import Constant, Form, FunctionResult, NotNativeError, Out, makings
from pullback.backends.native.entry.templates import Question, Template, WatchedInput
from pullback.backends.native.entry.watched_memory import WatchedMemory

__all__ = [
    "ABSENT",
    "Arena",
    "Check",
    "Constant",
    "Fetch",
    "Form",
    "Frame",
    "FunctionResult",
    "Leaf",
    "NativeProgram",
    "NotNativeError",
    "Out",
    "Question",
    "Runner",
    "Step",
    "Template",
    "WatchedInput",
    "WatchedMemory",
    "Writer",
    "argument_steps",
    "bind",
    "bound_frames",
    "forget_latest",
    "in_order",
    "is_native",
    "item_fetch",
    "latest_frame",
    "leaf_like",
    "makings",
    "native_subclass",
    "plain_form",
    "runner",
    "steps_of",
    "why_unknown",
    "writer",
]
