"""Convolutions of the native backend and their two transposes, in operations per second and as part of the processor's most.

`own` is the kernel as native programs call it; `torch`, where torch can be imported, the same by its operators, whose
arrays come fresh. All take turns in this process in short slices of CPU time, and each figure is the median slice; one
thread. The last figures are what the text of the kernel is: its lines, and milliseconds to compile it.

  python -m benchmarks.native_convolutions                   everything, about two minutes
  python -m benchmarks.native_convolutions --only 3x3 --bits 256
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch starts
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import ctypes
import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.peak_rates import fma_peak
from benchmarks.turns import take_turns

from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import EMITTERS, Emission, Site, StoredArray
from pullback.backends.native.linking import forced_width, host_target, load
from pullback.core.primitive import Primitive
from pullback.core.types import type_of
from pullback.ir.graph import Node, Var
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient

Array = np.ndarray[Any, Any]

#: Name, shapes of data and weights, stride, padding, dilation, groups.
LAYERS: list[tuple[str, tuple[int, ...], tuple[int, ...], int, int, int, int]] = [
    ("3x3 judged small", (8, 16, 32, 32), (16, 16, 3, 3), 1, 1, 1, 1),
    ("3x3 judged large", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 1),
    ("3x3 first of ResNet-20", (16, 3, 32, 32), (16, 3, 3, 3), 1, 1, 1, 1),
    ("3x3 of 128 at 28", (4, 128, 28, 28), (128, 128, 3, 3), 1, 1, 1, 1),
    ("3x3 of 512 at 7", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1, 1),
    ("3x3 of 64 at 8", (16, 64, 8, 8), (64, 64, 3, 3), 1, 1, 1, 1),
    ("3x3 of 32 at 4", (32, 32, 4, 4), (32, 32, 3, 3), 1, 1, 1, 1),
    ("3x3 one example", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 1),
    ("3x3 stride 2", (8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1, 1),
    ("3x3 dilation 2", (4, 32, 40, 40), (32, 32, 3, 3), 1, 2, 2, 1),
    ("3x3 groups of 8", (8, 64, 28, 28), (64, 8, 3, 3), 1, 1, 1, 8),
    ("3x3 depthwise", (8, 96, 28, 28), (96, 1, 3, 3), 1, 1, 1, 96),
    ("5x5", (8, 6, 14, 14), (16, 6, 5, 5), 1, 0, 1, 1),
    ("5x5 of LeNet", (32, 1, 28, 28), (6, 1, 5, 5), 1, 2, 1, 1),
    ("7x7 stem", (4, 3, 112, 112), (64, 3, 7, 7), 2, 3, 1, 1),
    ("1x1", (8, 64, 56, 56), (128, 64, 1, 1), 1, 0, 1, 1),
    ("1x1 of 512 at 14", (8, 512, 14, 14), (256, 512, 1, 1), 1, 0, 1, 1),
    ("1x1 stride 2", (8, 64, 56, 56), (128, 64, 1, 1), 2, 0, 1, 1),
    ("patches", (4, 3, 96, 96), (96, 3, 8, 8), 8, 0, 1, 1),
    ("1-D", (16, 32, 400), (64, 32, 5), 1, 2, 1, 1),
    ("3-D", (2, 16, 16, 24, 24), (16, 16, 3, 3, 3), 1, 1, 1, 1),
]

#: Operations of one call of a native program: 20 us at 50 GFLOP/s.
_CALL_FLOP = 1e6


class NativeKernel:
    """The kernel of one node, run so many times per call."""

    def __init__(self, bits: int, primitive: Primitive, operands: tuple[Array, ...], params: dict[str, Any]) -> None:
        emitter, types = EMITTERS[primitive], [type_of(operand) for operand in operands]
        result = primitive.infer(*types, **params)[0]
        inputs = tuple(Var(k, type_) for k, type_ in enumerate(types))
        node = Node(primitive, inputs, tuple(params.items()), (Var(len(inputs), result),), "")
        self.flop: int = primitive.flops(types, result)
        self.repeats = max(1, int(_CALL_FLOP / self.flop))
        self.scratch_bytes = emitter.scratch(node, bits)
        with forced_width(bits):
            start = time.process_time()
            module = Module(bits)
            function = module.function("program", [("ptr", "table")], internal=False)
            pointers = [function.load("ptr", function.element("%table", k, "ptr")) for k in range(len(types) + 2)]
            stored = [
                StoredArray.in_order(pointer, type_)
                for pointer, type_ in zip(pointers[:-1], [*types, result], strict=True)
            ]
            with function.loop(0, self.repeats):
                emitter.emit(Emission(module, function), node, Site(stored[:-1], stored[-1:], pointers[-1]))
            text = module.text()
            self._loaded = load(text)
            self.compile_ms = (time.process_time() - start) * 1e3
        self.lines = text.count("\n")
        self.result = _aligned(result.nbytes).view(result.dtype).reshape(result.shape)
        self._kept = (*operands, self.result, _aligned(self.scratch_bytes))
        self._table = (ctypes.c_void_p * len(pointers))(*[array.ctypes.data for array in self._kept])
        self._program = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._loaded.address("program"))

    def __call__(self) -> None:
        """Run it."""
        self._program(self._table)


def _aligned(nbytes: int) -> Array:
    memory = np.zeros(nbytes + 64, np.uint8)
    return memory[-memory.ctypes.data % 64 :][:nbytes]


def by_torch(primitive: Primitive, w: Array, x: Array, y: Array, params: dict[str, Any]) -> Callable[[], Any] | None:
    """The same by torch, None where it is not there."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(1)
    w, x, y = (torch.from_numpy(array) for array in (w, x, y))
    pad = [low for low, _ in params["pad"]]
    some = {"stride": params["stride"], "padding": pad, "dilation": params["dilation"], "groups": params["groups"]}
    forward = (torch.conv1d, torch.conv2d, torch.conv3d)[len(pad) - 1]
    if primitive is conv:
        return lambda: forward(x, w, **some)
    mask = [primitive is conv_data_gradient, primitive is conv_weight_gradient, False]
    rest = (None, some["stride"], pad, some["dilation"], False, [0] * len(pad), some["groups"], mask)
    return lambda: torch.ops.aten.convolution_backward(y, x, w, *rest)


