"""Stored reasons why a judgement claims nothing: a code, and the details of the case. Pure.

`judge` says it in words, which may be reworded; what is stored of it is put into words where it is read.
"""

import re
from typing import Final

from pullback_service.measured_code.code_identity import EQUAL_CODE

WORDS: Final = {
    "uncommitted": "Measured with uncommitted changes.",
    "counted_uncommitted": "Counted with uncommitted changes.",
    "busy": "Measured in the same groups, but on a busy machine and without an A/A control.",
    "apart": "Measured at different times, not in the same groups.",
    "within_scatter": "Measured at different times; the difference is within their usual scatter.",
    "of_baseline": "The baseline moved more than this variant, so the ratio does not say that this variant changed.",
    "same_program": "Both commits ran the same program at different times; the difference comes from the machine.",
    "no_ratio": "A value is zero or less, so there is no ratio.",
    "counted_apart": (
        "Counted in two sessions. Counts of this kind depend on what else a process does, and are compared only within one "
        "session."
    ),
    "candidate_counts_differ": "Counts differ between reports of the candidate.",
    "reference_counts_differ": "Counts differ between reports of the reference.",
    "calls_differ": "The count varies from call to call, and the ranges of the two commits overlap.",
    "processes_differ": "Counts differ between processes of one program.",
    "contradiction": "Reports contradict each other.",
    "failed_once": "Reports contradict each other: the candidate failed in one of them.",
    "failed": "The candidate failed when both were compared.",
    "no_reference": "Not measured at the reference.",
    "no_candidate": "Not measured at the candidate.",
    "open_interval": "The interval allows more than one outcome.",
    "no_interval": "The upload has no interval for its ratio.",
    "methods": "Measured by different methods, {}.",
    "equal_code": EQUAL_CODE,
    "level": "Another level: {} changed between the two, so the commits do not compare.",
    "software": "Counted with different software ({}): count both commits in one installation to know.",
    "wrong_gradient": "In another report of these commits: {}",
    "other": "{}",
}
_PATTERNS: Final = {
    code: re.compile("(.*)".join(map(re.escape, words.split("{}"))), re.DOTALL)
    for code, words in WORDS.items()
    if "{}" in words
}
_CODES: Final = {words: code for code, words in WORDS.items() if "{}" not in words}


def code_of(reason: str | None) -> tuple[str | None, str | None]:
    """The code of a reason and what its words are filled with, None where they are the same in every case."""
    if reason is None:
        return None, None
    if reason in _CODES:
        return _CODES[reason], None
    return next((code, match[1]) for code, pattern in _PATTERNS.items() if (match := pattern.fullmatch(reason)))


def words_of(code: str | None, detail: str | None) -> str | None:
    """A stored reason in words; of a code that only a newer release knows its detail, or the code."""
    if code is None:
        return None
    return WORDS[code].format(detail) if code in WORDS else detail or code
