"""Loading of a module: the one way from text to functions that can be called."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pullback.backends.native.linking import machine_choices, object_cache
from pullback.backends.native.linking.symbols import addresses_of
from pullback.backends.native.linking.target import host_target

if TYPE_CHECKING:
    from pullback.backends.native.linking.toolchain import Code


class LoadedProgram:
    """A program in memory. Its addresses hold as long as this object lives."""

    def __init__(self, code: "Code", text_hash: str, *, is_from_cache: bool) -> None:
        self._code = code
        self.text_hash = text_hash
        """The hash of the text that LLVM was given."""
        self.is_from_cache = is_from_cache
        """True if its object code was found on disk."""

    def address(self, name: str) -> int:
        """Address of a function that the module defines."""
        try:
            return self._code.address(name)
        except KeyError:
            raise KeyError(f"The native program defines no function {name!r} that can be seen from outside.") from None


def load(text: str | Callable[[], str], *, key: str | Callable[[], str] = "") -> LoadedProgram:
    """The module as code in memory; the text has neither triple nor data layout, they are the host's.

    A text that is yet to be written comes with a key of all it depends on, or of what makes it: it is written only
    where no object of the key is on disk. Without a key it is written, and where no objects are kept no key is made.
    """
    from pullback.backends.native.linking import toolchain  # noqa: PLC0415 - imports llvmlite, 90 ms

    target = host_target()
    made_under: list[machine_choices.Choice] = []
    if not isinstance(key, str):
        key = "" if object_cache.cache_folder() is None else key()
    if not isinstance(text, str) and (not key or object_cache.is_checking()):
        text, made_under = _written(text)
    name = object_cache.name_of(toolchain.RECIPE, target, key, text if isinstance(text, str) and not key else "")
    found = object_cache.find(name)
    if found is not None and machine_choices.hold(found.choices):
        if key and isinstance(text, str):
            _check(found, text, key)
        imports = addresses_of(found.imports)
        try:
            return LoadedProgram(toolchain.link_object(found, imports), found.text_hash, is_from_cache=True)
        except RuntimeError:  # whole, but no object for here: as good as absent
            pass
    if not isinstance(text, str):
        text, made_under = _written(text)
    made = toolchain.compile_object(text, target)
    code = toolchain.link_object(made, addresses_of(made.imports))
    object_cache.keep(name, replace(made, choices=tuple(made_under)))
    return LoadedProgram(code, made.text_hash, is_from_cache=False)


def _written(write: Callable[[], str]) -> tuple[str, list[machine_choices.Choice]]:
    with machine_choices.noting() as noted:
        return write(), noted


def _check(found: object_cache.Object, text: str, key: str) -> None:
    if found.text_hash != object_cache.hash_of(text):
        raise RuntimeError(f"Two texts have the key {key}: it leaves out something that they depend on.")
