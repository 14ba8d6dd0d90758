"""The commit since which a case, or a variant of it, gives no measurement. Pure: failures and readings in, changes out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from pullback_service.incidents.changes import Change, ChangeKind, Places
from pullback_service.models.reports import WRONG_GRADIENT


class VariantFailure(NamedTuple):
    """A failure in a report of a commit of the trunk; of the whole case if `variant` is None."""

    case_id: int
    machine_id: int
    variant: str | None
    kind: str
    message: str
    commit_id: int
    report_id: UUID


class MeasuredVariant(NamedTuple):
    """A variant of a case that has a reading at a commit of the trunk."""

    case_id: int
    machine_id: int
    variant: str
    commit_id: int


def failures_of(failing: Iterable[VariantFailure], measured: Iterable[MeasuredVariant], places: Places) -> list[Change]:
    """Failures since a commit that did not fail before; what failed from the beginning is no change.

    One report suffices to claim a wrong gradient. A case that did not run is claimed once a second report or commit has it: the machine
    may have run out of memory.
    """
    right: dict[tuple[int, int, str | None], set[int]] = defaultdict(set)
    for each in measured:
        for variant in (each.variant, None):
            right[each.case_id, each.machine_id, variant].add(each.commit_id)
    failed: dict[tuple[int, int, str | None, ChangeKind], dict[int, list[VariantFailure]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for failure in failing:
        kind: ChangeKind = "wrong_gradient" if failure.kind == WRONG_GRADIENT else "failed"
        failed[failure.case_id, failure.machine_id, failure.variant, kind][failure.commit_id].append(failure)
    return [
        change
        for (case_id, machine_id, variant, kind), at in failed.items()
        for change in _runs(kind, at, right[case_id, machine_id, variant], places)
    ]


def _runs(
    kind: ChangeKind, failed: Mapping[int, list[VariantFailure]], right: Collection[int], places: Places
) -> list[Change]:
    """The stretches of commits that fail, each after one that did not. A gradient that one report found wrong is wrong."""
    wrong = {commit for commit in failed if kind == "wrong_gradient" or commit not in right}
    ordered = sorted({*wrong, *right}, key=places.__getitem__)
    results = []
    for place, (before, commit) in enumerate(pairwise(ordered), start=1):
        if before in wrong or commit not in wrong:
            continue
        stretch = [commit, *_until_right(ordered[place + 1 :], wrong)]
        failures = [each for at in stretch for each in failed[at]]
        end = place + len(stretch)
        is_claimed = kind == "wrong_gradient" or len({each.report_id for each in failures}) > 1
        results.append(
            Change(
                case_id=failures[0].case_id,
                machine_id=failures[0].machine_id,
                series_id=None,
                variant=failures[0].variant,
                kind=kind,
                worse=True,
                evidence="failure",
                standing="claimed" if is_claimed else "suspected",
                reference_id=before,
                commit_id=commit,
                ended_id=ordered[end] if end < len(ordered) else None,
                message=failures[0].message,
            )
        )
    return results


def _until_right(later: Iterable[int], wrong: Collection[int]) -> Iterable[int]:
    for commit in later:
        if commit not in wrong:
            return
        yield commit
