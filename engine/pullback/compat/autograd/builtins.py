"""Python's containers. This engine traces what is in them and leaves them what they are, so they are Python's own.

Only `isinstance` and `type` differ: a traced value answers as the array or number it stands for.
"""

import builtins
from builtins import dict, list, tuple  # noqa: A004, UP029 (public names of this module)
from typing import Any

from pullback.compat.autograd.primitives import getval

__all__ = ["dict", "isinstance", "list", "tuple", "type"]


def isinstance(value: Any, kinds: Any) -> bool:  # noqa: A001 (the public name)
    """Python's `isinstance` of the value that a traced one stands for."""
    return builtins.isinstance(getval(value), kinds)


def type(value: Any) -> Any:  # noqa: A001 (the public name)
    """Python's `type` of the value that a traced one stands for."""
    return builtins.type(getval(value))
