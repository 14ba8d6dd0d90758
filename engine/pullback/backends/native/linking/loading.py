"""Loading of a module: the one way from text to functions that can be called."""

import itertools
import re
from collections.abc import Mapping
from typing import Any

from pullback.backends.native.linking.target import host_target

_DEFINED = re.compile(r"^define (?!internal\b|private\b)[^@\n]*@([\w.$]+)\(", re.MULTILINE)
_serials = itertools.count()


class Loaded:
    """A program in memory. Its addresses hold as long as this object lives."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def address(self, name: str) -> int:
        """Where a function that the module defines begins."""
        try:
            found: int = self._library[name]
        except KeyError:
            raise KeyError(f"The native program defines no function {name!r} that can be seen from outside.") from None
        return found


def load(text: str, *, key: str = "", imports: Mapping[str, int] | None = None) -> Loaded:
    """The module as code in memory; the text has neither triple nor data layout, they are the host's.

    What the text declares is bound to the addresses in `imports`.

    The key is part of what the object is stored under, for callers whose text depends on something that it does not show.
    """
    from pullback.backends.native.linking import toolchain  # noqa: PLC0415 - imports llvmlite

    code = toolchain.compile_object(text, host_target())
    library = toolchain.link_object(code, f"program {next(_serials)} {key}", dict(imports or {}), _DEFINED.findall(text))
    return Loaded(library)
