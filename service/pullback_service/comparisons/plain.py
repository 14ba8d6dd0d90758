"""Compared series as plain values, as `schemas.py` declares them: a page of models took a third of an answer's time."""

from typing import Any

from pullback_service.comparisons.judging import UNPAIRED
from pullback_service.comparisons.queries import Shown, ShownSide
from pullback_service.series.plain import plain_case


def plain_compared(shown: Shown) -> dict[str, Any]:
    """A `ComparedSeries`."""
    compared, judgement = shown.compared, shown.compared.judgement
    ratio, threshold = judgement.log_ratio, judgement.threshold
    hashes = [None if side is None else side.program_hash for side in (compared.reference, compared.candidate)]
    return {
        "case": plain_case(shown.case),
        "variant": compared.key[2],
        "variant_kind": compared.kind,
        "metric": compared.key[3],
        "unit": compared.unit,
        "direction": "bigger" if compared.bigger_is_better else "smaller",
        "exact": compared.exact,
        "machine": shown.machine.name,
        "machine_fingerprint": shown.machine.fingerprint,
        "series_id": compared.series_id,
        "outcome": judgement.outcome,
        "evidence": judgement.evidence,
        "kind": "unpaired" if judgement.evidence in UNPAIRED else judgement.evidence,
        "log_ratio": ratio,
        "low": judgement.low,
        "high": judgement.high,
        "n": judgement.n,
        "threshold": threshold,
        "significance": abs(ratio) / threshold if ratio is not None and threshold else None,
        "reason": judgement.reason,
        "provisional": judgement.provisional,
        "same_program": None if None in hashes else hashes[0] == hashes[1],
        "reference": None if shown.reference is None else _plain_side(shown.reference),
        "candidate": None if shown.candidate is None else _plain_side(shown.candidate),
    }


def _plain_side(shown: ShownSide) -> dict[str, Any]:
    """A `ComparedSide`."""
    side = shown.reading
    return {
        "value": side.value,
        "spread": side.spread,
        "baseline": side.baseline,
        "log_ratio": side.log_ratio,
        "low": side.low,
        "high": side.high,
        "quality": side.quality,
        "dirty": side.dirty,
        "program_hash": side.program_hash,
        "report_ids": shown.reports,
    }
