"""The verdict of a check: an exit status, a sentence, and remarks. Pure: the service's answer in, words out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pullback_service.client.models import CheckAnswer

FailureKind: TypeAlias = Literal["wrong-gradient", "regression", "missing", "likely", "ambiguous", "budget"]

STATUSES: Final[Mapping[FailureKind, int]] = {
    "wrong-gradient": 5,
    "regression": 3,
    "missing": 4,
    "likely": 8,
    "ambiguous": 6,
    "budget": 7,
}
"""The exit status of each; of several the first one counts."""
NOT_ENOUGH_DATA: Final = 1

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "wrong_gradient": ("wrong gradient", "wrong gradients"),
    "regression": ("regression", "regressions"),
    "missing": ("missing result", "missing results"),
    "likely": ("likely regression", "likely regressions"),
    "ambiguous": ("ambiguous result", "ambiguous results"),
    "budget": ("value over its budget", "values over their budgets"),
    "better": ("improvement", "improvements"),
    "likely_better": ("likely improvement", "likely improvements"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a check. `failed_on` are the kinds of findings that it failed for, `conclusion` is GitHub's word."""

    status: int
    sentence: str
    failed_on: Sequence[FailureKind] = ()
    remarks: Sequence[str] = ()

    @property
    def conclusion(self) -> Literal["success", "failure", "neutral"]:
        """The conclusion of a check run: not enough data is neither success nor failure."""
        if self.status == NOT_ENOUGH_DATA:
            return "neutral"
        return "failure" if self.failed_on else "success"


def decide(
    answer: CheckAnswer, fail_on: Collection[FailureKind], unmeasured: str | None = None, also: Sequence[str] = ()
) -> Verdict:
    """The verdict on an answer. `unmeasured` says why what was to be measured in turns was not, `also` what else to know."""
    failed_on = [kind for kind in STATUSES if kind in fail_on and count_of(answer, kind)]
    unmeasured_too = [] if unmeasured is None else [unmeasured]
    remarks = [*answer.lacks, *unmeasured_too, *answer.notes, *also, *_remarks(answer, fail_on)]
    if failed_on:
        return Verdict(STATUSES[failed_on[0]], f"{_found(answer)} {_against(answer)}.", failed_on, remarks)
    missing = next((each for each in (*answer.lacks, unmeasured) if each), None)
    if missing is not None:
        result = f" So far: {_found(answer)}." if has_changes(answer) else ""
        rest = [remark for remark in remarks if remark != missing]
        return Verdict(NOT_ENOUGH_DATA, f"Not enough data. {missing}{result}", (), rest)
    return Verdict(0, _passed(answer), (), remarks)


def count_of(answer: CheckAnswer, kind: str) -> int:
    """The number of findings of a kind; a service of an earlier release counts no budgets."""
    return getattr(answer.counts, kind.replace("-", "_"), 0)


def has_changes(answer: CheckAnswer) -> bool:
    """True if the commit changed anything worth a comment."""
    return any(count_of(answer, kind) for kind in _WORDS)


def _found(answer: CheckAnswer) -> str:
    """The counts of each kind in words: "2 regressions and 1 improvement"."""
    parts = [
        f"{count} {words[0] if count == 1 else words[1]}"
        for kind, words in _WORDS.items()
        if (count := count_of(answer, kind))
    ]
    return " and ".join(", ".join(parts).rsplit(", ", 1))


def _against(answer: CheckAnswer) -> str:
    if answer.base is None:
        return f"at {answer.head.sha[:10]}"
    against = answer.against
    merge_base = "" if answer.base.sha.startswith(against) else f", the merge base with {against}"
    return f"at {answer.head.sha[:10]} against {answer.base.sha[:10]}{merge_base}"


def _passed(answer: CheckAnswer) -> str:
    if answer.equal_code:
        return f"Equal code {_against(answer)}: nothing that is measured was changed."
    compared = f"{answer.counts.compared} series compared" if answer.counts.compared != 1 else "1 series compared"
    if not has_changes(answer):
        return f"No change found {_against(answer)}; {compared}."
    return f"Check passed {_against(answer)}: {_found(answer)}; {compared}."


def _remarks(answer: CheckAnswer, fail_on: Collection[FailureKind]) -> Iterator[str]:
    """Remarks that a reader needs to judge the answer."""
    apart = answer.not_in_turns
    if apart and not answer.lacks:
        yield (
            f"{apart} series {'was' if apart == 1 else 'were'} measured at different times and not in turns: changes of less than 2 % "
            "(10 % without a baseline) would not be noticed, and larger ones are likely at most."
        )
    if count_of(answer, "likely") and not answer.can_measure and "likely" not in fail_on:
        yield (
            "No agent can measure this project in turns, so a regression of time is likely at most; "
            "`--fail-on` with `likely` fails for it."
        )
    if hidden := sum(count_of(answer, kind) for kind in _WORDS) - len(answer.findings):
        yield f"{hidden} more findings are not listed."
