"""HIPS autograd: `value_and_grad` over its own NumPy, a tape anew on each call."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pullback_runners.peers.peer import Form, FormsPeer


class _Autograd(FormsPeer):
    name = "autograd"
    packages = ("autograd",)

    def engine(self) -> Any:
        importlib.import_module("autograd.scipy.special")
        importlib.import_module("autograd.numpy")
        return importlib.import_module("autograd")

    def bind(self, form: Form, device: str) -> tuple[Callable[[], Any], Callable[[Any], list[Any]]]:
        del device  # its arrays are NumPy's
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
