"""Table `step`."""

from sqlalchemy import CheckConstraint, Double, ForeignKey, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from pullback_service.base import Base
from pullback_service.models.ratios import RatioColumns


class StoredStep(RatioColumns, Base):
    """The judgement of a series at a commit against another commit; kept with every upload (`projection.py`).

    `via` says how the other commit, `reference_id`, was found: `parent`, the nearest ancestor along first parents that has a
    reading; `history`, the reading before it in history, where no ancestor is known; `none`, there is no reading before, and
    `reference_id` is the commit itself. Each reading has one row of these three. `compared` are the other commits that
    an upload measured together with this one, a row each.
    `news`: the series changed, or may have. `doubt` is a code, in words with its `detail` (`doubts.py`). `stale` rows wait for
    a task that judges them again, and are shown nowhere. `rule` is the version of the rule.
    """

    __tablename__ = "step"
    __table_args__ = (
        Index("ix_step_reference_id_series_id", "reference_id", "series_id"),
        Index("ix_step_not_by_parent", "commit_id", postgresql_where=text("via <> 'parent'")),
        Index("ix_step_first", "series_id", postgresql_where=text("via = 'none'")),
        Index("ix_step_news_at", "commit_id", "series_id", postgresql_where=text("news")),
        Index("ix_step_news_of", "series_id", "commit_id", postgresql_where=text("news")),
        Index("ix_step_stale", "commit_id", postgresql_where=text("stale")),
        CheckConstraint("via IN ('parent', 'history', 'none', 'compared')", name="via"),
    )

    series_id: Mapped[int] = mapped_column(
        ForeignKey("series.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    commit_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    reference_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    threshold: Mapped[float | None] = mapped_column(Double)
    rule: Mapped[int] = mapped_column(SmallInteger)
    news: Mapped[bool]
    stale: Mapped[bool]
    provisional: Mapped[bool]
    via: Mapped[str]
    outcome: Mapped[str | None]
    evidence: Mapped[str | None]
    doubt: Mapped[str | None]
    detail: Mapped[str | None]
