"""PyTorch, eager: the loss and `torch.autograd.grad`, on one thread; recurrent layers are those of `torch.nn`."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer


class Torch(FormsPeer):
    """Eager PyTorch."""

    name = "torch"
    packages = ("torch",)

    def engine(self) -> Any:
        """Import PyTorch and keep it on one thread."""
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        return torch

    def loss(self, form: Form) -> Callable[..., Any]:
        """What is called for the value; compiled where that is the point."""
        return form.loss

    def bind(self, form: Form) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        """The loss, and the gradients by what is differentiated, written nowhere but into the result."""
        grad = self.engine().autograd.grad
        arguments = self._tensors(form)
        wanted = [arguments[position] for position in form.positions]
        loss = self.loss(form)

        def call() -> Any:
            value = loss(*arguments)
            return value.detach(), grad(value, wanted)

        return call, lambda result: [result[0].numpy(), *(gradient.numpy() for gradient in result[1])]

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
    """A tensor with memory of its own; a Python number is double precision, as everywhere but in PyTorch."""
    return torch.from_numpy(np.array(array))


PEER = Torch()
