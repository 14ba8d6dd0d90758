"""Definitions shared by all tables: names of constraints, types of columns."""

from datetime import datetime
from typing import Annotated, Any

from sqlalchemy import BigInteger, DateTime, Dialect, Identity, MetaData, Text, TypeDecorator, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

from pullback_service.quality import quality_of

NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}

RowId = Annotated[int, mapped_column(BigInteger, Identity(always=True), primary_key=True)]
Instant = Annotated[datetime, mapped_column(DateTime(timezone=True))]
# The server's clock stamps everything that is compared later; agents' clocks may be wrong.
StampedNow = Annotated[datetime, mapped_column(DateTime(timezone=True), server_default=func.now())]
Json = Annotated[dict[str, Any], mapped_column(JSONB)]


class QualityText(TypeDecorator[str]):
    """`clean` or `busy`, also of a row of an earlier release."""

    impl = Text
    cache_ok = True

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's
        """The quality of a stored word."""
        return None if value is None else quality_of(value)


class Base(DeclarativeBase):
    """Root of the tables; `Base.metadata` is what migrations must add up to.

    The migration of a new table says whose rows it holds: see `row_security`.
    """

    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {str: Text, int: BigInteger}  # noqa: RUF012 - SQLAlchemy reads it as a plain class attribute
