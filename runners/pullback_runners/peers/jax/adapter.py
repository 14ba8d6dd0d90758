"""JAX: `jax.jit(jax.value_and_grad(loss))` on the CPU, arguments on the device beforehand, results awaited."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer


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
        gradient = jax.jit(form.derivative or jax.value_and_grad(form.loss, argnums=form.positions))
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
