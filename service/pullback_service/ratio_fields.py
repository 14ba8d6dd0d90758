"""Fields of a ratio, in every answer and every document that has one."""

from typing import Generic, TypeVar

from pydantic import BaseModel, Field

from pullback_service.ratio import Ratio


class IntervalFields(BaseModel):
    """A natural-log ratio with its interval."""

    log_ratio: float | None = Field(examples=[0.042])
    low: float | None = Field(examples=[0.037])
    high: float | None = Field(examples=[0.048])


class RatioFields(IntervalFields):
    """The same over `n` groups."""

    n: int | None = Field(examples=[20])

    @property
    def ratio(self) -> Ratio:
        """The ratio as everything behind the answer has it."""
        return Ratio(self.log_ratio, self.low, self.high, self.n)


Number = TypeVar("Number")
Count = TypeVar("Count")


class RatioEntry(BaseModel, Generic[Number, Count]):
    """The same in a document, by the types that its numbers have to be of; what is missing is None."""

    log_ratio: Number | None = None
    low: Number | None = None
    high: Number | None = None
    n: Count | None = None


def of_ratio(path: str) -> dict[str, str]:
    """The sources of these fields for `rows_to_models`, of rows with a ratio at a path."""
    return {name: f"{path}.{name}" for name in Ratio._fields}
