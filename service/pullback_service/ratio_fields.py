"""Fields of a ratio, in every answer that has one."""

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


def of_ratio(path: str) -> dict[str, str]:
    """Where rows with a ratio at a path have these fields, for `plain`."""
    return {name: f"{path}.{name}" for name in Ratio._fields}
