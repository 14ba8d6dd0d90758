"""PEER: `jax.jit(jax.value_and_grad(loss))` on the CPU, arguments on the device beforehand, results awaited."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer
from pullback_runners.peers.weights import lstm_gradient, lstm_weights, rnn_gradient, rnn_weights
from pullback_runners.workloads import Inputs
from pullback_runners.workloads.gmm_likelihood import positions_below_diagonal
from pullback_runners.workloads.lotka_volterra import runge_kutta_step


class _Jax(FormsPeer):
    name = "jax"
    packages = ("jax", "jaxlib")
    environment = {  # noqa: RUF012 - never written to
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    }

    def engine(self) -> Any:
        jax = importlib.import_module("jax")
        # Without this every array would be single precision; arrays of single precision stay so.
        jax.config.update("jax_enable_x64", True)
        return jax

    def bind(self, form: Form) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        jax = self.engine()
        gradient = jax.jit(jax.value_and_grad(form.loss, argnums=form.positions))
        arguments = [jax.device_put(value) for value in form.arguments.values()]
        wait = jax.block_until_ready

        def call() -> Any:
            return wait(gradient(*arguments))

        return call, lambda result: [np.asarray(result[0]), *(np.asarray(gradient) for gradient in result[1])]

    def bind_pullback(self, form: Form) -> tuple[Any, Callable[[], Any]]:
        jax = self.engine()
        (name,) = form.wrt
        rest = {other: jax.device_put(value) for other, value in form.arguments.items() if other != name}
        value, pullback = jax.vjp(lambda x: form.loss(**{name: x}, **rest), form.arguments[name])
        # What was saved is a constant of the program, so that a call passes one number and nothing else.
        pullback = jax.jit(pullback)
        return float(value), lambda: float(pullback(1.0)[0])


PEER = _Jax()


@PEER.form("dense_bias_act")
def _(jax: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    jnp = jax.numpy
    activated = {"tanh": jnp.tanh, "relu": jax.nn.relu}[act]
    return lambda w, x, b: jnp.sum(activated(w @ x + b[:, None]) ** 2)


@PEER.form("conv_bias_act")
def _(jax: Any, inputs: Inputs, /, *, act: str, **_: Any) -> Any:
    del inputs
    jnp = jax.numpy
    activated = {"tanh": jnp.tanh, "relu": jax.nn.relu}[act]

    def loss(w: Any, x: Any, b: Any) -> Any:
        z = jax.lax.conv(x, w, (1, 1), "SAME") + b[:, None, None]
        return jnp.sum(activated(z) ** 2)

    return loss


@PEER.form("touch_large_array")
def _(jax: Any, inputs: Inputs, /, *, form: str, **_: Any) -> Any:
    del jax, inputs
    return (lambda p, c: c[1] * p) if form == "index" else (lambda p, c, e: (c @ e) * p)


@PEER.form("poly9_broadcast")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs

    def total(x: Any, *coefficients: Any) -> Any:
        y = coefficients[9] * x + coefficients[8]
        for c in reversed(coefficients[:8]):
            y = y * x + c
        return jax.numpy.sum(y)

    return total


@PEER.form("poly9_powers")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda x, c0, *higher: jax.numpy.sum(sum((c * x**power for power, c in enumerate(higher, start=1)), c0))


@PEER.form("mul_restore")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    return lambda a, b, c: jax.numpy.sum((a @ b) ** 2)  # noqa: ARG005 - nothing is overwritten


@PEER.form("mlp_step")
def _(jax: Any, inputs: Inputs, /, **_: Any) -> Any:
    del inputs
    jnp = jax.numpy

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> Any:
        h = jax.nn.relu(w1 @ x + b1[:, None])
        h = jax.nn.relu(w2 @ h + b2[:, None])
        z = w3 @ h + b3[:, None]
        return jnp.mean(jax.nn.logsumexp(z, axis=0) - z[labels, jnp.arange(len(labels))])

    return loss


@PEER.form("gmm_likelihood")
def _(jax: Any, inputs: Inputs, /, *, d: int, k: int, n: int) -> Any:
    del inputs
    jnp = jax.numpy
    rows, columns = positions_below_diagonal(d)

    def likelihood(weights: Any, means: Any, factors: Any, x: Any) -> Any:
        logs = factors[:, :d]
        below = jnp.zeros((k, d, d), x.dtype).at[:, rows, columns].set(factors[:, d:])
        centred = x[:, None, :] - means
        scaled = jnp.exp(logs) * centred + jnp.einsum("kij,nkj->nki", below, centred)
        exponents = weights + jnp.sum(logs, axis=1) - 0.5 * jnp.sum(scaled**2, axis=2)
        return jnp.sum(jax.nn.logsumexp(exponents, axis=1)) - n * jax.nn.logsumexp(weights)

    return likelihood


@PEER.form("lotka_volterra")
def _(jax: Any, inputs: Inputs, /, *, steps: int) -> Any:
    del inputs

    def end(rates: Any, start: Any) -> Any:
        numbers = tuple(rates)

        def step(state: Any, _: Any) -> tuple[Any, None]:
            return runge_kutta_step(numbers, *state), None

        (u, v), _ = jax.lax.scan(step, (start[0], start[1]), None, length=steps)
        return u**2 + v**2

    return end


@PEER.form("rnn")
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy
    params = inputs["params"]

    # The product with x before the loop, as someone who cares about speed writes it.
    def loss(wi: Any, wh: Any, b: Any, x: Any) -> Any:
        def step(h: Any, before: Any) -> tuple[Any, Any]:
            h = jnp.tanh(before + h @ wh)
            return h, h

        _, states = jax.lax.scan(step, jnp.zeros((batch, hidden), x.dtype), x @ wi + b)
        return jnp.sum(states**2)

    return _transposed(loss, rnn_weights(params), inputs["x"], lambda found: rnn_gradient(params, found))


@PEER.form("lstm")
def _(jax: Any, inputs: Inputs, /, *, batch: int, hidden: int, **_: Any) -> Form:
    jnp = jax.numpy
    params = inputs["params"]

    def loss(wi: Any, wh: Any, b: Any, x: Any) -> Any:
        def step(state: Any, before: Any) -> tuple[Any, Any]:
            h, c = state
            i, f, g, o = jnp.split(before + h @ wh, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((batch, hidden), x.dtype)
        _, states = jax.lax.scan(step, (zeros, zeros), x @ wi + b)
        return jnp.sum(states**2)

    return _transposed(loss, lstm_weights(params), inputs["x"], lambda found: lstm_gradient(params, found))


def _transposed(
    loss: Callable[..., Any],
    weights: dict[str, Any],
    x: Any,
    gradients: Callable[[dict[str, Any]], dict[str, Any]],
) -> Form:
    """A form whose matrices are (inputs, outputs), PEER's own custom."""

    def turned(arrays: dict[str, Any]) -> dict[str, Any]:
        return {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}

    return Form(loss, {**turned(weights), "x": x}, ("Wi", "Wh", "b"), lambda found: gradients(turned(found)))
