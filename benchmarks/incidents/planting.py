"""Which changes are planted where: by chance, the same ones for a seed."""

import random
from collections.abc import Sequence
from typing import Final

from benchmarks.incidents.truth import VARIANTS, Case, Event, Kind, SilentEvent, SilentKind, Truth, cases_for

USUAL_COMMITS: Final = 300
"""The number of commits for which `EVENTS` and `SILENT` are planted."""
EVENTS: Final[dict[Kind, int]] = {
    "case": 6, "workload": 4, "tier": 2, "baseline": 2, "count": 4, "unsteady": 1, "count and time": 3, "drift": 2, "fixed": 3,
    "wrong gradient": 2, "missing": 1,
}  # fmt: skip
SILENT: Final[dict[SilentKind, int]] = {
    "slower machine": 2, "machine that favours": 2, "software": 2, "harness": 1, "edited workload": 2, "late upload": 2,
    "force-push": 1, "withdrawn": 2, "busy": 1,
}  # fmt: skip
QUIET_AT_FIRST: Final = 30
"""Commits before anything is planted: a project has a history."""
QUIET_AT_LAST: Final = 12
REWRITTEN: Final = 3
"""Commits that a force-push puts others in the place of."""
APART: Final = 12
"""Commits between two events of one variant of a case."""
DOCS: Final = 0.12
SMALL_SIZES: Final = (0.02, 0.01)
_SIZES: Final[dict[Kind, tuple[float, ...]]] = {
    **dict.fromkeys(("case", "workload", "tier", "fixed"), (0.03, 0.05, 0.08, 0.1)),
    "baseline": (0.3,), "count and time": (0.05, 0.1), "drift": (0.1,),
}  # fmt: skip
_COUNTS: Final[dict[Kind, tuple[int, ...]]] = {"count": (1, 2, 6), "unsteady": (1,), "count and time": (1,)}
_LASTS: Final[dict[Kind, int]] = {"drift": 40, "fixed": 15, "wrong gradient": 15, "unsteady": 20}
"""Commits until an event is over, or of a drift complete."""


def plant(seed: int, *, series: int, commits: int) -> Truth:
    """A project whose commits made changes of every kind, on two machines."""
    chance = random.Random(f"project {seed}")  # noqa: S311 (no secret)
    cases = cases_for(series)
    share = commits / USUAL_COMMITS
    kinds: list[Kind | SilentKind] = [
        *(kind for kind, number in EVENTS.items() for _ in range(max(int(number * share), 1))),
        *(kind for kind, number in SILENT.items() for _ in range(max(int(number * share), 1))),
    ]
    chance.shuffle(kinds)
    # A drift needs room behind it.
    kinds.sort(key=lambda kind: kind == "drift" and chance.random() - 1)
    begin, step = QUIET_AT_FIRST, (commits - QUIET_AT_FIRST - QUIET_AT_LAST) / len(kinds)
    docs = {place for place in range(1, commits) if chance.random() < DOCS}
    events: list[Event] = []
    silent: list[SilentEvent] = []
    for number, kind in enumerate(kinds):
        place = round(begin + number * step + chance.random())
        docs.discard(place)  # it changes what is measured
        if kind in SILENT:
            silent.append(_silent(kind, place, cases, chance))
        else:
            events.append(_event(kind, place, commits, cases, events, chance))  # type: ignore[arg-type]
    return Truth(cases, commits, 2, events, silent, frozenset(docs))


def plant_small(seed: int, *, commits: int) -> Truth:
    """A project of one machine with steps of two per cent and of one, each in one variant of one case."""
    chance = random.Random(f"small {seed}")  # noqa: S311 (no secret)
    cases = [Case(f"small{place:02d}", 100) for place in range(12)]
    places = range(QUIET_AT_FIRST, commits - QUIET_AT_LAST, 8)
    subjects = [(case, variant) for case in range(len(cases)) for variant in (1, 2, 3)]
    chance.shuffle(subjects)
    events = [
        Event("small", place, frozenset({subjects[number % len(subjects)]}), SMALL_SIZES[number % 2])
        for number, place in enumerate(places)
    ]
    return Truth(cases, commits, 1, events, (), frozenset())


def _event(
    kind: Kind, place: int, commits: int, cases: Sequence[Case], others: Sequence[Event], chance: random.Random
) -> Event:
    """An event of a kind, in variants of cases in which nothing else happens at about the same time."""
    for _ in range(200):
        subjects = _subjects(kind, cases, chance)
        near = [each for each in others if each.kind == "missing" or place - APART <= (each.until or each.place)]
        if not any(subjects & each.subjects for each in near):
            break
    size = chance.choice(_SIZES.get(kind, (0.0,)))
    count = chance.choice(_COUNTS.get(kind, (0,)))
    until = min(place + _LASTS[kind], commits - 1) if kind in _LASTS else None
    return Event(kind, place, frozenset(subjects), size, count, until)


def _subjects(kind: Kind, cases: Sequence[Case], chance: random.Random) -> set[tuple[int, int]]:
    tiers = range(1, len(VARIANTS))
    if kind == "workload":
        chosen = chance.choice(cases).workload
        variants = chance.sample(tiers, chance.choice((1, 2)))
        return {(place, variant) for place, case in enumerate(cases) if case.workload == chosen for variant in variants}
    if kind == "tier":
        variant = chance.choice(tiers)
        some = chance.sample(range(len(cases)), max(2, round(0.6 * len(cases))))
        return {(place, variant) for place in some}
    if kind == "baseline":
        chosen = chance.choice(cases).workload
        return {(place, 0) for place, case in enumerate(cases) if case.workload == chosen}
    return {(chance.randrange(len(cases)), chance.choice(tiers))}


def _silent(kind: SilentKind, place: int, cases: Sequence[Case], chance: random.Random) -> SilentEvent:
    machine = chance.randrange(2)
    every = frozenset((case, variant) for case in range(len(cases)) for variant in range(len(VARIANTS)))
    if kind == "slower machine":
        return SilentEvent(kind, place, machine, every, 0.15)
    if kind == "machine that favours":
        variant = chance.choice(range(1, len(VARIANTS)))
        some = chance.sample(range(len(cases)), max(1, len(cases) // chance.choice((1, 3))))
        return SilentEvent(kind, place, machine, frozenset((case, variant) for case in some), 0.04)
    if kind == "software":
        variant = chance.choice(range(1, len(VARIANTS)))
        return SilentEvent(kind, place, machine, frozenset((case, variant) for case in range(len(cases))), 0.05)
    if kind == "harness":
        return SilentEvent(kind, place, None, frozenset(each for each in every if each[1] > 0), 0.04)
    if kind == "edited workload":
        chosen = chance.choice(cases).workload
        changed = frozenset(each for each in every if cases[each[0]].workload == chosen)
        return SilentEvent(kind, place, None, frozenset(each for each in changed if each[1] > 0), 0.3)
    return SilentEvent(kind, place, machine)
