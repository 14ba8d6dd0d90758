"""The badge of a project's incidents: how many of each kind are open."""

from collections.abc import Mapping

from pullback_dashboards.charts.badge import badge
from pullback_dashboards.incident_marks import KINDS
from pullback_dashboards.incidents.filters import SURE
from pullback_service.incidents.queries import NOT_WORKING


def incidents_badge(subject: str, counts: Mapping[tuple[str, str], int], *, is_watched: bool) -> str:
    """The SVG: kinds in the order of their weight; what is only likely is said to be, and is grey."""
    parts = [
        f"{count} {'likely ' if state == 'likely' else ''}{KINDS[kind]}"
        for kind in sorted(KINDS, key=lambda kind: kind not in NOT_WORKING)
        for state in SURE
        if (count := counts.get((kind, state)))
    ]
    if not parts:
        return badge(subject, "no open incidents" if is_watched else "not watched yet", "plain")
    kinds = {kind for kind, state in counts if state == "confirmed"}
    failed, worse, better = kinds & {*NOT_WORKING}, "worse" in kinds, kinds == {"better"}
    tone = "failed" if failed else "worse" if worse else "better" if better else "unsure"
    return badge(subject, ", ".join(parts), tone)
