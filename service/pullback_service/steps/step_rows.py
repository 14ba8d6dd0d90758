"""Steps as rows. Pure."""

from typing import Any, Final

from pullback_service.row_arrays import insertion
from pullback_service.rule_version import RULE
from pullback_service.steps.doubts import code_of
from pullback_service.steps.step import Step

INSERT_STEPS: Final = insertion(
    "step",
    {
        "series_id": "bigint",
        "commit_id": "bigint",
        "reference_id": "bigint",
        "via": "text",
        "news": "boolean",
        "outcome": "text",
        "evidence": "text",
        "log_ratio": "float8",
        "low": "float8",
        "high": "float8",
        "n": "bigint",
        "threshold": "float8",
        "doubt": "text",
        "detail": "text",
        "provisional": "boolean",
        "stale": "boolean",
        "rule": "smallint",
    },
)
_NOT_JUDGED: Final = (*(None,) * 9, False)


def row(step: Step) -> tuple[Any, ...]:
    """The whole row."""
    return (*step[:5], *_judged(step), False, RULE)


def _judged(step: Step) -> tuple[Any, ...]:
    judgement = step.judgement
    if judgement is None:
        return _NOT_JUDGED
    return (
        judgement.outcome,
        judgement.evidence,
        *judgement.ratio,
        judgement.threshold,
        *code_of(judgement.reason),
        judgement.provisional,
    )
