"""JAX: `jax.jit(jax.value_and_grad(loss))`, arguments on the device beforehand, results awaited.

On a GPU products and convolutions of single precision are computed in single precision, as on the CPU: the default there
is TF32, of ten bits.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback_runners.peers.peer import Form, FormsPeer, QueuedCall
from pullback_runners.workloads import CPU, CUDA

_OVERWRITTEN_BYTES = 2**28
"""Twice what the largest caches hold (126 MB of a B200): JAX does not say how large that of a device is."""


class _Jax(FormsPeer):
    name = "jax"
    packages = ("jax", "jaxlib")
    devices = (CPU, CUDA)
    environment = {  # noqa: RUF012 - never written to
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    }

    def engine(self) -> Any:
        jax = importlib.import_module("jax")
        # Without this every array would be single precision; arrays of single precision stay so.
        jax.config.update("jax_enable_x64", True)
        return jax

    def why_not_on(self, device: str) -> str | None:
        reason = super().why_not_on(device)
        if reason is not None:
            return reason
        try:
            self.engine().devices(device)
        except Exception as error:  # noqa: BLE001 - RuntimeError, or an AssertionError without words: no GPU, no driver, no plugin
            return f"jax: {str(error).partition(chr(10))[0] or 'it has no backend for ' + device}"
        return None

    def bind(self, form: Form, device: str) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        jax = self.engine()
        if device != CPU:
            jax.config.update("jax_default_matmul_precision", "highest")
        place = jax.devices(device)[0]
        gradient = jax.jit(form.derivative or jax.value_and_grad(form.loss, argnums=form.positions))
        arguments = [jax.device_put(value, place) for value in form.arguments.values()]
        wait = jax.block_until_ready

        def queue() -> Any:
            return gradient(*arguments)

        def arrays(result: Any) -> list[Any]:
            return [np.asarray(result[0]), *(np.asarray(gradient) for gradient in result[1])]

        if device == CPU:
            return lambda: wait(gradient(*arguments)), arrays
        written = jax.jit(lambda value: jax.numpy.full(_OVERWRITTEN_BYTES, value))
        value = jax.device_put(np.uint8(1), place)
        return QueuedCall(queue, wait, lambda: wait(written(value))), arrays

    def bind_pullback(self, form: Form) -> tuple[Any, Callable[[], Any]]:
        jax = self.engine()
        (name,) = form.wrt
        rest = {other: jax.device_put(value) for other, value in form.arguments.items() if other != name}
        value, pullback = jax.vjp(lambda x: form.loss(**{name: x}, **rest), form.arguments[name])
        # What was saved is a constant of the program, so that a call passes one number and nothing else.
        pullback = jax.jit(pullback)
        return float(value), lambda: float(pullback(1.0)[0])


PEER = _Jax()
