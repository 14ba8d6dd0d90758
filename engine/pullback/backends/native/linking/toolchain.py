"""LLVM as this package uses it: from text to object code, and from object code to code in memory."""

import functools
import os
import re
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from pullback.backends.native.linking.object_cache import Object, hash_of
from pullback.backends.native.linking.symbols import CALLED_BY_CODE_GENERATOR, address_of, declared_symbols
from pullback.backends.native.linking.target import Target
from pullback.dataclass import dataclass

CODEGEN_LEVEL = (
    3  # as quick to run as 2 on programs that come vectorised, and at times better at scheduling long loop bodies
)

#: Everything that the code depends on besides text and processor; a change of how code is made here changes this line.
RECIPE = f"llvmlite {llvmlite.__version__}, sroa, instcombine, codegen {CODEGEN_LEVEL}, pic, small"

_DEFINITION = re.compile(r"^define (?!internal\b|private\b)[^@\n]*@([\w.$]+)\(", re.MULTILINE)


class Code:
    """Object code in memory, bound to what it calls; unloaded when it is dropped."""

    def __init__(self, jit: Any, library: Any) -> None:
        self._library = library
        self._finalizer = weakref.finalize(self, _unload, jit, library)
        self._finalizer.atexit = False  # the process takes its memory along, and something may still run in it

    def address(self, name: str) -> int:
        """Address of an exported function."""
        found: int = self._library[name]
        return found


def _unload(jit: Any, library: Any) -> None:
    library.close()
    jit.close()


def compile_object(text: str, target: Target) -> Object:
    """The object code of a module written without triple and data layout; ValueError where it is not LLVM IR."""
    imports = declared_symbols(text)
    with _llvm():
        compiler = _compiler(target)
        try:
            module = llvm.parse_assembly(compiler.heading + text, llvm.create_context())
            module.verify()
        except RuntimeError as failure:
            raise ValueError(f"A native program is not LLVM IR: {str(failure).strip()}") from failure
        compiler.passes.run(module, compiler.pass_builder)
        code = compiler.machine.emit_object(module)
    return Object(code, imports=imports, exports=tuple(_DEFINITION.findall(text)), text_hash=hash_of(text))


def link_object(compiled: Object, imports: Mapping[str, int]) -> Code:
    """Code in memory, with addresses for what it imports; RuntimeError where the object cannot be linked."""
    library = llvm.JITLibraryBuilder().add_object_img(compiled.code)
    for name in CALLED_BY_CODE_GENERATOR:
        library.import_symbol(name, address_of(name))
    for name in compiled.imports:
        library.import_symbol(name, imports[name])
    for name in compiled.exports:
        library.export_symbol(name)
    with _llvm():
        # A linker of its own: a shared one keeps 10 KB for every program it ever had, and one costs 0.1 ms. JITLink lays
        # code and constants out in one piece, so that no relocation of the small code model is out of reach.
        jit = llvm.create_lljit_compiler(_linking_machine(), use_jit_link=True, suppress_errors=True)
        return Code(jit, library.link(jit, "program"))


@dataclass(frozen=True, slots=True)
class _Compiler:
    """The compiler for one processor. All of it is used again: each of LLVM's pass managers leaks some KB."""

    machine: Any
    heading: str
    passes: Any
    pass_builder: Any


@functools.cache
def _compiler(target: Target) -> _Compiler:
    machine = _new_machine(target.cpu, target.features)
    # Slots into registers, then peepholes: the text comes vectorised, and whole pipelines gain nothing on it.
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    return _Compiler(
        machine=machine,
        heading=f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n',
        passes=passes,
        pass_builder=llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(CODEGEN_LEVEL)),
    )


@functools.cache
def _linking_machine() -> Any:
    """The machine as a linker wants it, which is only its kind: features would take longer to read than to link."""
    return _new_machine("", "")


def _new_machine(cpu: str, features: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="small"
    )


# --- one thread at a time, and no fork in between -----------------------------------------------------------------------
# llvmlite lets one thread at a time into LLVM, call by call, under a lock of its own. If another thread held it at a fork,
# it would never be released in the child, so a fork waits until no thread holds it. Always in this order: ours, then
# llvmlite's; finalizers take llvmlite's alone.
_ours = threading.RLock()


@contextmanager
def _llvm() -> Iterator[None]:
    with _ours:
        yield


def _locks() -> Sequence[Any]:
    theirs = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)
    return (_ours,) if theirs is None else (_ours, theirs)


def _before_fork() -> None:
    for lock in _locks():
        lock.acquire()


def _after_fork() -> None:
    for lock in reversed(_locks()):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
