"""LLVM as this package uses it: from text to an object, and from an object to code in memory."""

import functools
import threading
from typing import Any

import llvmlite.binding as llvm

from pullback.backends.native.linking.target import Target

CODEGEN_LEVEL = 2

lock = threading.RLock()
"""Held around everything that LLVM does for us: target machines and the linker are not made for several threads."""


def compile_object(text: str, target: Target) -> bytes:
    """The object code of a module written without triple and data layout; ValueError where the text is not LLVM IR."""
    with lock:
        machine = _machine(target)
        heading = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
        try:
            module = llvm.parse_assembly(heading + text, llvm.create_context())
            module.verify()
        except RuntimeError as failure:
            raise ValueError(f"A native program is not LLVM IR: {str(failure).strip()}") from failure
        _tidy(module, machine)
        code: bytes = machine.emit_object(module)
        return code


def link_object(code: bytes, name: str, imports: dict[str, int], exports: list[str]) -> Any:
    """Code in memory under a name never used before: maps the exported names to addresses, gone when it is closed."""
    library = llvm.JITLibraryBuilder().add_object_img(code)
    for symbol, address in imports.items():
        library.import_symbol(symbol, address)
    for symbol in exports:
        library.export_symbol(symbol)
    with lock:
        return library.link(_linker(), name)


def _tidy(module: Any, machine: Any) -> None:
    """Slots into registers, then peepholes: the text comes vectorised, the whole pipelines gain nothing on it."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(CODEGEN_LEVEL))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, builder)


@functools.cache
def _machine(target: Target) -> Any:
    return _new_machine(target.cpu, target.features)


def _new_machine(cpu: str, features: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="small"
    )


@functools.cache
def _linker() -> Any:
    """JITLink, which lays a program's code and constants out in one piece: no distance is too far for its relocations."""
    return llvm.create_lljit_compiler(_new_machine("", ""), use_jit_link=True, suppress_errors=True)
