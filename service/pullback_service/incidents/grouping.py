"""Grouping of changes to incidents. Pure: the same changes make the same groups, in whichever order they came.

Changes are of one incident where they are of one kind, one commit can have caused all of them, and they are of one cause: they share
the workload (sizes, variants, metrics, machines) or the variant (a tier across workloads). What only comparisons with the anchor show
is of no single commit, and stands apart.

A wide range, as that of a drift, holds many commits by chance: its change is of the incident of its own case and variant, if there is
one, and is linked to a commit of another workload by its variant alone only if that range is not much narrower.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from pullback_service.incidents.changes import Change, Places

T = TypeVar("T", bound=Hashable)

ALIKE: Final = 3
"""The doublings by which ranges that share only a variant may differ in length."""


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

    widths = [(places[each.change.commit_id] - places[each.change.reference_id]).bit_length() for each in changes]
    for shared, apart in ((_workload_of, max(widths, default=0)), (_variant_of, ALIKE)):
        for members in _by(range(len(changes)), [shared(each) for each in changes].__getitem__).values():
            farthest: dict[int, int] = {}  # of each width
            # Ranges in the order of their begins: one meets an earlier one of a width if it meets the farthest of that width.
            for place in sorted(members, key=lambda place: places[changes[place].change.reference_id]):
                change = changes[place].change
                for width, other in farthest.items():
                    if abs(width - widths[place]) <= apart and change.meets(changes[other].change, places):
                        part_of[root(place)] = root(other)
                known = farthest.setdefault(widths[place], place)
                if places[change.commit_id] > places[changes[known].change.commit_id]:
                    farthest[widths[place]] = place
    return [[changes[place] for place in part] for part in _by(range(len(changes)), root).values()]


def _workload_of(each: LocatedChange) -> tuple[str, ...]:
    return "workload", each.workload


def _variant_of(each: LocatedChange) -> tuple[str, ...]:
    """The variant of a change; a case that fails as a whole has none, and its key is its own."""
    variant = each.change.variant
    return ("variant", variant) if variant is not None else ("case", str(each.change.case_id))


def _meeting(changes: Sequence[LocatedChange], places: Places) -> list[list[LocatedChange]]:
    """Parts whose members have a commit in common, as few as possible: ranges in the order of their ends, each held by a point.

    A range that holds several points is of the one with most in common, the last among equals.
    """
    points: list[int] = []
    for each in sorted(changes, key=lambda each: _order(each, places)):
        if not points or places[each.change.reference_id] >= points[-1]:
            points.append(places[each.change.commit_id])
    parts: dict[int, list[LocatedChange]] = {point: [] for point in points}
    undecided = []
    for each in changes:
        first = bisect_right(points, places[each.change.reference_id])
        held = points[first : bisect_right(points, places[each.change.commit_id])]
        if len(held) == 1:
            parts[held[0]].append(each)
        else:
            undecided.append((each, held))
    traits = {point: {trait for each in part for trait in _traits_of(each)} for point, part in parts.items()}
    for each, held in undecided:
        mine = _traits_of(each)
        parts[max(held, key=lambda point: ([trait in traits[point] for trait in mine], point))].append(each)
    return list(parts.values())


def _traits_of(each: LocatedChange) -> Sequence[tuple[object, ...]]:
    """Traits that a change may share with others, the most telling first."""
    return ("case and variant", each.change.case_id, each.change.variant), _workload_of(each), _variant_of(each)


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
