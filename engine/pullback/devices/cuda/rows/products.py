"""Rows of products of matrices and of convolutions: the libraries that PyTorch brings, in the precision that is in force.

PyTorch's own switches are for PyTorch's programs: whatever they say, TF32 is off unless `pb.precision("tf32")` is around, and they
are put back. Algorithms of convolutions that differ from run to run are not taken.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional

from pullback.core.types import ArrayType, Shape
from pullback.devices import precision_in_force
from pullback.devices.cuda.rows.table import row
from pullback.rules.sliding import Pads

#: The dtypes whose products PyTorch's switch is for.
_SINGLE = frozenset({torch.float32, torch.complex64})

_SWITCH = torch.backends.cuda.matmul


#: Held while a switch is looked at, set, found by PyTorch and put back: the switches are the process's, and threads multiply at once.
_switches = threading.RLock()


def _after_fork_in_child() -> None:
    global _switches  # noqa: PLW0603 - a thread that is not there any more may have held it
    _switches = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def multiplied(multiply: Callable[..., Tensor], a: Tensor, b: Tensor, **out: Tensor) -> Tensor:
    """A product by a function of PyTorch in the precision that is in force."""
    if a.dtype not in _SINGLE:
        return multiply(a, b, **out)
    with _switches, _products(tf32=precision_in_force() == "tf32"):
        return multiply(a, b, **out)


@contextmanager
def _products(*, tf32: bool) -> Iterator[None]:
    """PyTorch's switch for products as it is wanted."""
    if _allows_tf32() == tf32:
        yield
        return
    newer = getattr(_SWITCH, "fp32_precision", None)
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:  # the newer switch alone was set, to what the older one does not say
        older = "highest" if newer == "tf32" else "high"
    _SWITCH.allow_tf32 = tf32  # which sets both
    try:
        yield
    finally:
        if older == "medium":
            torch.set_float32_matmul_precision(older)
        else:  # which leaves the host's switch alone
            _SWITCH.allow_tf32 = older == "high"
        if newer is not None:
            _SWITCH.fp32_precision = newer


def _allows_tf32() -> bool:
    try:
        return bool(_SWITCH.allow_tf32)
    except RuntimeError:  # as above
        return bool(_SWITCH.fp32_precision == "tf32")


@row("matmul", kinds="fc")
def _matmul(_result: ArrayType, dtype: torch.dtype, a: Tensor, b: Tensor) -> Tensor:
    return multiplied(torch.matmul, a.to(dtype), b.to(dtype))


#: By dtype, the channels in whole multiples of which tensor cores of a GPU convolve.
_CHANNELS = {torch.float16: 8, torch.float32: 4}


def memory_format(dtype: torch.dtype, weight: Shape, groups: int) -> torch.memory_format:
    """The format that cuDNN is given both operands in: channels last where it computes by tensor cores, else C order.

    These compute in that format alone, and cuDNN would transpose operands in C order by itself. Whether it is the faster one is
    for a device to say: docs/decisions/0207-convolutions-by-tensor-cores-have-their-channels-last.md.
    """
    by_tensor_cores = dtype != torch.float32 or precision_in_force() == "tf32"
    multiple = _CHANNELS.get(dtype, 0) if by_tensor_cores else 0
    if not multiple or len(weight) != 4 or groups != 1 or any(channels % multiple for channels in weight[:2]):
        return torch.contiguous_format
    return torch.channels_last


_CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}


@contextmanager
def _settled() -> Iterator[None]:
    """PyTorch's switches for convolutions as they are wanted."""
    wanted = precision_in_force() == "tf32"
    with _switches, torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=wanted):
        yield


def _padded(x: Tensor, pad: Pads) -> Tensor:
    ends = [end for ends in reversed(pad) for end in ends]
    return functional.pad(x, ends) if any(ends) else x


@row("conv", kinds="f")
def _conv(
    _result: ArrayType,
    dtype: torch.dtype,
    w: Tensor,
    x: Tensor,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
) -> Tensor:
    order = memory_format(dtype, w.shape, groups)
    x, w = (operand.contiguous(memory_format=order) for operand in (_padded(x.to(dtype), pad), w.to(dtype)))
    with _settled():
        return _CONVOLUTIONS[len(stride)](x, w, None, stride, 0, dilation, groups).contiguous()


def _backward(
    y: Tensor, x: Tensor, w: Tensor, stride: Shape, dilation: Shape, groups: int, mask: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    none = [0] * len(stride)
    order = memory_format(y.dtype, w.shape, groups)
    # PyTorch brings the cotangent into the format of the operand that is read, and only looks at the shape of the other.
    x, w = (
        operand.contiguous(memory_format=order) if reads else operand for operand, reads in ((x, mask[1]), (w, mask[0]))
    )
    with _settled():
        results: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
            y.contiguous(), x, w, None, list(stride), none, list(dilation), False, none, groups, mask
        )
        return results


@row("conv_data_gradient", kinds="f")
def _conv_data_gradient(
    result: ArrayType,
    dtype: torch.dtype,
    w: Tensor,
    y: Tensor,
    size: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
) -> Tensor:
    wide = [length + low + high for length, (low, high) in zip(size, pad, strict=True)]
    x = torch.empty(1, dtype=dtype, device=y.device).expand(*result.shape[:2], *wide)  # of which the shape is read
    gradient, _, _ = _backward(y.to(dtype), x, w.to(dtype), stride, dilation, groups, [True, False, False])
    interior = tuple(slice(low, low + length) for length, (low, _) in zip(size, pad, strict=True))
    return gradient.contiguous()[(..., *interior)]


@row("conv_weight_gradient", kinds="f")
def _conv_weight_gradient(
    result: ArrayType,
    dtype: torch.dtype,
    y: Tensor,
    x: Tensor,
    kernel: Shape,
    stride: Shape,
    pad: Pads,
    dilation: Shape,
    groups: int,
) -> Tensor:
    del kernel
    w = torch.empty(1, dtype=dtype, device=y.device).expand(result.shape)
    _, gradient, _ = _backward(
        y.to(dtype), _padded(x.to(dtype), pad), w, stride, dilation, groups, [False, True, False]
    )
    return gradient.contiguous()
