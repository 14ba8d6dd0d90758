"""Machine code, and what it takes and gives."""

from typing import Any

import numpy as np

from pullback.core.types import ArrayType
from pullback.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class NativeProgram:
    """Machine code that takes a table of pointers (inputs, outputs, arena) and gives zero; and what is in the table.

    A result other than zero means that the values are not for this program. It writes to no input.
    """

    address: int
    inputs: tuple[ArrayType, ...]
    """The inputs that are read on each call, then the constants."""
    outputs: tuple[ArrayType, ...]
    guards: tuple[bool | int, ...] = ()
    """The values that the last outputs have to have; the results of any other run are wrong for the caller."""
    constants: tuple[np.ndarray[Any, Any], ...] = ()
    arena_nbytes: int = 0
    releases: bool = False
    """True if it runs long enough for other threads to have the interpreter meanwhile."""
    owner: Any = None
    """The object that keeps the code in memory."""

    @property
    def results(self) -> tuple[ArrayType, ...]:
        """The outputs that are no guards."""
        return self.outputs[: len(self.outputs) - len(self.guards)]
