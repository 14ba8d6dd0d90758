"""Namespaces that stand in for another module: what they define themselves, and everything else from the original."""

import importlib
from collections.abc import Callable
from typing import Any


def the_rest_of(original: str, stand_in: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that lends what it does not define from the original.

    `__getattr__, __dir__ = the_rest_of("scipy.special", __name__)`
    """

    def lend(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {stand_in!r} has no attribute {name!r}")
        module = importlib.import_module(original)
        try:
            return getattr(module, name)
        except AttributeError:
            raise AttributeError(f"module {stand_in!r} has no attribute {name!r}, nor has {original}") from None

    def names() -> list[str]:
        own = vars(importlib.import_module(stand_in))
        return sorted({*own, *dir(importlib.import_module(original))})

    return lend, names
