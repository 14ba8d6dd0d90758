"""The trace under all others: it evaluates each primitive on tensors as it is applied, and watches nothing."""

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pullback.core.kinds import Scalar
from pullback.core.primitive import Effect, Primitive, Trace
from pullback.core.types import ArrayType, type_of
from pullback.devices.cuda.failures import raise_device_error
from pullback.devices.cuda.tensor_calls import row_application
from pullback.devices.cuda.values import DeviceArray, device_named, tensor_of
from pullback.errors import DeviceError
from pullback.numpy_api.traced_stores import given
from pullback.rules.inplace import OverwritingPrimitive

__all__ = ["DEVICE", "DeviceArray", "DeviceTrace", "adopted", "device_named", "handed_over", "put"]


class DeviceTrace(Trace):
    """Level 0: whatever else watches is further in, and hands the device arrays it follows on to this one."""

    def __init__(self) -> None:
        #: The number of times that which primitive was evaluated on the host, its operands fetched and its results put back.
        self.on_the_host: Counter[str] = Counter()

    def apply(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate; arrays of the host among the operands are put beside the others."""
        device = device_of(primitive.name, operands)
        if primitive.effect is Effect.RESTORES:
            return operands[0]  # which was never written to
        if isinstance(primitive, OverwritingPrimitive):
            return _new_contents(primitive, operands, params)
        types = [ArrayType(x.shape, x.dtype) if type(x) is DeviceArray else type_of(x) for x in operands]
        application = row_application(primitive, types, params, device)
        if application is not None:
            try:
                made = application(*(x.tensor if type(x) is DeviceArray else x for x in operands))
            except RuntimeError as error:
                raise_device_error(error, primitive.name)
            return (
                DeviceArray(self, made) if primitive.results == 1 else tuple(DeviceArray(self, part) for part in made)
            )
        if primitive.lower is not None:
            return primitive.lower(*operands, **params)
        if is_composed(primitive):
            return primitive.evaluate(*operands, **params)
        return self._on_the_host(primitive, operands, params, device)

    def _on_the_host(
        self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], device: torch.device
    ) -> Any:
        self.on_the_host[primitive.name] += 1
        made = primitive.evaluate(*map(fetched, operands), **params)
        if primitive.results == 1:
            return self.array(made, device)
        return tuple(self.array(part, device) for part in made)

    def array(self, value: Any, device: torch.device) -> DeviceArray:
        """A plain array or number on a device."""
        return DeviceArray(self, tensor_of(value, device))


#: The one that all device arrays belong to.
DEVICE = DeviceTrace()


def _new_contents(primitive: OverwritingPrimitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The contents that an array would be given, as an array of its own: there is nothing to put back."""
    target, *others, _ = operands
    if type(target) is not DeviceArray:
        raise DeviceError(
            f"{primitive.shown(params)} writes into an array of the host; put it on the device with pb.put"
        )
    primitive.infer(*map(type_of, (target, *others, target)), **params)  # says what does not fit
    made = primitive.computed(target, *others, **params)
    return made if made.dtype == target.dtype else made.astype(target.dtype)


def adopted(array: Any) -> DeviceArray:
    """A tensor of PyTorch or an array of CuPy as a device array, in the same memory."""
    tensor = array.detach() if isinstance(array, torch.Tensor) else torch.from_dlpack(array)
    if tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "cuda"):
        raise DeviceError(f"a {tensor.layout} tensor on {tensor.device} is not taken; pass a dense one on cuda or cpu")
    if tensor.numel() and not tensor.untyped_storage().nbytes():
        raise DeviceError(
            f"the memory of a tensor of shape {tuple(tensor.shape)} was freed by its owner (its storage has no bytes); pass one that has its memory"
        )
    return given(DeviceArray(DEVICE, tensor))


def put(value: Any, device: torch.device) -> DeviceArray:
    """A NumPy array of the caller's on a device."""
    try:
        return given(DEVICE.array(value, device))
    except RuntimeError as error:
        raise_device_error(error, f"an array of {np.asarray(value).nbytes} bytes")


def handed_over(array: DeviceArray, kind: str) -> Any:
    """A device array as an array of "torch" or "cupy", in the same memory."""
    return array.tensor if kind == "torch" else importlib.import_module(kind).from_dlpack(array.tensor)


def device_of(name: str, operands: Sequence[Any]) -> torch.device:
    """The device of the device arrays among operands; an error if there are several."""
    devices = {x.tensor.device for x in operands if type(x) is DeviceArray}
    if len(devices) > 1:
        raise DeviceError(
            f"{name} got arrays on {' and '.join(sorted(map(str, devices)))}; put them on one device with pb.put"
        )
    return devices.pop()


def is_composed(primitive: Primitive) -> bool:
    """True if an elementwise primitive is a Python function of others, which then run on the device."""
    return isinstance(primitive, Scalar) and not isinstance(primitive.ufunc, np.ufunc) and primitive.name not in _OPAQUE


#: Composed functions that look into the bits of a number, or call what has no face for traced values.
_OPAQUE = frozenset({"binary_exponent", "zeta"})


def fetched(value: Any) -> Any:
    """A NumPy array for a device array; anything else is itself."""
    return value.fetched() if type(value) is DeviceArray else value
