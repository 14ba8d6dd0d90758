"""PyTorch, eager: the loss and `torch.autograd.grad`, on one thread; recurrent layers are those of `torch.nn`."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer
from pullback_runners.peers.weights import lstm_gradient, lstm_weights, rnn_gradient, rnn_weights
from pullback_runners.workloads import Inputs
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal
from pullback_runners.workloads.lotka_volterra import runge_kutta_step


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
            name: value if torch.is_tensor(value) else _tensor(torch, value) for name, value in form.arguments.items()
        }
        for name in form.wrt:
            tensors[name].requires_grad_()
        return list(tensors.values())


def _tensor(torch: Any, array: Any) -> Any:
    """A tensor with memory of its own; a Python number is double precision, as everywhere but in PyTorch."""
    return torch.from_numpy(np.array(array))


PEER = Torch()


@PEER.form("dense_bias_act")
def _(torch: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    activated = getattr(torch, act)
    return lambda w, x, b: (activated(w @ x + b[:, None]) ** 2).sum()


@PEER.form("conv_bias_act")
def _(torch: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    activated, conv2d = getattr(torch, act), torch.nn.functional.conv2d
    return lambda w, x, b: (activated(conv2d(x, w, b, padding=1)) ** 2).sum()


@PEER.form("touch_large_array")
def _(torch: Any, inputs: Inputs, /, *, form: str, **_: Any) -> Any:
    del torch, inputs
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: (c @ e) * p)


@PEER.form("poly9_broadcast")
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Any:
    del torch, inputs

    def total(x: Any, *coefficients: Any) -> Any:
        y = coefficients[9] * x + coefficients[8]
        for c in reversed(coefficients[:8]):
            y = y * x + c
        return y.sum()

    return total


@PEER.form("poly9_powers")
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Any:
    del torch, inputs
    return lambda x, c0, *higher: sum((c * x**power for power, c in enumerate(higher, start=1)), c0).sum()


@PEER.form("mul_restore")
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Any:
    del torch, inputs
    return lambda a, b, c: ((a @ b) ** 2).sum()  # noqa: ARG005 - nothing is overwritten


@PEER.form("mlp_step")
def _(torch: Any, inputs: Inputs, /, **_: Any) -> Form:
    functional = torch.nn.functional

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = functional.linear(x, w1, b1).relu()
        h = functional.linear(h, w2, b2).relu()
        return functional.cross_entropy(functional.linear(h, w3, b3), labels)

    # One row a sample, PyTorch's own custom.
    return Form(loss, {**inputs, "x": np.ascontiguousarray(inputs["x"].T)}, ("w1", "b1", "w2", "b2", "w3", "b3"))


@PEER.form("gmm_likelihood")
def _(torch: Any, inputs: Inputs, /, *, d: int, k: int, n: int) -> Any:
    del inputs
    rows, columns = (torch.from_numpy(part) for part in positions_below_diagonal(d))

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = torch.zeros((k, d, d), dtype=x.dtype)
        below[:, rows, columns] = factors[:, d:]
        centred = x[:, None, :] - means
        scaled = torch.exp(logs) * centred + torch.einsum("kij,nkj->nki", below, centred)
        exponents = weights + logs.sum(1) - 0.5 * (scaled**2).sum(2)
        return torch.logsumexp(exponents, 1).sum() - n * torch.logsumexp(weights, 0)

    return likelihood


@PEER.form("lotka_volterra")
def _(torch: Any, inputs: Inputs, /, *, steps: int) -> Any:
    del torch, inputs

    def end(rates: Any, start: Any) -> Any:
        numbers, (u, v) = rates.unbind(), start.unbind()
        for _ in range(steps):
            u, v = runge_kutta_step(numbers, u, v)
        return u**2 + v**2

    return end


@PEER.form("rnn")
def _(torch: Any, inputs: Inputs, /, *, hidden: int, **_: Any) -> Form:
    params = inputs["params"]
    layer = torch.nn.RNN(hidden, hidden)
    return _layer(torch, layer, rnn_weights(params), inputs["x"], lambda found: rnn_gradient(params, found))


@PEER.form("lstm")
def _(torch: Any, inputs: Inputs, /, *, hidden: int, **_: Any) -> Form:
    params = inputs["params"]
    layer = torch.nn.LSTM(hidden, hidden)
    return _layer(torch, layer, lstm_weights(params), inputs["x"], lambda found: lstm_gradient(params, found))


def _layer(
    torch: Any,
    layer: Any,
    weights: dict[str, Any],
    x: Any,
    gradients: Callable[[dict[str, Any]], dict[str, Any]],
) -> Form:
    """A layer of `torch.nn` with our weights; it has two biases that are added up, so the second is zero and stays so."""
    layer.to(_tensor(torch, x).dtype)
    own = dict(zip(("Wi", "Wh", "b"), layer.parameters(), strict=False))
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(_tensor(torch, weights[name]))
        layer.bias_hh_l0.zero_()

    def loss(*arguments: Any) -> Any:
        return (layer(arguments[-1])[0] ** 2).sum()

    return Form(loss, {**own, "x": x}, ("Wi", "Wh", "b"), gradients)
