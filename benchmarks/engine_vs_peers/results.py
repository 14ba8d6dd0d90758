"""Results of a run: a JSON file that grows row by row, and the figures read from it.

version 1   {"format", "version", "facts", "rows": {name: record}}; `facts` are of the machine and the versions, and rows of
            other facts are refused, since their ratios are of another machine or another peer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine_vs_peers.ratios import Interval, fastest, median_interval, paired_ratio
from benchmarks.engine_vs_peers.rows import OURS, RatioTarget, Row

FORMAT = "pullback-engine-vs-peers"
VERSION = 1


class ResultsError(Exception):
    """A file of results that cannot be used; the message says what to do."""


@dataclass(frozen=True)
class RatioResult:
    """A ratio that was asked for, and what was found; without a participant to compare with, nothing."""

    ask: RatioTarget
    against: str | None
    found: Interval | None
    at_limit: float | None
    """The ratio if our engine ran at the limit of the machine; None where no limit is measured."""

    @property
    def met(self) -> bool | None:
        """True if the median reaches the ratio that was asked for."""
        return None if self.found is None else self.found.middle >= self.ask.ratio

    @property
    def out_of_reach(self) -> bool:
        """True if the ratio asked for is beyond the limit of the machine, by the operations that the formulas have."""
        return self.met is False and self.at_limit is not None and self.ask.ratio > self.at_limit


@dataclass(frozen=True)
class Figures:
    """A row as the page shows it."""

    row: Row
    ours_us: Interval
    rounds: int
    answered: tuple[RatioResult, ...]
    peers: dict[str, tuple[float, Interval]]
    """Microseconds and ratio of every participant beside us."""
    of_limit: Interval | None
    counts: dict[str, Any] | None
    absent: dict[str, str]
    tier: str


def figures_of(row: Row, record: dict[str, Any] | None) -> Figures | None:
    """Figures of a row, or None where our engine has no times."""
    if record is None:
        return None
    entries: dict[str, dict[str, Any]] = record["participants"]
    if not entries.get(OURS, {}).get("seconds"):
        return None
    times: dict[str, Sequence[float]] = {name: entry["seconds"] for name, entry in entries.items() if entry["seconds"]}
    ours = times[OURS]
    ratios = {name: paired_ratio(theirs, ours[: len(theirs)]) for name, theirs in times.items()}
    of_limit = None
    if row.work is not None and row.work.resource in times:
        amount = entries[row.work.resource]["amount"]
        best = [row.work.amount * seconds / amount for seconds in times[row.work.resource]]
        of_limit = median_interval([possible / own for possible, own in zip(best, ours, strict=True)])
    beside = [name for name in times if name != OURS and (row.work is None or name != row.work.resource)]
    return Figures(
        row,
        median_interval([1e6 * own for own in ours]),
        len(ours),
        tuple(_answer(ask, times, ratios, of_limit) for ask in row.asks),
        {name: (1e6 * median_interval(times[name]).middle, ratios[name]) for name in beside},
        of_limit,
        record.get("counts"),
        record["absent"],
        record["tier"],
    )


def why_none(record: dict[str, Any] | None) -> str:
    """The reason why a row has no figures."""
    return "not measured" if record is None else f"our engine failed: {record['absent'].get(OURS, 'no times')}"


def _answer(
    ask: RatioTarget, times: dict[str, Sequence[float]], ratios: dict[str, Interval], of_limit: Interval | None
) -> RatioResult:
    present = {name: times[name] for name in ask.against if name in times}
    if not present:
        return RatioResult(ask, None, None, None)
    best = fastest(present)
    at_limit = ratios[best].middle / of_limit.middle if of_limit is not None else None
    return RatioResult(ask, best, ratios[best], at_limit)


def load(path: Path | None, facts: dict[str, Any]) -> dict[str, Any]:
    """The results in a file, or none yet."""
    if path is None or not path.exists():
        return {"format": FORMAT, "version": VERSION, "facts": facts, "rows": {}}
    try:
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ResultsError(f"{path} is no JSON: {error}; give another file") from error
    if results.get("format") != FORMAT or results.get("version") != VERSION:
        raise ResultsError(f"{path} holds no results of this benchmark, version {VERSION}; give another file")
    if facts != results["facts"]:
        changed = ", ".join(sorted(key for key in facts if facts[key] != results["facts"].get(key)))
        raise ResultsError(f"{path} was measured with other {changed or 'facts'}; give another file, ratios do not mix")
    return results


def save(path: Path, results: dict[str, Any]) -> None:
    """Write all results, at once or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
