"""Choices that are made on the machine, and on which the text of a program depends besides its key.

    provide("side of products", find)           find("512 f4") gives what is chosen for an argument
    chosen("side of products", "512 f4")        gives it while a text is written, and notes that

The choices are kept with the object, and the object is used only where the same would be chosen now.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

#: A choice: its name, its argument, and the result.
Choice: TypeAlias = tuple[str, str, str]

_finders: dict[str, Callable[[str], str]] = {}
_noted: ContextVar[list[Choice] | None] = ContextVar("choices noted", default=None)


def provide(name: str, find: Callable[[str], str]) -> None:
    """Say how something is chosen; in one process always the same for one argument."""
    _finders[name] = find


def chosen(name: str, argument: str) -> str:
    """Choices, noted for the text that is being written."""
    value = _finders[name](argument)
    noted = _noted.get()
    if noted is not None and (name, argument, value) not in noted:
        noted.append((name, argument, value))
    return value


@contextmanager
def noting() -> Iterator[list[Choice]]:
    """Collect the choices that are made inside the block."""
    noted: list[Choice] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def hold(choices: tuple[Choice, ...]) -> bool:
    """True if the same would be chosen now."""
    return all(name in _finders and _finders[name](argument) == value for name, argument, value in choices)
