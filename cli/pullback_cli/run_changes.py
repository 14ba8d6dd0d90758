"""The changes between commits that `run --commits` measured one after another, by the rule that pages judge by."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple
from uuid import UUID

from pullback_cli.receipt_text import WORDS, changes_line, series_in_words
from pullback_runners.workloads import Case
from pullback_service.comparisons.judging import Judgement, judge, of_equal_code, trend, urgency
from pullback_service.measured_code.code_identity import CodeIdentity, is_equal_code, other_level
from pullback_service.quality import quality_of
from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Reading, reading_of
from pullback_service.readings.report_pooling import MeasuredPoint, pool
from pullback_service.uploaded_claims import BESIDE, COUNTED_IN_ONE_SESSION, EXACT_METRICS

Report = Mapping[str, Any]

_IN_NO_DATABASE: Final = (0, 0, datetime.min.replace(tzinfo=UTC), UUID(int=0), 1)
"""Stands for the ids of a reading, its commit's place and its report."""


class _Series(NamedTuple):
    """A metric of a variant of a case, as its commit measured it."""

    reading: Reading
    measured: CodeIdentity


@dataclass(frozen=True)
class Change:
    """A commit against the one that was measured before it: every series that both or one of them has, worst first."""

    reference: str
    candidate: str
    judged: Sequence[tuple[tuple[str, str, str], Judgement]]

    @classmethod
    def between(cls, older: Report, newer: Report) -> "Change":
        """The change from one report to the next of the same machine."""
        before, now = dict(_series(older)), dict(_series(newer))
        failed_before, failed = _failures(older), _failures(newer)
        judged = [
            (key, _judged(key[2], before.get(key), now.get(key), failed_before.get(key[:2]), failed.get(key[:2])))
            for key in dict.fromkeys([*before, *now])
        ]
        judged.sort(key=lambda each: urgency(each[1], bigger_is_better=False))
        return cls(older["commit"]["sha"], newer["commit"]["sha"], judged)

    @property
    def found(self) -> list[tuple[tuple[str, str, str], Judgement]]:
        """The series that changed, or are likely to have."""
        return [each for each in self.judged if _trend(each[1]) != "neither"]

    @property
    def not_comparable(self) -> int:
        """The number of series that do not compare, such as those that one of the commits does not have."""
        return sum(judgement.outcome == "not_comparable" for _, judgement in self.judged)

    def line(self) -> str:
        """The change in a line."""
        counts = Counter(_trend(judgement) for _, judgement in self.judged if judgement.outcome != "failed")
        counts["failed"] = len({key[:2] for key, judgement in self.judged if judgement.outcome == "failed"})
        named = ""
        if self.found:
            (case, variant, metric), judgement = self.found[0]
            named = series_in_words(case, variant, metric, judgement.outcome, judgement.ratio.log_ratio)
        said = changes_line(
            self.reference,
            [(counts[name], words) for name, words in WORDS],
            series=len(self.judged),
            not_comparable=self.not_comparable,
            named=named,
        )
        return f"{self.candidate[:10]} {said}"

    def document(self) -> dict[str, Any]:
        """The change as `--json` shows it."""
        return {
            "reference": self.reference,
            "series": len(self.judged),
            "not_comparable": self.not_comparable,
            "changed": [
                {
                    "case": case,
                    "variant": variant,
                    "metric": metric,
                    "outcome": judgement.outcome,
                    "log_ratio": judgement.ratio.log_ratio,
                    "reason": judgement.reason,
                }
                for (case, variant, metric), judgement in self.found
            ],
        }


def changes_between(reports: Sequence[Report]) -> list[Change]:
    """The changes from each report to the next, in their order."""
    return [Change.between(*pair) for pair in pairwise(reports)]


def lines_of(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each change; one for all of them where every series compares and none changed."""
    if changes and not any(change.found or change.not_comparable for change in changes):
        shas = [changes[0].reference, *(change.candidate for change in changes)]
        series = max(len(change.judged) for change in changes)
        yield f"{shas[0][:10]} to {shas[-1][:10]}: no change found in {series} series of {len(shas)} commits"
    else:
        yield from (change.line() for change in changes)


def _trend(judgement: Judgement) -> str:
    return trend(judgement.outcome, bigger_is_better=False)


def _judged(
    metric: str, before: _Series | None, now: _Series | None, failed_before: str | None, failed: str | None
) -> Judgement:
    measured = [CodeIdentity() if each is None else each.measured for each in (before, now)]
    judgement = judge(
        None if before is None else before.reading,
        None if now is None else now.reading,
        (),
        exact=metric in EXACT_METRICS,
        counted_together=COUNTED_IN_ONE_SESSION.get(metric),
        failure=failed,
        reference_failure=failed_before,
        other_level=other_level(*measured),
    )
    return of_equal_code(judgement) if is_equal_code(*measured) else judgement


def _failures(report: Report) -> dict[tuple[str, str], str]:
    """The reasons of variants that failed, by case and variant."""
    return {
        (Case.of_document(case["case"]).name, variant["variant"]): variant["error"]["message"]
        for case in report["cases"]
        for variant in case["variants"]
        if variant["error"]
    }


def _series(report: Report) -> Iterator[tuple[tuple[str, str, str], _Series]]:
    """The series of a report by case, variant and metric: what was seen of variants that did not fail."""
    harness = report["harness"]
    quality = quality_of(harness["quality"])
    for case in report["cases"]:
        paired = {(row["variant"], row["metric"]): row for row in case["paired"]}
        for variant in case["variants"]:
            digests = variant.get("digests") or {}
            measured = CodeIdentity(digests.get("workload") or "", digests.get("subject") or "", harness["version"])
            for name, metric in variant["metrics"].items():
                processes = metric.get("processes")
                value = statistics.median(processes) if processes else metric.get("value")
                if value is None or name in BESIDE:  # which is shown, and accuses nobody
                    continue
                ratio = paired.get((variant["variant"], name), {})
                unknown = (-math.inf, math.inf) if metric.get("differs") else (None, None)
                least, most = metric.get("range") or unknown
                point = MeasuredPoint(
                    value,
                    processes or None,
                    process_low=least,
                    process_high=most,
                    baseline=ratio.get("baseline"),
                    ratio=Ratio(ratio.get("log_ratio"), ratio.get("low"), ratio.get("high"), ratio.get("n")),
                    outcome=ratio.get("outcome"),
                    quality=quality,
                    method=metric.get("method") or metric.get("clock"),
                    program_hash=variant["program_hash"] or digests.get("code"),
                )
                key = (Case.of_document(case["case"]).name, variant["variant"], name)
                yield key, _Series(reading_of(*_IN_NO_DATABASE, pool([point])), measured)
