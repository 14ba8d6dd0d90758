"""Comparison of the incidents that were announced with the changes that were planted. Pure: incidents as the API has them in, counts out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from benchmarks.incidents.truth import VARIANTS, Event, Truth

NEAR: Final = 3
"""Commits by which the range of an incident may miss an event and be taken for its incident all the same."""
BEGINNINGS: Final = frozenset({"confirmed", "likely"})
SUSPECTED: Final = frozenset({"confirming", "likely", "unconfirmed", "refuted"})


@dataclass(slots=True)
class Counts:
    """Counts of one seed, or of several."""

    events: int = 0
    told_of: int = 0
    split: int = 0
    joined: int = 0
    missed: int = 0
    right_commit: int = 0
    told_twice: int = 0
    suspicions: int = 0
    false_suspicions: int = 0
    of_machine: int = 0
    """False suspicions while a machine had moved."""
    confirmed_and_false: int = 0
    likely_and_false: int = 0
    observations: int = 0
    jobs: int = 0
    steps_2: int = 0
    told_2: int = 0
    steps_1: int = 0
    told_1: int = 0
    bisected_times: int = 0
    named_times: int = 0
    bisected_counts: int = 0
    named_counts: int = 0
    most_jobs: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Self) -> None:
        """Add those of another seed."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, max(mine, theirs) if each.name == "most_jobs" else mine + theirs)


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident by places of commits: behind `reference`, up to `commit`."""

    id: int
    kind: str
    state: str
    reference: int
    commit: int
    subjects: frozenset[tuple[int, int]]
    told: Sequence[str]
    """Events by which it was told from the beginning, each time."""
    was: frozenset[str]
    culprit: int | None
    jobs: int
    sentence: str

    @classmethod
    def of(cls, detail: Mapping[str, Any], truth: Truth, places: Mapping[str, int]) -> Self:
        """One as the API has it."""
        case_of = {case.label: place for place, case in enumerate(truth.cases)}
        bisection = detail["bisection"] or {"culprit": None, "jobs": 0, "state": ""}
        return cls(
            detail["id"],
            detail["kind"],
            detail["state"],
            places[detail["reference"]["sha"]],
            places[detail["commit"]["sha"]],
            frozenset(
                (case_of[each["case"]], VARIANTS.index(each["variant"]))
                for each in detail["evidence"]
                if each["variant"] is not None and each["standing"] != "refuted"
            ),
            [each["event"] for each in detail["events"] if each["told"] and each["event"] in BEGINNINGS],
            frozenset(each["event"] for each in detail["events"]),
            places[bisection["culprit"]] if bisection["state"] == "found" else None,
            bisection["jobs"],
            detail["sentence"],
        )

    def is_of(self, event: Event) -> bool:
        """True if it is about an event: its kind, a variant of a case of it, and its commits or those beside them."""
        last = (event.until or event.place) if event.kind in {"drift", "unsteady"} else event.place
        return (
            self.kind == event.incident_kind
            and (not self.subjects or not self.subjects.isdisjoint(event.subjects))
            and self.reference < last + NEAR + 1
            and self.commit >= event.place - NEAR
        )

    def names(self, event: Event) -> bool:
        """True if it names the commit of an event, and no other one."""
        if event.kind == "drift":
            return event.place <= self.commit <= (event.until or event.place)
        is_single = self.commit == event.place == self.reference + 1
        return is_single or self.culprit == event.place


def count(truth: Truth, incidents: Iterable[Incident], counts: Counts) -> None:
    """Count what was told of the events of a project, and what else was."""
    told = [each for each in incidents if each.told]
    others = [each for each in incidents if not each.told]
    for event in truth.events:
        about = [each for each in told if each.is_of(event)]
        if event.kind == "small":
            _count_small(event, about, counts)
            continue
        counts.events += 1
        counts.told_of += bool(about)
        counts.missed += not about
        counts.split += len(about) > 1
        counts.told_twice += sum(len(each.told) for each in about) > 1
        counts.right_commit += any(each.names(event) for each in about)
        if len(about) != 1 or not about[0].names(event):
            heard = about or [each for each in others if each.is_of(event)]
            counts.problems.append(f"{_said(event, truth)}: " + ("; ".join(map(_shown, heard)) or "nothing"))
    for each in told:
        of = [event for event in truth.events if each.is_of(event)]
        if len(of) > 1:
            counts.joined += 1
            counts.problems.append(f"joined: {_shown(each)}")
        if not of:
            counts.confirmed_and_false += "confirmed" in each.told
            counts.likely_and_false += "confirmed" not in each.told
            counts.problems.append(f"announced and false: {_shown(each)}")
    for each in (*told, *others):
        if each.kind == "worse" and each.was & SUSPECTED:
            counts.suspicions += 1
            if not any(each.is_of(event) for event in truth.events):
                counts.false_suspicions += 1
                counts.of_machine += _had_moved(each, truth)
                counts.problems.append(f"false suspicion: {_shown(each)}")


def _count_small(event: Event, about: Sequence[Incident], counts: Counts) -> None:
    if event.size > 0.015:
        counts.steps_2 += 1
        counts.told_2 += bool(about)
    else:
        counts.steps_1 += 1
        counts.told_1 += bool(about)
    if not about:
        counts.problems.append(f"not told: {event.size:+.0%} at {event.place} of {sorted(event.subjects)}")


def _had_moved(incident: Incident, truth: Truth) -> bool:
    return any(
        each.kind in {"machine that favours", "slower machine"}
        and incident.reference - NEAR <= each.place <= incident.commit + NEAR
        for each in truth.silent
    )


def _said(event: Event, truth: Truth) -> str:
    some = ", ".join(f"{truth.cases[case].label} {VARIANTS[variant]}" for case, variant in sorted(event.subjects)[:2])
    until = f" to {event.until}" if event.until is not None else ""
    return f"{event.kind} at {event.place}{until} ({some}, {len(event.subjects)} in all, {event.size:+.0%})"


def _shown(incident: Incident) -> str:
    return (
        f"[{incident.id} {incident.state} {incident.reference}..{incident.commit} told {'+'.join(incident.told) or 'never'}"
        f" culprit {incident.culprit}] {incident.sentence}"
    )
