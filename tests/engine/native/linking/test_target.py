import ctypes
import struct
import threading

import pytest

from pullback.backends.native.linking import forced_width, host_target, load
from pullback.backends.native.linking.target import available_widths


def test_the_host_has_the_widest_of_the_widths_that_can_be_forced():
    assert host_target().vector_bits == available_widths()[0]
    assert set(available_widths()) <= {512, 256, 128}


@pytest.mark.parametrize("bits", available_widths())
def test_a_forced_width_holds_inside_the_block_and_in_its_thread_only(bits):
    host = host_target()
    elsewhere = []
    with forced_width(bits) as target:
        assert host_target() is target
        assert target.vector_bits == bits
        thread = threading.Thread(target=lambda: elsewhere.append(host_target()))
        thread.start()
        thread.join()
    assert host_target() == host == elsewhere[0]


def test_a_width_that_the_processor_has_not_is_refused():
    with pytest.raises(ValueError, match="not of 64"), forced_width(64):
        pass


@pytest.mark.parametrize("bits", available_widths())
def test_a_multiply_add_is_rounded_once_on_every_width(bits, cache):
    text = """
    declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
    declare <4 x double> @llvm.fma.v4f64(<4 x double>, <4 x double>, <4 x double>)
    define void @floats(ptr %p) {
      %x = load <8 x float>, ptr %p, align 4
      %q = getelementptr float, ptr %p, i64 8
      %c = load <8 x float>, ptr %q, align 4
      %y = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %x, <8 x float> %c)
      store <8 x float> %y, ptr %p, align 4
      ret void
    }
    define void @doubles(ptr %p) {
      %x = load <4 x double>, ptr %p, align 8
      %q = getelementptr double, ptr %p, i64 4
      %c = load <4 x double>, ptr %q, align 8
      %y = call <4 x double> @llvm.fma.v4f64(<4 x double> %x, <4 x double> %x, <4 x double> %c)
      store <4 x double> %y, ptr %p, align 8
      ret void
    }
    """.replace("\n    ", "\n")
    with forced_width(bits):
        loaded = load(text)
    single = 1 + 2.0**-12  # its square needs 25 bits, one more than a float has: the last survives only in one rounding
    floats = (ctypes.c_float * 16)(*[single] * 8, *[-struct.unpack("f", struct.pack("f", single**2))[0]] * 8)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("floats"))(ctypes.addressof(floats))
    assert list(floats)[:8] == [2.0**-24] * 8
    double = 1 + 2.0**-27
    doubles = (ctypes.c_double * 8)(*[double] * 4, *[-(double**2)] * 4)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address("doubles"))(ctypes.addressof(doubles))
    assert list(doubles)[:4] == [2.0**-54] * 4


@pytest.mark.parametrize("bits", [bits for bits in available_widths() if bits < available_widths()[0]])
def test_a_narrower_width_writes_no_instruction_of_a_wider_one(bits, cache):
    import llvmlite.binding as llvm

    from pullback.backends.native.linking import toolchain

    text = "define <16 x float> @f(<16 x float> %x) {\n  %y = fadd <16 x float> %x, %x\n  ret <16 x float> %y\n}\n"
    with forced_width(bits) as target:
        compiler = toolchain._compiler(target)
        assembly = compiler.machine.emit_assembly(llvm.parse_assembly(compiler.heading + text, llvm.create_context()))
    registers = {512: "zmm", 256: "ymm", 128: "xmm"}
    assert registers[bits] in assembly
    assert all(registers[wider] not in assembly for wider in registers if wider > bits)
