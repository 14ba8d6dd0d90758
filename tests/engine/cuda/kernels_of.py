"""Kernels of a subject, compared with rules that their text has to keep; each rule is a function that raises."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from pullback.backends.cuda.kernels.kernel_text import write_kernels
from pullback.backends.cuda.kernels.ptx import device_text, ptx_of

MOST_REGISTERS = 128


def kernels_of(subject):
    """The kernels of a subject."""
    return write_kernels(subject.nest, subject.places)


# --- pointers ----------------------------------------------------------------------------------------------------------
_ROOTED = re.compile(r"\s*(%[\w.]+) = getelementptr [^,]+, ptr (%[\w.]+),")
_READ = re.compile(r"= load [^,]+, ptr (%[\w.]+)")
_WRITTEN = re.compile(r"^\s*store .+, ptr (%[\w.]+)")
_KERNEL = re.compile(r"define ptx_kernel void @(\w+)\((.*)\)")


def check_places(kernels):
    """What a kernel reads and writes of a piece goes by one pointer; what it writes is not `readonly`."""
    text = device_text(kernels)
    heads = dict(_KERNEL.findall(text))
    bodies = {
        found[1]: found[2] for found in re.finditer(r"@(\w+)\([^\n]*\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    }
    for kernel in kernels.kernels:
        pieces = [one.piece for one in kernel.parameters]
        assert len(set(pieces)) == len(pieces), f"{kernel.name} has two pointers of one piece, both noalias"
        parameters = heads[kernel.name].split(", ")
        assert all("noalias" in one for one in parameters)
        read, written = set(), set()
        for phase in kernel.phases:
            of_phase = _used(bodies[phase])
            read |= of_phase[0]
            written |= of_phase[1]
        for number, parameter in enumerate(parameters):
            assert ("readonly" in parameter) == (number not in written), f"{kernel.name} writes by {parameter}"
            assert number in read | written, f"{kernel.name} does not use {parameter}"


def _used(body):
    """The parameters that a function loads and stores by."""
    roots = {}
    used = set(), set()
    for line in body.splitlines():
        if rooted := _ROOTED.match(line):
            roots[rooted[1]] = roots.get(rooted[2], rooted[2])
        for own, pattern in zip(used, (_READ, _WRITTEN), strict=True):
            if found := pattern.search(line):
                own.add(roots.get(found[1], found[1]))
    return tuple({int(name[2:]) for name in own if re.fullmatch(r"%p\d+", name)} for own in used)


# --- machine code ------------------------------------------------------------------------------------------------------
def tool(name):
    """A program of a CUDA toolkit, of the wheel `nvidia-cuda-nvcc`, or of Triton, which PyTorch brings; None if there is none."""
    if found := shutil.which(name):
        return found
    for package in ("nvidia", "nvidia.cuda_nvcc", "triton"):
        spec = find_spec(package) if find_spec(package.partition(".")[0]) else None
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).glob(f"**/bin/{name}")):
                if os.access(path, os.X_OK):
                    return str(path)
    return None


def ptxas():
    """The assembler; None if there is none."""
    return tool("ptxas")


def assembled(kernels, architecture, folder):
    """A file with the machine code of kernels, and what the assembler said of it."""
    path, code = folder / "kernels.ptx", folder / "kernels.cubin"
    path.write_text(ptx_of(kernels, architecture))
    command = [ptxas(), "-v", f"-arch={architecture}", str(path), "-o", str(code)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return code, said.stderr


def opcodes(code):
    """The operations of machine code, in order."""
    listed = subprocess.run([tool("nvdisasm"), "-c", str(code)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z]\w*)", listed)


def check_assembled(kernels, architecture, folder):
    """Machine code without a stack or spilled registers, in few registers; gives the numbers of registers."""
    said = assembled(kernels, architecture, folder)[1]
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said)
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", said)]
    assert len(registers) == len(kernels.kernels)
    assert set(frames) == {("0", "0", "0")}, said
    assert max(registers) <= MOST_REGISTERS, registers
    return registers


def accesses(kernels, architecture="sm_90"):
    """Loads and stores of global memory in the PTX of kernels, by their bytes."""
    counts = {}
    for kind, vector, bits in re.findall(
        r"\t(ld|st)\.global(?:\.nc)?(?:\.v(\d))?\.\w(\d+)", ptx_of(kernels, architecture)
    ):
        key = f"{kind}{int(vector or 1) * int(bits) // 8}"
        counts[key] = counts.get(key, 0) + 1
    return counts
