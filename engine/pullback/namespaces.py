"""Namespaces that stand in for another module: what they define themselves, and everything else from the original."""

import importlib
from collections.abc import Callable
from typing import Any


def the_rest_of(original: str, stand_in: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that lends what it does not define from the original.

    `__getattr__, __dir__ = the_rest_of("scipy.special", __name__)`

    The original may be an object in a module, `"scipy.stats:norm"`. It is imported when something is first lent.
    """
    module, _, attribute = original.partition(":")

    def whole() -> Any:
        imported = importlib.import_module(module)
        return getattr(imported, attribute) if attribute else imported

    def lend(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {stand_in!r} has no attribute {name!r}")
        try:
            return getattr(whole(), name)
        except AttributeError:
            raise AttributeError(f"module {stand_in!r} has no attribute {name!r}, nor has {original}") from None

    def names() -> list[str]:
        return sorted({*vars(importlib.import_module(stand_in)), *dir(whole())})

    return lend, names
