"""The device array: a PyTorch tensor with NumPy's face, under the lowest trace of all.

Being a traced value it reaches the rules through NumPy's two protocols, so plain NumPy functions compute on it, and tapes,
forward sweeps and recorders follow it as they follow an array. Its tensor is never written to: a store makes a new one.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn, cast

import numpy as np
import torch

from pullback.core.primitive import Trace, TracedValue
from pullback.devices.cuda.failures import raise_device_error
from pullback.errors import DeviceError, TracingError
from pullback.numpy_api.call_sites import refusal
from pullback.numpy_api.tracer import Tracer, class_of

_DTYPES = {
    np.dtype(name): getattr(torch, name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip
_NUMPY_DTYPES = {theirs: ours for ours, theirs in _DTYPES.items()}


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    """PyTorch's name for a dtype."""
    own = _DTYPES.get(dtype)
    if own is None:
        raise DeviceError(f"an array of dtype {dtype} cannot be put on a device; convert it with astype first")
    return own


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """NumPy's name for a dtype."""
    own = _NUMPY_DTYPES.get(dtype)
    if own is None:
        raise DeviceError(f"a tensor of dtype {dtype} has no NumPy dtype; convert it, for example with tensor.float()")
    return own


class DeviceArray(Tracer):
    """An array in the memory of a device. Make one with `pb.put`, get a NumPy array of one with `pb.fetch`."""

    __slots__ = ("_dtype", "tensor")
    on_device = True

    def __init__(self, trace: Trace, tensor: torch.Tensor) -> None:
        self.traced_by = trace
        self.tensor = tensor
        self.memory = None
        self._dtype = numpy_dtype(tensor.dtype)

    @property  # type: ignore[misc]  # as in Tracer
    def __class__(self) -> type:
        """An array, or the scalar type of an array without axes."""
        return class_of(self.shape, self._dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name for the dtype of the tensor."""
        return self._dtype

    @property
    def device(self) -> str:
        """The name of the device: "cuda:0", or "cpu" for memory of the host that PyTorch computes in."""
        return str(self.tensor.device)

    def alias(self) -> "DeviceArray":
        """The same value under another name."""
        return DeviceArray(self.traced_by, self.tensor)

    def filled(self, value: int) -> "DeviceArray":
        """An array like this one, of one number."""
        return DeviceArray(self.traced_by, torch.full_like(self.tensor, value, memory_format=torch.contiguous_format))

    def placed(self, value: Any) -> Any:
        """A plain value in the type and on the device of this one; what is traced as it is."""
        if isinstance(value, TracedValue):
            return value
        host = np.broadcast_to(np.asarray(value, self._dtype), self.shape)
        return DeviceArray(self.traced_by, tensor_of(host, self.tensor.device))

    def on(self, device: torch.device) -> "DeviceArray":
        """The same on a device: itself where it is there."""
        return self if self.tensor.device == device else DeviceArray(self.traced_by, self.tensor.to(device))

    def separated(self, others: Sequence[Any]) -> "DeviceArray":
        """Itself, or a copy where it shares memory with one of the others, or one place stands for several elements."""
        shared = any(type(other) is DeviceArray and _storage(self.tensor) == _storage(other.tensor) for other in others)
        stretched = any(not step and size > 1 for step, size in zip(self.tensor.stride(), self.shape, strict=True))
        if not shared and not stretched:
            return self
        return DeviceArray(self.traced_by, self.tensor.clone(memory_format=torch.contiguous_format))

    def may_share_memory(self, other: Any) -> bool:
        """True if a byte between the first and the last element of each is the other's too."""
        if type(other) is not DeviceArray or _storage(self.tensor) != _storage(other.tensor):
            return False
        (first, end), (other_first, other_end) = _bytes_of(self.tensor), _bytes_of(other.tensor)
        return first < other_end and other_first < end

    def held(self) -> torch.Tensor:
        """The tensor of what it holds now, after stores."""
        now = self.current()
        if type(now) is not DeviceArray:
            raise refusal("a plain array")
        return now.tensor

    def fetched(self) -> Any:
        """A NumPy array of the elements; without axes a NumPy scalar."""
        try:
            host = self.held().resolve_conj().resolve_neg().cpu().numpy()
        except RuntimeError as error:
            raise_device_error(error, f"fetching {self!r}")
        return np.array(host)[()]

    def _known(self, kind: str) -> Any:
        del kind
        return self.fetched()

    def __bool__(self) -> bool:
        return bool(self.fetched())

    def __int__(self) -> int:
        return int(self.fetched())

    def __index__(self) -> int:
        if self._dtype.kind not in "iu" or self.shape:
            raise TypeError(f"only integers can be indices, not a device array of {self._dtype}{list(self.shape)}")
        return int(self)

    def __array__(self, *args: Any, **keywords: Any) -> NoReturn:
        """Refuse: transfers must be explicit."""
        del args, keywords
        raise TracingError(f"an array on {self.device} does not become a NumPy array unasked; write pb.fetch(x)")

    def __dlpack__(self, **keywords: Any) -> Any:
        """The tensor, for other libraries."""
        return self.held().__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """The device of the tensor, for other libraries."""
        return cast("tuple[Any, int]", self.tensor.__dlpack_device__())

    def __repr__(self) -> str:
        return f"<array {self._dtype}{list(self.shape)} on {self.device}>"


def _bytes_of(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its storage that a tensor lies in: the first, and the one behind the last."""
    if not tensor.numel():
        return 0, 0
    extent = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    first = tensor.storage_offset() * tensor.element_size()
    return first, first + (extent + 1) * tensor.element_size()


def _storage(tensor: torch.Tensor) -> Any:
    return tensor.device, tensor.untyped_storage().data_ptr()


def device_named(name: str) -> torch.device:
    """The device of a name: "cuda" for PyTorch's current one, "cuda:1", or "cpu" for PyTorch on the host."""
    device = _parsed(name)
    if device.type == "cpu":
        return device
    return _usable(name, torch.cuda.current_device() if device.index is None else device.index)


@cache
def _parsed(name: str) -> torch.device:
    """The device of a name that PyTorch may use, with a number if the name has one."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise DeviceError(f'there is no device {name!r}; write "cuda", "cuda:1" or "cpu"') from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise DeviceError(f'there is no device {name!r} for arrays; write "cuda", "cuda:1" or "cpu"')
    if torch.version.cuda is None:
        raise DeviceError(
            f"{name} is not there: the PyTorch that is installed ({torch.__version__}) is one without CUDA; "
            "install one with it"
        )
    if not torch.cuda.is_available():
        raise DeviceError(f"{name} is not there: CUDA finds no GPU and driver that PyTorch {torch.__version__} can use")
    return device


@cache
def _usable(name: str, number: int) -> torch.device:
    """The device of a number, if kernels are written for it."""
    if number >= torch.cuda.device_count():
        raise DeviceError(f"{name} is not there: CUDA sees {torch.cuda.device_count()} devices, numbered from 0")
    major, minor = torch.cuda.get_device_capability(number)
    if major < 8:
        raise DeviceError(f"{name} has compute capability {major}.{minor}; 8.0 is the least that is supported")
    return torch.device("cuda", number)


def tensor_of(value: Any, device: torch.device) -> torch.Tensor:
    """A NumPy array or number as a tensor on a device, in memory of its own."""
    host = np.asarray(value)
    own = np.array(host.astype(host.dtype.newbyteorder("="), copy=False), order="C", copy=True)
    torch_dtype(own.dtype)
    return torch.from_numpy(own).to(device)
