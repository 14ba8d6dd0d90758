"""Pooling of the native backend and what belongs to its derivative, against torch where it can be imported; one thread.

torch keeps where each maximum was; we find it again, and share it among those that tie. All take turns in this process in
short slices of CPU time, and each figure is the median slice.

  python -m benchmarks.native_pooling
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch starts

import importlib
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.native_convolutions import Array, NativeKernel
from benchmarks.turns import take_turns

from pullback.backends.native.linking import host_target
from pullback.rules.pooling import max_pool, max_spread, mean_pool, mean_spread

#: Shapes of data, window, stride, padding.
LAYERS = [
    ((32, 64, 56, 56), 2, 2, 0),
    ((32, 16, 28, 28), 2, 2, 0),
    ((8, 64, 112, 112), 3, 2, 1),
    ((16, 32, 14, 14), 3, 1, 1),
    ((32, 128, 7, 7), 7, 1, 0),
]


def by_torch(x: Array, v: Array, window: int, stride: int, pad: int) -> dict[str, Callable[[], Any]]:
    """The same by torch, nothing where it is not there."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return {}
    torch.set_num_threads(1)
    x, v = torch.from_numpy(x), torch.from_numpy(v)
    functional, aten = torch.nn.functional, torch.ops.aten
    where = functional.max_pool2d(x, window, stride, pad, return_indices=True)[1]
    lists = [window] * 2, [stride] * 2, [pad] * 2
    return {
        "mean_pool": lambda: functional.avg_pool2d(x, window, stride, pad),
        "max_pool": lambda: functional.max_pool2d(x, window, stride, pad),
        "mean_spread": lambda: aten.avg_pool2d_backward(v, x, *lists, False, True, None),
        "max_spread": lambda: aten.max_pool2d_with_indices_backward(v, x, *lists, [1, 1], False, where),
    }


def main() -> None:
    """The table."""
    bits = host_target().vector_bits
    random = np.random.default_rng(0)
    for shape, window, stride, pad in LAYERS:
        params = {"window": (window,) * 2, "stride": (stride,) * 2, "pad": ((pad, pad),) * 2}
        x = random.normal(size=shape).astype("f4")
        y = max_pool.evaluate(x, **params)
        v = random.normal(size=y.shape).astype("f4")
        peers = by_torch(x, v, window, stride, pad)
        for primitive, operands, more in (
            (mean_pool, (x,), {}),
            (max_pool, (x,), {}),
            (mean_spread, (v,), {"size": shape[2:]}),
            (max_spread, (v, x, y), {}),
        ):
            own = NativeKernel(bits, primitive, operands, {**params, **more})
            calls: dict[str, Callable[[], Any]] = {"own": own}
            if primitive.name in peers:
                calls["torch"] = peers[primitive.name]
            took = {name: statistics.median(slices) for name, slices in take_turns(calls, budget_s=0.4).items()}
            seconds = took["own"] / own.repeats
            against = f"{took['torch'] / seconds:6.2f}x torch" if "torch" in took else ""
            title = f"{shape} {window}x{window} by {stride}"
            print(
                f"{title:28} {primitive.name:12} {seconds * 1e6:8.1f} us {seconds * 1e9 / x.size:5.2f} ns a number "
                f"{against}  {own.lines} lines"
            )


if __name__ == "__main__":
    main()
