"""Columns of a ratio, in every table that has one."""

from sqlalchemy import Double
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.ratio import Ratio


class RatioColumns:
    """A natural-log ratio with its interval over `n` groups."""

    log_ratio: Mapped[float | None] = mapped_column(Double)
    low: Mapped[float | None] = mapped_column(Double)
    high: Mapped[float | None] = mapped_column(Double)
    n: Mapped[int | None]

    @property
    def ratio(self) -> Ratio:
        """The ratio as everything but the table has it."""
        return Ratio(self.log_ratio, self.low, self.high, self.n)
