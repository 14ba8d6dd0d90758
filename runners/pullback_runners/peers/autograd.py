"""HIPS autograd: `value_and_grad` over its own NumPy, a tape anew on each call."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer
from pullback_runners.peers.weights import lstm_gradient, lstm_weights, rnn_gradient, rnn_weights
from pullback_runners.workloads import Inputs
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal
from pullback_runners.workloads.lotka_volterra import runge_kutta_step


class _Autograd(FormsPeer):
    name = "autograd"
    packages = ("autograd",)

    def engine(self) -> Any:
        importlib.import_module("autograd.scipy.special")
        importlib.import_module("autograd.numpy")
        return importlib.import_module("autograd")

    def bind(self, form: Form) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        # A tuple of one for one argument too, so that every result has the same form.
        gradient = self.engine().value_and_grad(_of_wanted_first(form))
        wanted = tuple(form.arguments[name] for name in form.wrt)
        return partial(gradient, wanted), lambda result: [result[0], *result[1]]

    def bind_pullback(self, form: Form) -> tuple[Any, Callable[[], Any]]:
        (name,) = form.wrt
        rest = {other: value for other, value in form.arguments.items() if other != name}
        pullback, value = self.engine().make_vjp(lambda x: form.loss(**{name: x}, **rest))(form.arguments[name])
        return value, lambda: float(pullback(1.0))


def _of_wanted_first(form: Form) -> Callable[[Any], Any]:
    """The loss as a function of the tuple of what is differentiated."""
    arguments, positions = list(form.arguments.values()), form.positions

    def loss(wanted: Any) -> Any:
        placed = list(arguments)
        for position, value in zip(positions, wanted, strict=True):
            placed[position] = value
        return form.loss(*placed)

    return loss


PEER = _Autograd()


def _activation(anp: Any, act: str) -> Callable[[Any], Any]:
    return {"tanh": anp.tanh, "relu": lambda x: anp.maximum(x, 0)}[act]  # type: ignore[no-any-return]


@PEER.form("dense_bias_act")
def _(autograd: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    anp = autograd.numpy
    activated = _activation(anp, act)
    return lambda w, x, b: anp.sum(activated(anp.dot(w, x) + b[:, None]) ** 2)


@PEER.form("touch_large_array")
def _(autograd: Any, inputs: Inputs, /, *, form: str, **_: Any) -> Any:
    del inputs
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: autograd.numpy.dot(c, e) * p)


@PEER.form("poly9_broadcast")
def _(autograd: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs

    def total(x: Any, *coefficients: Any) -> Any:
        y = coefficients[9] * x + coefficients[8]
        for c in reversed(coefficients[:8]):
            y = y * x + c
        return autograd.numpy.sum(y)

    return total


@PEER.form("poly9_powers")
def _(autograd: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda x, c0, *higher: autograd.numpy.sum(sum((c * x**power for power, c in enumerate(higher, start=1)), c0))


@PEER.form("mul_restore")
def _(autograd: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda a, b, c: autograd.numpy.sum(autograd.numpy.dot(a, b) ** 2)  # noqa: ARG005 - nothing is overwritten


@PEER.form("mlp_step")
def _(autograd: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    anp = autograd.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = anp.maximum(anp.dot(w1, x) + b1[:, None], 0)
        h = anp.maximum(anp.dot(w2, h) + b2[:, None], 0)
        z = anp.dot(w3, h) + b3[:, None]
        return anp.mean(autograd.scipy.special.logsumexp(z, axis=0) - z[labels, np.arange(len(labels))])

    return loss


@PEER.form("gmm_likelihood")
def _(autograd: Any, inputs: Inputs, /, *, d: int, k: int, n: int) -> Any:
    del inputs
    anp, logsumexp = autograd.numpy, autograd.scipy.special.logsumexp
    rows, columns = positions_below_diagonal(d)
    places = np.full((d, d), len(rows))
    places[rows, columns] = np.arange(len(rows))

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = anp.concatenate([factors[:, d:], np.zeros((k, 1), x.dtype)], axis=1)[:, places]
        centred = x[:, None, :] - means
        scaled = anp.exp(logs) * centred + anp.einsum("kij,nkj->nki", below, centred)
        exponents = weights + anp.sum(logs, axis=1) - 0.5 * anp.sum(scaled**2, axis=2)
        return anp.sum(logsumexp(exponents, axis=1)) - n * logsumexp(weights)

    return likelihood


@PEER.form("lotka_volterra")
def _(autograd: Any, inputs: Inputs, /, *, steps: int) -> Any:
    del autograd, inputs

    def end(rates: Any, start: Any) -> Any:
        (a, b, c, d), (u, v) = (rates[i] for i in range(4)), (start[0], start[1])
        for _ in range(steps):
            u, v = runge_kutta_step((a, b, c, d), u, v)
        return u**2 + v**2

    return end


@PEER.form("rnn")
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int) -> Form:
    anp = autograd.numpy
    params = inputs["params"]

    def loss(wi: Any, wh: Any, b: Any, x: Any) -> Any:
        before = anp.dot(x, wi.T) + b
        h, total = np.zeros((batch, hidden), x.dtype), 0.0
        for t in range(steps):
            h = anp.tanh(before[t] + anp.dot(h, wh.T))
            total = total + anp.sum(h**2)
        return total

    return Form(
        loss, {**rnn_weights(params), "x": inputs["x"]}, ("Wi", "Wh", "b"), lambda found: rnn_gradient(params, found)
    )


@PEER.form("lstm")
def _(autograd: Any, inputs: Inputs, /, *, steps: int, batch: int, hidden: int) -> Form:
    anp = autograd.numpy
    params = inputs["params"]

    def sigmoid(z: Any) -> Any:
        return 0.5 * (anp.tanh(0.5 * z) + 1.0)

    def loss(wi: Any, wh: Any, b: Any, x: Any) -> Any:
        before = anp.dot(x, wi.T) + b
        h = c = np.zeros((batch, hidden), x.dtype)
        total = 0.0
        for t in range(steps):
            z = before[t] + anp.dot(h, wh.T)
            i, f, o = sigmoid(z[:, :hidden]), sigmoid(z[:, hidden : 2 * hidden]), sigmoid(z[:, 3 * hidden :])
            c = f * c + i * anp.tanh(z[:, 2 * hidden : 3 * hidden])
            h = o * anp.tanh(c)
            total = total + anp.sum(h**2)
        return total

    return Form(
        loss, {**lstm_weights(params), "x": inputs["x"]}, ("Wi", "Wh", "b"), lambda found: lstm_gradient(params, found)
    )
