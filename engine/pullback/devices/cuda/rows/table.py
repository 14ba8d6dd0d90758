"""The table of rows that are not elementwise."""

from collections.abc import Callable
from typing import Any

from pullback.core.primitive import Primitive
from pullback.dataclass import dataclass

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Row:
    """`function(result_type, torch_dtype, *tensors, **params)`, for operands whose dtypes are of these kinds.

    The type is that of the first result, the dtype PyTorch's name for its own.
    """

    function: Function
    kinds: str
    is_view: bool


ROWS: dict[str, Row] = {}


def row_for(primitive: Primitive) -> Row | None:
    """The row of a primitive of the rule table; what users declare may have the name of one."""
    return ROWS.get(primitive.name) if Primitive.table.get(primitive.name) is primitive else None


def row(name: str, *, kinds: str = "biufc", is_view: bool = False) -> Callable[[Function], Function]:
    """Register the row of a primitive."""

    def register(function: Function) -> Function:
        ROWS[name] = Row(function, kinds, is_view)
        return function

    return register
