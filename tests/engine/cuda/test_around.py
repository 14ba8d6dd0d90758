"""Parts of kernels that no CPU runs, read off the text: numbers of thread and block, barriers, shared memory, rounding."""

import re
from itertools import islice

import pytest
from tests.engine.cuda import nests
from tests.engine.cuda.kernels_of import kernels_of
from tests.engine.cuda.random_nests import random_subject

from pullback.backends.cuda.emulation import Emulator
from pullback.backends.cuda.kernels import ptx
from pullback.backends.cuda.kernels.ptx import device_text, ptx_of
from pullback.backends.native.linking.target import available_widths, forced_width

BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


def check_around(kernels, text, assembled):
    """A thread is `tid`, a block `ctaid`; phases are called in order, with a barrier between two, in PTX as well."""
    for kernel in kernels.kernels:
        body = text.partition(f"ptx_kernel void @{kernel.name}(")[2].partition("\n}\n")[0]
        short = "" if kernel.index_type == "i32" else "_short"
        for name, register in (("thread", "tid"), ("block", "ctaid")):
            assert f"  %{name}{short} = call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()" in body
        calls = [one for phase in kernel.phases for one in (BARRIER, phase)][1:]
        assert re.findall(r"call void @([\w.]+)\(", body) == calls
        entry = assembled.partition(f".entry {kernel.name}(")[2].partition("\n}\n")[0]
        assert len(re.findall(r"\tbar(?:rier)?\.\S*sync", entry)) == len(kernel.phases) - 1
        if len(kernel.phases) > 1:
            assert f".b8 {kernel.name}_shared[{kernel.shared_bytes}];" in assembled


def check_rounding(assembled):
    """No operation is approximate, and none takes the smallest numbers for zero."""
    assert not re.search(r"\.approx|\.ftz", assembled)


#: Operations of PTX that the assembler may make one instruction of.
CONTRACTED = re.compile(r"\t(?:add|sub|mul)\.f(?:32|64)")


def _of_several_phases():
    subjects = map(random_subject, range(100))
    return next(found for found in map(kernels_of, subjects) if max(len(one.phases) for one in found.kernels) > 2)


def test_kernels_of_plans_have_threads_blocks_and_barriers(nests_of_plans):
    for subject in nests_of_plans[::4]:
        kernels = kernels_of(subject)
        check_around(kernels, device_text(kernels), ptx_of(kernels, "sm_90"))
        check_rounding(ptx_of(kernels, "sm_90"))


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("seed", range(600, 612))
def test_kernels_of_random_nests_have_threads_blocks_and_barriers(seed):
    kernels = kernels_of(random_subject(seed))
    for architecture in ptx.PTX_OF:
        check_around(kernels, device_text(kernels), ptx_of(kernels, architecture))
        check_rounding(ptx_of(kernels, architecture))


@pytest.mark.parametrize("architecture", ptx.PTX_OF)
def test_what_has_to_round_by_itself_is_not_contracted_by_the_assembler(architecture):
    """Steps that find out what an earlier rounding has lost: without flags in the text the assembler contracts none of them."""
    texts = (device_text(kernels_of(random_subject(seed))) for seed in range(100))
    text = next(text for text in texts if re.search(r"= f(?:add|sub|mul) (?!contract)", text) and " contract " in text)
    assert CONTRACTED.search(ptx._made(text, architecture))
    assert not CONTRACTED.search(ptx._made(text.replace(" contract ", " "), architecture))


def _with_contraction_and_without(monkeypatch):
    """The kernels of nests with products and sums that may become one instruction, and of the same where none may."""
    for subject in map(random_subject, range(100)):
        kernels = kernels_of(subject)
        if not CONTRACTED.search(ptx_of(kernels, "sm_90")):
            continue
        with monkeypatch.context() as patch:
            patch.setenv("PULLBACK_FMA", "0")
            yield subject, kernels, kernels_of(subject)


@pytest.mark.parametrize("architecture", ptx.PTX_OF)
def test_nothing_is_contracted_where_that_is_switched_off_and_fused_steps_are_fused_everywhere(
    architecture, monkeypatch
):
    for _, _, kernels in islice(_with_contraction_and_without(monkeypatch), 8):
        assembled = ptx_of(kernels, architecture)
        assert not CONTRACTED.search(assembled)
        assert "contract" not in kernels.text
        assert "fmuladd" not in kernels.text  # one instruction on a GPU, two on a CPU that has none for it


def _computed(subject, kernels):
    memory = nests.Memory(subject)
    Emulator(kernels).run(memory.addresses)
    return memory.bits()


@pytest.mark.skipif(len(available_widths()) == 1, reason="this processor has one width of vectors")
def test_machines_with_and_without_fma_give_the_same_bits_where_contraction_is_off(monkeypatch):
    """Two CPUs stand for a device and a CPU: their assemblers decide otherwise where they may."""
    differ = 0
    for subject, fused, rounded in islice(_with_contraction_and_without(monkeypatch), 20):
        with forced_width(128) as narrow:
            assert not narrow.fma
            narrow_fused, narrow_rounded = _computed(subject, fused), _computed(subject, rounded)
        assert narrow_rounded == _computed(subject, rounded), subject.name
        differ += narrow_fused != _computed(subject, fused)
    assert differ


def test_an_approximation_is_found():
    with pytest.raises(AssertionError):
        check_rounding("\tdiv.approx.f32 %r1, %r2, %r3;")


def test_a_barrier_that_is_left_out_is_found():
    kernels = _of_several_phases()
    text = device_text(kernels)
    check_around(kernels, text, ptx_of(kernels, "sm_90"))
    without = re.sub(rf"  call void @{BARRIER}\(i32 0\)\n", "", text, count=1)
    assert without != text
    with pytest.raises(AssertionError):
        check_around(kernels, without, ptx_of(kernels, "sm_90"))
    with pytest.raises(AssertionError):
        check_around(kernels, text, ptx._made(without, "sm_90"))


def test_a_thread_that_takes_itself_for_its_block_is_found(monkeypatch):
    index, other = ptx._index, {"tid": "ctaid", "ctaid": "tid"}
    monkeypatch.setattr(ptx, "_index", lambda name, register, type_: index(name, other[register], type_))
    kernels = _of_several_phases()
    with pytest.raises(AssertionError):
        check_around(kernels, device_text(kernels), ptx_of(kernels, "sm_90"))
