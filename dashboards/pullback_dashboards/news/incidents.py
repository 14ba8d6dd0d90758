"""Incidents in the news: the state of a series' incident decides the wording of its change."""

from collections.abc import Iterable, Iterator, Mapping

from pullback_dashboards.history import IncidentChange, Metric
from pullback_service.incidents.queries import SeriesChange

_TONES = {"suspected": "unsure", "confirming": "unsure", "unconfirmed": "unsure", "resolved": "plain", "refuted": ""}


def said_in(changes: Iterable[SeriesChange], places: Mapping[int, int], beyond: int) -> Iterator[IncidentChange]:
    """Changes as incidents have them, at the places of commits; `beyond` is that of a commit behind all of them."""
    for each in changes:
        yield IncidentChange(
            incident=each.incident_id,
            state="expected" if each.verdict == "expected" else each.state,
            tone=tone_of(each),
            case=each.case,
            variant=each.variant,
            metric=Metric(each.metric, each.unit, each.exact, each.bigger_is_better),
            worse=each.worse,
            log_ratio=each.log_ratio,
            first=places.get(each.reference_id, -1),
            last=places.get(each.commit_id, beyond),
            ended=None if each.ended_id is None else places.get(each.ended_id),
        )


def tone_of(change: SeriesChange) -> str:
    """The tone of a change as its incident has it; empty where that was refuted."""
    tone = _TONES.get(change.state)
    if tone is not None:
        return tone
    if change.kind == "unsteady" or change.worse is None:
        return "unsure"
    towards = "worse" if change.worse else "better"
    return f"likely-{towards}" if change.state == "likely" else towards
