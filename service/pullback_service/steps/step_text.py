"""Steps as lines of text. Pure."""

from typing import Final

from pullback_service.row_text import NULL, insert_of, number, numbers, text
from pullback_service.rule_version import RULE
from pullback_service.steps.doubts import code_of
from pullback_service.steps.step import Step

INSERT_STEPS: Final = insert_of(
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
_NOT_JUDGED: Final = b"\t".join([NULL] * 9 + [b"f"])
_ENDING: Final = b"f\t%d" % RULE


def line(step: Step) -> bytes:
    """A whole line."""
    return b"%d\t%d\t%d\t%b\t%b\t%b\t%b" % (
        step.series_id,
        step.commit_id,
        step.reference_id,
        text(step.via),
        b"t" if step.news else b"f",
        _judged(step),
        _ENDING,
    )


def _judged(step: Step) -> bytes:
    judgement = step.judgement
    if judgement is None:
        return _NOT_JUDGED
    doubt, detail = code_of(judgement.reason)
    return b"%b\t%b\t%b\t%b\t%b\t%b\t%b" % (
        text(judgement.outcome),
        text(judgement.evidence),
        numbers(judgement.ratio),
        number(judgement.threshold),
        text(doubt),
        text(detail),
        b"t" if judgement.provisional else b"f",
    )
