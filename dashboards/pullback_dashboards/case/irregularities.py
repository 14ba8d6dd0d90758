"""Spikes, drift and noisier stretches of series in words, with the sign that charts have for them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pullback_dashboards import links
from pullback_dashboards.history import metric_label
from pullback_dashboards.wording import factors
from pullback_dashboards.wording.plurals import counted
from pullback_service.incidents.irregularities import Irregularity, NewestReadings, irregularities_of

_SHORT = 7
_HARDLY_VARIED = 50.0


@dataclass(frozen=True)
class IrregularityLine:
    """A spike, drift or noisier stretch of a series since a commit; `commits` is the number of commits from its first to its last."""

    variant: str
    metric: str
    kind: str
    commit: str
    commit_href: str
    last: str
    commits: int
    log_ratio: float

    @property
    def metric_in_words(self) -> str:
        """The metric."""
        return metric_label(self.metric)

    @property
    def sign(self) -> str:
        """The sign for it in charts."""
        if self.kind == "drift":
            return "↗" if self.log_ratio > 0 else "↘"
        return {"spike": "◇", "noisier": "≈"}[self.kind]

    @property
    def words(self) -> str:
        """The sentence about it up to the commit."""
        if self.kind == "drift":
            return f"{self._direction} little by little over {counted(self.commits, 'commit')} since"
        return "results vary more since" if self.kind == "noisier" else "two results stood out at"

    @property
    def short(self) -> str:
        """The commit by its first digits."""
        return self.commit[:_SHORT]

    @property
    def amount(self) -> str:
        """Its size, and its end."""
        if self.kind == "drift":
            return f"{factors.shift(self.log_ratio)} in all"
        if self.kind == "spike":
            until = "" if self.last == self.commit else f" up to {self.last[:_SHORT]}"
            return f"{factors.shift(self.log_ratio)}{until}, and back"
        times = math.exp(self.log_ratio)
        return f"{times:.1f} times as much" if times < _HARDLY_VARIED else "they hardly varied before"

    @property
    def _direction(self) -> str:
        if self.metric == "time":
            return "slower" if self.log_ratio > 0 else "faster"
        return "higher" if self.log_ratio > 0 else "lower"


def lines_of_case(project: str, newest: Sequence[NewestReadings]) -> tuple[IrregularityLine, ...]:
    """Spikes, drift and noisier stretches in the newest readings of each series of a case."""
    return tuple(
        line_of(project, each.variant, each.metric, one, each.shas)
        for each in newest
        for one in irregularities_of(each.readings)
    )


def line_of(project: str, variant: str, metric: str, one: Irregularity, shas: Mapping[int, str]) -> IrregularityLine:
    """One of them, given the commits of its readings."""
    commit = shas[one.first_id]
    href = links.commit(project, commit)
    return IrregularityLine(variant, metric, one.kind, commit, href, shas[one.last_id], one.commits, one.size)
