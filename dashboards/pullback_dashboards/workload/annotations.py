"""Events at the commits of a case, apart from its curves: counts that changed, comparisons, other levels. Pure.

Each lane holds one mark a commit, with a sentence for everything that happened there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pullback_dashboards.history import Claim, History, Line, Metric
from pullback_dashboards.incident_marks import KINDS
from pullback_dashboards.incidents.view import TONES, WRONG
from pullback_dashboards.wording import factors, units
from pullback_service.incidents.evidence import CaseIncident
from pullback_service.measured_code.code_identity import other_level

Lane = Literal["counts", "comparisons", "levels", "incidents"]
LANES: tuple[Lane, ...] = ("incidents", "levels", "comparisons", "counts")  # from the top
_GRAVITY = ("failed", "worse", "better", "likely-worse", "likely-better", "unsure", "plain")


@dataclass(frozen=True)
class CountChange:
    """An exact metric of a variant that is another than at the commit that was followed.

    `doubt` is the reason why the commit may not be the cause, if there is one.
    """

    place: int
    variant: str
    metric: Metric
    before: float
    now: float
    doubt: str = ""


@dataclass(frozen=True)
class EventSentence:
    """One sentence about a commit, and why it is no claim, which is said once for all of which it is true."""

    place: int
    lane: Lane
    tone: str
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Event:
    """Everything of one lane at one commit; the gravest tone and its sign speak for all. `tones` are those of the sentences."""

    place: int
    lane: Lane
    tone: str
    sign: str
    sentences: tuple[str, ...]
    tones: tuple[str, ...]


def events(
    counts: Iterable[CountChange], claims: Iterable[Claim], others: Iterable[EventSentence] = ()
) -> tuple[Event, ...]:
    """The events of a case, oldest first."""
    sentences = [*map(_counted, counts), *map(_claimed, claims), *others]
    together: dict[tuple[int, Lane], list[EventSentence]] = {}
    for one in sentences:
        together.setdefault((one.place, one.lane), []).append(one)
    return tuple(_event(together[key]) for key in sorted(together, key=lambda key: (key[0], LANES.index(key[1]))))


def incident_marks(incidents: Iterable[CaseIncident], places: Mapping[int, int]) -> Iterator[EventSentence]:
    """Commits at which incidents of a case begin, or ended, among those that are shown."""
    for one in incidents:
        tone = TONES.get(one.kind, WRONG)[0]
        text = f"{KINDS[one.kind]}, {one.state}{', announced' if one.told else ''}"
        if one.commit_id in places:
            yield EventSentence(places[one.commit_id], "incidents", tone, f"incident {one.id}: {text}")
        if one.ended_id is not None and one.ended_id in places:
            yield EventSentence(places[one.ended_id], "incidents", "plain", f"incident {one.id}: the level is back")


def other_levels(history: History, lines: Iterable[Line]) -> Iterator[EventSentence]:
    """Commits from which on a case was measured with another text or another harness."""
    if len(history.measured) < 2:  # nobody told of another
        return
    for line in lines:
        for place, now, before in history.steps(line):
            reason = None if before is None else other_level(history.measured_of(before), history.measured_of(now))
            if reason is not None:
                yield EventSentence(place, "levels", "unsure", reason)


def _event(sentences: Sequence[EventSentence]) -> Event:
    tone = min((one.tone for one in sentences), key=_GRAVITY.index)
    ordered = sorted(sentences, key=lambda one: _GRAVITY.index(one.tone))
    tones: dict[str, str] = {}
    for one in ordered:
        for sentence in filter(None, (one.reason, one.text)):
            tones.setdefault(sentence, one.tone)
    return Event(sentences[0].place, sentences[0].lane, tone, factors.sign(tone), tuple(tones), tuple(tones.values()))


def _counted(change: CountChange) -> EventSentence:
    outcome = "less" if change.now < change.before else "more"
    unit = change.metric.unit
    text = (
        f"{change.variant}: {change.metric.label} {units.quantity(change.before, unit)} → "
        f"{units.quantity(change.now, unit)} ({units.change(change.now - change.before, unit)})"
    )
    if change.doubt:
        return EventSentence(change.place, "counts", "unsure", text, change.doubt)
    return EventSentence(
        change.place, "counts", factors.tone(outcome, bigger_is_better=change.metric.bigger_is_better), text
    )


def _claimed(claim: Claim) -> EventSentence:
    return EventSentence(claim.place, "comparisons", claim.tone, f"{claim.variant}: {claim.words}", claim.reason)
