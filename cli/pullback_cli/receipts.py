"""The end of a receipt: where the page is, and what the commit changed against the one before it."""

import math
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pullback_service.client import Client, models

_WORDS = (
    ("worse", "worse"),
    ("likely_worse", "likely worse"),
    ("better", "better"),
    ("likely_better", "likely better"),
)
_SAID = frozenset({"slower", "more", "likely_slower", "failed", "faster", "less", "likely_faster"})


def commit_page(server: str, project: str, sha: str) -> str:
    """The address of the page of a commit."""
    return f"{server.rstrip('/')}/projects/{quote(project, safe='')}/commits/{sha}"


def changes_in_words(client: "Client", project: str, sha: str) -> str | None:
    """A line on what changed at a commit, its worst or else its best series named; None where it has no parent with results."""
    from pullback_service.client import ClientError

    try:
        told = client.compare_commits(project=project, head=sha, limit=1)
        counts = [(getattr(told.summary, name), words) for name, words in _WORDS]
        if not any(count for count, _ in counts[:2]) and any(count for count, _ in counts[2:]):
            told = client.compare_commits(
                project=project, head=sha, limit=1, outcome=["faster", "less", "likely_faster"]
            )
    except ClientError:
        return None  # the first commit of a project, or a service of an earlier release: nothing is lost by silence
    against = f"against {told.reference.sha[:10]}"
    said = [f"{count} {words}" for count, words in counts if count]
    if not said:
        apart = told.summary.not_comparable
        return (
            f"{against}: no change found in {told.summary.series} series{f', {apart} not comparable' if apart else ''}"
        )
    named = _in_words(told.items[0]) if told.items and told.items[0].outcome in _SAID else ""
    return f"{against}: {', '.join(said)} of {told.summary.series} series{named}"


def _in_words(series: "models.ComparedSeries") -> str:
    ratio = "" if series.log_ratio is None else f", {100 * math.expm1(series.log_ratio):+.1f} %"
    return f" ({series.case.label} {series.variant} {series.metric.replace('_', ' ')}: {series.outcome.replace('_', ' ')}{ratio})"