def measure(layer: tuple[Any, ...], bits: int, dtype: str, most: float, budget_s: float) -> None:
    """Three lines of the table."""
    name, x_shape, w_shape, stride, pad, dilation, groups = layer
    dims = len(x_shape) - 2
    params = {"stride": (stride,) * dims, "pad": ((pad, pad),) * dims, "dilation": (dilation,) * dims, "groups": groups}
    random = np.random.default_rng(0)
    x, w = (random.normal(size=shape).astype(dtype) for shape in (x_shape, w_shape))
    y = random.normal(size=conv.infer(type_of(w), type_of(x), **params)[0].shape).astype(dtype)
    nodes: list[tuple[str, Primitive, tuple[Array, ...], dict[str, Any]]] = [
        ("forward", conv, (w, x), params),
        ("data", conv_data_gradient, (w, y), {**params, "size": x_shape[2:]}),
        ("weights", conv_weight_gradient, (y, x), {**params, "kernel": w_shape[2:]}),
    ]
    totals = {"own": 0.0, "torch": 0.0}
    for title, primitive, operands, all_params in nodes:
        own = NativeKernel(bits, primitive, operands, all_params)
        calls: dict[str, Callable[[], Any]] = {"own": own}
        peer = by_torch(primitive, w, x, y, params)
        if peer is not None:
            calls["torch"] = peer
        times = take_turns(calls, budget_s=budget_s)
        took = {key: statistics.median(seconds) for key, seconds in times.items()}
        took["own"] /= own.repeats
        for key, seconds in took.items():
            totals[key] += seconds
        rate = own.flop / took["own"]
        torch = f"{took['torch'] / took['own']:5.2f}x torch" if peer is not None else ""
        size = f"{own.scratch_bytes // 1024:5} KiB  {own.lines:5} lines {own.compile_ms:4.0f} ms"
        print(
            f"{name:24} {title:8} {took['own'] * 1e6:10.1f} us {rate / 1e9:6.1f} GFLOP/s {rate / most:5.0%} of peak "
            f"{torch}  {size}",
            flush=True,
        )
    if totals["torch"]:
        print(f"{name:24} all      {totals['own'] * 1e6:10.1f} us {totals['torch'] / totals['own']:5.2f}x torch")


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a layer's name")
    parser.add_argument("--bits", type=int, default=host_target().vector_bits, help="width of vectors")
    parser.add_argument("--dtype", choices=("f4", "f8"), default="f4")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per line")
    arguments = parser.parse_args()
    most = fma_peak(arguments.bits, arguments.dtype)
    print(f"{arguments.dtype}, vectors of {arguments.bits} bits: peak {most / 1e9:.1f} GFLOP/s")
    for layer in LAYERS:
        if arguments.only in layer[0]:
            measure(layer, arguments.bits, arguments.dtype, most, arguments.budget)


if __name__ == "__main__":
    main()
