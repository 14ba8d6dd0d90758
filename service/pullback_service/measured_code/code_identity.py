"""The code a number was measured of, and the comparison of two such. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple


class CodeIdentity(NamedTuple):
    """Digests of the workload's text and of the subject's files, and the release of the harness; empty where not told."""

    workload: str = ""
    subject: str = ""
    harness: str = ""


NOT_TOLD: Final = CodeIdentity()
EQUAL_CODE: Final = "Equal code: the commit changed nothing that is measured."


def other_level(reference: CodeIdentity, candidate: CodeIdentity) -> str | None:
    """The reason why two numbers are on different levels, whatever the commits are; None if they can be compared."""
    if (reference.workload, reference.harness) == (candidate.workload, candidate.harness):
        return None
    reasons = list(_reasons(reference, candidate))
    return (
        f"Another level: {' and '.join(reasons)} changed between the two, so the commits do not compare."
        if reasons
        else None
    )


def _reasons(reference: CodeIdentity, candidate: CodeIdentity) -> Iterator[str]:
    if _differ(reference.workload, candidate.workload):
        yield f"the text of the workload ({reference.workload[:8]}, then {candidate.workload[:8]})"
    if _differ(reference.harness, candidate.harness):
        yield f"the release of the harness ({reference.harness}, then {candidate.harness})"


def is_equal_code(reference: CodeIdentity, candidate: CodeIdentity) -> bool:
    """True if both commits have the same files of what is measured."""
    return reference.subject == candidate.subject != ""


def may_differ_by_the_commit(reference: CodeIdentity, candidate: CodeIdentity) -> bool:
    """True if a difference can be the commit's doing: both of one level, and their files not the same."""
    return other_level(reference, candidate) is None and not is_equal_code(reference, candidate)


def _differ(one: str, other: str) -> bool:
    return one != other and "" not in (one, other)
