"""PyTorch, eager: the loss and `torch.autograd.grad`, on one thread; recurrent layers are those of `torch.nn`.

On a GPU a call waits for its last kernel (`torch.cuda.synchronize`), and products and convolutions of single precision are
computed in single precision, as on the CPU: PyTorch would else convolve with the ten bits of TF32.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer, QueuedCall
from pullback_runners.workloads import CPU, CUDA


class Torch(FormsPeer):
    """Eager PyTorch."""

    name = "torch"
    packages = ("torch",)
    devices = (CPU, CUDA)

    def engine(self) -> Any:
        """Import PyTorch and keep it on one thread."""
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        return torch

    def why_not_on(self, device: str) -> str | None:
        """Without CUDA in the build, a driver or a GPU it has no other device than the CPU."""
        torch = self.engine()
        if device != CUDA or torch.cuda.is_available():
            return super().why_not_on(device)
        if torch.version.cuda is None:
            return f"torch {torch.__version__} is built without CUDA"
        return f"torch {torch.__version__} sees no device"

    def placing(self, device: str) -> AbstractContextManager[Any]:
        """New tensors on the device, while forms are written: within a call it would cost time."""
        if device == CPU:
            return nullcontext()
        torch = self.engine()
        torch.backends.cudnn.allow_tf32 = False
        context: AbstractContextManager[Any] = torch.device(device)
        return context

    def loss(self, form: Form, device: str) -> Callable[..., Any]:
        """The function that is called for the value; compiled in the variants that compile."""
        del device
        return form.loss

    def bind(self, form: Form, device: str) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        """The loss, and the gradients by what is differentiated, written nowhere but into the result."""
        torch = self.engine()
        grad = torch.autograd.grad
        with self.placing(device):
            arguments = self._tensors(form)
        wanted = [arguments[position] for position in form.positions]
        loss = self.loss(form, device)

        def call() -> Any:
            value = loss(*arguments)
            return value.detach(), grad(value, wanted)

        def arrays(result: Any) -> list[Any]:
            value, gradients = result
            return [tensor.cpu().numpy() for tensor in (value, *gradients)]

        return call if device == CPU else queued_call(torch, call), arrays

    def bind_pullback(self, form: Form) -> tuple[Any, Callable[[], Any]]:
        """The way back through a graph that is kept."""
        torch = self.engine()
        arguments = self._tensors(form)
        wanted = [arguments[position] for position in form.positions]
        value = form.loss(*arguments)
        grad, tensor, dtype = torch.autograd.grad, torch.tensor, value.dtype

        def call() -> float:
            (gradient,) = grad(value, wanted, tensor(1.0, dtype=dtype), retain_graph=True)
            return float(gradient)

        return value.item(), call

    def _tensors(self, form: Form) -> list[Any]:
        torch = self.engine()
        tensors = {
            name: value if torch.is_tensor(value) else tensor_of(torch, value) for name, value in form.arguments.items()
        }
        for name in form.wrt:
            tensors[name].requires_grad_()
        return list(tensors.values())


def tensor_of(torch: Any, array: Any) -> Any:
    """A tensor with memory of its own, where new ones are made; a Python number is double precision, as everywhere but in PyTorch."""
    return torch.as_tensor(np.array(array))


def queued_call(torch: Any, queue: Callable[[], Any]) -> QueuedCall:
    """A call that asks PyTorch's current stream for its result."""
    synchronize, event = torch.cuda.synchronize, torch.cuda.Event

    def wait(result: Any) -> Any:
        synchronize()
        return result

    @cache
    def room() -> Any:
        cached = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        return torch.empty(2 * cached, dtype=torch.uint8, device=CUDA)

    def overwrite() -> None:
        room().zero_()
        synchronize()

    return QueuedCall(queue, wait, overwrite, lambda: event(enable_timing=True))


PEER = Torch()
