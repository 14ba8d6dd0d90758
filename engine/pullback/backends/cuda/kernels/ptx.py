"""PTX: kernels around phases, and LLVM's code generator for NVIDIA's machines.

A kernel calls its phases one after the other, with a barrier between two; they are written into it. Its pointers are of
different memory (`noalias`), and those that are only read `readonly`, so that reads may go by the read-only cache. PTX is kept on
disk, among the objects of native programs.
"""

import llvmlite
import llvmlite.binding as llvm

from pullback.backends.cuda.kernels.kernel_text import Kernel, Kernels
from pullback.backends.native.linking import object_cache

#: By architecture, the oldest PTX that knows it: a driver need not be newer.
PTX_OF = {"sm_80": "ptx70", "sm_90": "ptx78"}

_TRIPLE = "nvptx64-nvidia-cuda"
_CODEGEN_LEVEL = 3

#: Everything that PTX depends on besides text and architecture; a change of how it is made here changes this line.
_RECIPE = f"llvmlite {llvmlite.__version__}, inlined, sroa, instcombine, codegen {_CODEGEN_LEVEL}"


def ptx_of(kernels: Kernels, architecture: str) -> str:
    """The PTX of kernels for an architecture, `sm_80` or `sm_90`: made, or found on disk."""
    text = device_text(kernels)
    name = object_cache.hash_of(f"PTX {_RECIPE} {architecture} {PTX_OF[architecture]}\n{text}")
    found = object_cache.find(name)
    if found is not None:
        return found.code.decode()
    ptx = _made(text, architecture)
    exports = tuple(kernel.name for kernel in kernels.kernels)
    object_cache.keep(name, object_cache.Object(ptx.encode(), (), exports, object_cache.hash_of(text)))
    return ptx


def _made(text: str, architecture: str) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(_TRIPLE).create_target_machine(
        cpu=architecture, features=f"+{PTX_OF[architecture]}", opt=_CODEGEN_LEVEL
    )
    heading = f'target triple = "{_TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(heading + text, llvm.create_context())
    module.verify()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_global_dead_code_eliminate_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(_CODEGEN_LEVEL))
    passes.run(module, builder)
    ptx: str = machine.emit_assembly(module)
    return ptx


def device_text(kernels: Kernels) -> str:
    """The text of phases with the kernels around them."""
    declared = [
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)",
    ]
    return "\n".join([*declared, *map(_around, kernels.kernels), kernels.text])


def _around(kernel: Kernel) -> str:
    parameters = ", ".join(
        f"ptr noalias{'' if one.is_written else ' readonly'} align 16 %p{number}"
        for number, one in enumerate(kernel.parameters)
    )
    shared = f"@{kernel.name}_shared"
    lines = [
        f"{shared} = internal addrspace(3) global [{max(kernel.shared_bytes, 1)} x i8] undef, align 16",
        f"define ptx_kernel void @{kernel.name}({parameters}) nounwind {{",
        f"  %shared = addrspacecast ptr addrspace(3) {shared} to ptr",
        *_index("thread", "tid", kernel.index_type),
        *_index("block", "ctaid", kernel.index_type),
    ]
    for number, phase in enumerate(kernel.phases):
        if number:
            lines.append("  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")
        lines.append(f"  call void @{phase}({arguments(kernel)})")
    return "\n".join([*lines, "  ret void", "}", ""])


def _index(name: str, register: str, type_: str) -> list[str]:
    read = f"call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()"
    if type_ == "i32":
        return [f"  %{name} = {read}"]
    return [f"  %{name}_short = {read}", f"  %{name} = zext i32 %{name}_short to {type_}"]


def arguments(kernel: Kernel) -> str:
    """The arguments of a phase, by the names that the functions around phases give them."""
    pointers = [f"ptr %p{number}" for number in range(len(kernel.parameters))]
    return ", ".join([*pointers, "ptr %shared", f"{kernel.index_type} %thread", f"{kernel.index_type} %block"])
