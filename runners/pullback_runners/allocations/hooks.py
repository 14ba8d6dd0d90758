"""Small functions of the counters, compiled with LLVM when a process first counts: no C compiler is needed anywhere."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

_immortal: list[Any] = []


def compiled_functions(text: str, names: Iterable[str]) -> dict[str, int]:
    """Compile LLVM's text and return the addresses of these functions, which stay for the life of the process."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - 60 ms that only counting processes pay

    for start in ("initialize_native_target", "initialize_native_asmprinter", "initialize_native_asmparser"):
        getattr(llvm, start)()
    module = llvm.parse_assembly(text)
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    _immortal.append(engine)
    return {name: engine.get_function_address(name) for name in names}


def ir_of(name: str) -> str:
    """LLVM's text that was made of a C file of this folder."""
    return Path(__file__).with_name(f"{name}.ll").read_text(encoding="utf-8")
