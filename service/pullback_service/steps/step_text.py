"""Steps as lines of text. Pure."""

from typing import Final

from pullback_service.row_text import insert_of, number, text
from pullback_service.steps.rule import RULE
from pullback_service.steps.step import Step

INSERT_STEPS: Final = insert_of(
    "step",
    {
        "series_id": "bigint",
        "commit_id": "bigint",
        "reference_id": "bigint",
        "via": "text",
        "outcome": "text",
        "evidence": "text",
        "log_ratio": "float8",
        "low": "float8",
        "high": "float8",
        "n": "bigint",
        "threshold": "float8",
        "provisional": "boolean",
        "news": "boolean",
        "doubt": "text",
        "detail": "text",
        "stale": "boolean",
        "rule": "smallint",
    },
)
_ENDING: Final = b"f\t%d" % RULE


def line(step: Step) -> bytes:
    """A whole line."""
    return b"%d\t%d\t%d\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b\t%b" % (
        step.series_id,
        step.commit_id,
        step.reference_id,
        text(step.via),
        text(step.outcome),
        text(step.evidence),
        number(step.log_ratio),
        number(step.low),
        number(step.high),
        number(step.n),
        number(step.threshold),
        b"t" if step.provisional else b"f",
        b"t" if step.news else b"f",
        text(step.doubt),
        text(step.detail),
        _ENDING,
    )
