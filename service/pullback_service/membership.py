"""Membership in many values, as one parameter.

`IN` of a hundred values is a hundred parameters: rendered, sent and planned anew each time, because the driver prepares no
statement of so many. An array is one, and the statement stays the same however long it is.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, any_, literal
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import InstrumentedAttribute


def among(column: InstrumentedAttribute[Any], values: Collection[Any]) -> ColumnElement[bool]:
    """A column that has one of some values."""
    return column == any_(literal(list(values), ARRAY(column.type)))
