"""Compared series as plain values, as `schemas.py` declares them: a page of models took a third of an answer's time."""

from typing import Any

from pullback_service.comparisons.queries import Shown, ShownSide
from pullback_service.series.plain import plain_case


def plain_compared(shown: Shown) -> dict[str, Any]:
    """A `ComparedSeries`."""
    compared, judgement, doubt = shown.compared, shown.compared.judgement, shown.doubt
    low, high = (judgement.low, judgement.high) if doubt is None else (doubt.low, doubt.high)
    threshold = judgement.threshold if doubt is None else doubt.threshold
    ratio = judgement.log_ratio
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
        "kind": judgement.kind,
        "log_ratio": ratio,
        "low": low,
        "high": high,
        "n": judgement.n,
        "threshold": threshold,
        "significance": abs(ratio) / threshold if ratio is not None and threshold else None,
        "reason": judgement.reason,
        "hint": None if doubt is None else doubt.hint,
        "hint_basis": None if doubt is None else doubt.basis,
        "same_program": None if None in hashes else hashes[0] == hashes[1],
        "reference": None if shown.reference is None else _plain_side(shown.reference),
        "candidate": None if shown.candidate is None else _plain_side(shown.candidate),
    }


def _plain_side(shown: ShownSide) -> dict[str, Any]:
    """A `ComparedSide`."""
    side = shown.side
    return {
        "value": side.value,
        "spread": shown.spread,
        "baseline": side.baseline,
        "log_ratio": side.log_ratio,
        "low": side.low,
        "high": side.high,
        "quality": side.quality,
        "dirty": side.dirty,
        "program_hash": side.program_hash,
        "report_ids": shown.reports,
    }
