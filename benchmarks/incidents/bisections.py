"""Ranges of 64 commits of which only the ends were measured: how many jobs a bisection takes, and which commit it names."""

import random
from typing import TYPE_CHECKING, Any, Final

from benchmarks.incidents.counting import Counts, Incident
from benchmarks.incidents.living import Life
from benchmarks.incidents.noise import Noise
from benchmarks.incidents.truth import Case, Event, Truth
from benchmarks.service_load.processes import Service

if TYPE_CHECKING:
    import psycopg

RANGE: Final = 64
STEP: Final = 0.02
COUNTS_AMONG: Final = 4
"""One range of so many has a count that changes; in the others a time does."""


def bisect(service: Service, database: "psycopg.Connection[Any]", seed: int, ranges: int, counts: Counts) -> None:
    """Measure every 64th commit against the one before, and let what is found be bisected."""
    chance = random.Random(f"ranges {seed}")  # noqa: S311 (no secret)
    events = []
    for number in range(ranges):
        place, subject = number * RANGE + chance.randint(1, RANGE), frozenset({(number % 4, 3)})
        if number % COUNTS_AMONG == COUNTS_AMONG - 1:
            events.append(Event("count", place, subject, count=1))
        else:
            events.append(Event("case", place, subject, STEP))
    cases = [Case(f"ranged{number}", 100) for number in range(4)]
    truth = Truth(cases, ranges * RANGE + 1, 1, events, (), frozenset())
    project = f"ranges-{seed}"
    life = Life(service.connect(), database, project, truth, Noise(project))
    for end in range(RANGE, ranges * RANGE + 1, RANGE):
        for place in range(end - RANGE + 1, end + 1):
            life.push(place)
        life.tell_log(range(end - RANGE, end + 1))
        # As a comparison that somebody made and uploaded.
        life.run(end, 0, comparisons=life.compare(end - RANGE, end, pairs=[(case, 3) for case in range(len(cases))]))
        life.answer_all()
    counts.jobs += life.jobs
    listed = life.get_all(f"/api/v1/incidents?project={project}&limit=100")
    found = [Incident.of(life.get(each["url"]), truth, life.places) for each in listed if each["state"] != "merged"]
    for event in events:
        about = [each for each in found if each.told and event.subjects & each.subjects and _holds(each, event)]
        is_named = any(each.names(event) for each in about)
        counts.most_jobs = max([counts.most_jobs, *(each.jobs for each in about)])
        if event.count:
            counts.bisected_counts += 1
            counts.named_counts += is_named
        elif about:  # what the first comparison did not see is bisected by nobody
            counts.bisected_times += 1
            counts.named_times += is_named
        if not is_named:
            shown = "; ".join(
                f"{each.state} {each.reference}..{each.commit} culprit {each.culprit} {each.sentence}" for each in about
            )
            counts.problems.append(f"bisection of {event.kind} at {event.place}: {shown or 'not told'}")


def _holds(incident: Incident, event: Event) -> bool:
    """True if the range of an incident is within that of an event."""
    begin = (event.place - 1) // RANGE * RANGE
    return begin <= incident.reference < incident.commit <= begin + RANGE
