"""Grouping of changes to incidents. Pure: the same changes make the same groups, in whichever order they came.

Changes are of one incident where they are of one kind, one commit can have caused all of them, and they are of one cause: they share
the workload (sizes, variants, metrics, machines) or the variant (a tier across workloads). What only comparisons with the anchor show
is of no single commit, and stands apart.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pullback_service.incidents.changes import Change, Places

T = TypeVar("T", bound=Hashable)


class LocatedChange(NamedTuple):
    """A change with the workload of its case."""

    change: Change
    workload: str


def group(changes: Iterable[LocatedChange], places: Places) -> list[list[LocatedChange]]:
    """The groups, oldest first, each in the order of its range."""
    by_kind: dict[tuple[str, bool], list[LocatedChange]] = defaultdict(list)
    for each in changes:
        by_kind[each.change.incident_kind, each.change.evidence == "anchor"].append(each)
    groups = [
        part
        for of_kind in by_kind.values()
        for linked in _of_one_cause(of_kind, places)
        for meeting in _meeting(linked, places)
        for part in _of_one_cause(meeting, places)
    ]
    return sorted(
        (sorted(part, key=lambda each: _order(each, places)) for part in groups), key=lambda g: _order(g[0], places)
    )


def _order(each: LocatedChange, places: Places) -> tuple[object, ...]:
    change = each.change
    key = (change.case_id, change.machine_id, change.series_id or 0, change.variant or "", change.kind, change.evidence)
    return places[change.commit_id], places[change.reference_id], change.incident_kind, *key


def _of_one_cause(changes: Sequence[LocatedChange], places: Places) -> list[list[LocatedChange]]:
    """Parts whose members are linked by a common commit and by a workload or a variant, directly or through others."""
    part_of = list(range(len(changes)))

    def root(place: int) -> int:
        while part_of[place] != place:
            part_of[place] = part_of[part_of[place]]
            place = part_of[place]
        return place

    for shared in (_workload_of, _variant_of):
        for members in _by(range(len(changes)), [shared(each) for each in changes].__getitem__).values():
            ordered = sorted(members, key=lambda place: places[changes[place].change.reference_id])
            farthest = ordered[0]
            for place in ordered[
                1:
            ]:  # ranges in the order of their begins: one meets an earlier one if it meets the farthest
                if places[changes[place].change.reference_id] < places[changes[farthest].change.commit_id]:
                    part_of[root(place)] = root(farthest)
                if places[changes[place].change.commit_id] > places[changes[farthest].change.commit_id]:
                    farthest = place
    return [[changes[place] for place in part] for part in _by(range(len(changes)), root).values()]


def _workload_of(each: LocatedChange) -> tuple[str, ...]:
    return "workload", each.workload


def _variant_of(each: LocatedChange) -> tuple[str, ...]:
    """The variant of a change; a case that fails as a whole has none, and its key is its own."""
    variant = each.change.variant
    return ("variant", variant) if variant is not None else ("case", str(each.change.case_id))


def _meeting(changes: Sequence[LocatedChange], places: Places) -> list[list[LocatedChange]]:
    """Parts whose members have a commit in common, as few as possible: ranges in the order of their ends, each held by a point."""
    parts: list[list[LocatedChange]] = []
    point = -1
    for each in sorted(changes, key=lambda each: _order(each, places)):
        if not parts or places[each.change.reference_id] >= point:
            point = places[each.change.commit_id]
            parts.append([])
        parts[-1].append(each)
    return parts


def _by(things: Iterable[T], key: Callable[[T], Hashable]) -> dict[Hashable, list[T]]:
    results: dict[Hashable, list[T]] = defaultdict(list)
    for thing in things:
        results[key(thing)].append(thing)
    return results


def successors(groups: Sequence[Sequence[T]], incident_of: Mapping[T, int]) -> list[tuple[int | None, list[int]]]:
    """The incident that each group continues, None for a new one, and the incidents that are merged into it.

    `incident_of` are the incidents of changes that were there before. An incident goes on where most of its changes are, the first group
    among equals; a group of several incidents goes on with the oldest.
    """
    shares: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for place, members in enumerate(groups):
        counts: dict[int, int] = defaultdict(int)
        for member in members:
            if member in incident_of:
                counts[incident_of[member]] += 1
        for incident, count in counts.items():
            shares[incident].append((-count, place))
    goes_on: dict[int, list[int]] = defaultdict(list)
    for incident in sorted(shares):
        goes_on[min(shares[incident])[1]].append(incident)
    return [(goes_on[place][0], goes_on[place][1:]) if place in goes_on else (None, []) for place in range(len(groups))]
