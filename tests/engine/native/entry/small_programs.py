"""Small programs by hand, and callables that tell when a call of theirs goes through Python."""

import numpy as np
import pytest

from pullback import trees
from pullback.backends.native import availability, entry
from pullback.backends.native.entry import Frame, NativeProgram, Template, argument_steps, plain_form
from pullback.backends.native.linking import load
from pullback.core.types import ArrayType, type_of

pytestmark = pytest.mark.skipif(not availability.is_available(), reason=str(availability.why_not()))

F8 = np.dtype("f8")

#: out[i] = a[i] * b[i] + c[i] for `LENGTH` numbers, where the first of c is not infinite.
FMA = """
define i64 @program(ptr %table) {
start:
  %a = load ptr, ptr %table
  %b.at = getelementptr ptr, ptr %table, i64 1
  %b = load ptr, ptr %b.at
  %c.at = getelementptr ptr, ptr %table, i64 2
  %c = load ptr, ptr %c.at
  %out.at = getelementptr ptr, ptr %table, i64 3
  %out = load ptr, ptr %out.at
  %c0 = load double, ptr %c
  %infinite = fcmp oeq double %c0, 0x7FF0000000000000
  br i1 %infinite, label %decline, label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %ai = getelementptr double, ptr %a, i64 %i
  %bi = getelementptr double, ptr %b, i64 %i
  %ci = getelementptr double, ptr %c, i64 %i
  %oi = getelementptr double, ptr %out, i64 %i
  %av = load double, ptr %ai
  %bv = load double, ptr %bi
  %cv = load double, ptr %ci
  %product = fmul double %av, %bv
  %sum = fadd double %product, %cv
  store double %sum, ptr %oi
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, LENGTH
  br i1 %done, label %end, label %loop
end:
  ret i64 0
decline:
  ret i64 1
}
"""


class Recorder:
    """A callable whose `__call__` says so, and raises for text."""

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **keywords):
        self.calls.append((args, keywords))
        if args and type(args[0]) is str:
            raise RuntimeError("asked to")
        return "python"


def fma(shape, **options):
    """The program above for arrays of a shape."""
    type_ = ArrayType(shape, F8)
    loaded = load(FMA.replace("LENGTH", str(type_.size)))
    return NativeProgram(loaded.address("program"), (type_,) * 3, (type_,), owner=loaded, **options)


def copying(*types):
    """A program that copies each input, of these types, to an output of its own."""
    lines = []
    for number, type_ in enumerate(types):
        lines += [
            f"  %from{number}.at = getelementptr ptr, ptr %table, i64 {number}",
            f"  %from{number} = load ptr, ptr %from{number}.at",
            f"  %to{number}.at = getelementptr ptr, ptr %table, i64 {len(types) + number}",
            f"  %to{number} = load ptr, ptr %to{number}.at",
            f"  call ptr @memcpy(ptr %to{number}, ptr %from{number}, i64 {type_.nbytes})",
        ]
    body = "\n".join(lines)
    text = f"declare ptr @memcpy(ptr, ptr, i64)\ndefine i64 @program(ptr %table) {{\n{body}\n  ret i64 0\n}}\n"
    loaded = load(text)
    return NativeProgram(loaded.address("program"), types, types, owner=loaded)


def bound(program, examples, form=None, **options):
    """A callable with one frame, for arguments like the examples."""
    instance = entry.native_subclass(Recorder)()
    form = plain_form(program.results)[0] if form is None else form
    entry.bind(
        instance,
        [Frame(Template(program, len(examples), argument_steps(tuple(examples)), form, takes_out=True, **options))],
    )
    return instance


def bound_copying(args, form=None):
    """A callable with one frame that copies the leaves of its arguments."""
    program = copying(*map(type_of, trees.flatten(args)[0]))
    instance = entry.native_subclass(Recorder)()
    form = plain_form(program.results) if form is None else form
    entry.bind(instance, [Frame(Template(program, len(args), argument_steps(args), form, takes_out=True))])
    return instance
