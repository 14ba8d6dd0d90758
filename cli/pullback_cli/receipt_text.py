"""The last lines of a receipt: the address of the page, and the changes of the commit since the one before it."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pullback_service.client import Client

WORDS = (
    ("failed", "failed"),
    ("worse", "worse"),
    ("likely_worse", "likely worse"),
    ("better", "better"),
    ("likely_better", "likely better"),
)
"""Trends in the order in which they are told, with their words. A variant of a case that failed is one, whatever it was measured in."""
_MOST_FAILED = 1000
_SAID = frozenset({"slower", "more", "likely_slower", "failed", "faster", "less", "likely_faster"})


def commit_page(server: str, project: str, sha: str) -> str:
    """The address of the page of a commit."""
    return f"{server.rstrip('/')}/projects/{quote(project, safe='')}/commits/{sha}"


def changes_in_words(client: "Client", project: str, sha: str) -> str | None:
    """A line on what changed at a commit, its worst or else its best series named; None where it has no parent with results."""
    from pullback_service.client import ClientError

    try:
        compared = client.compare_commits(project=project, head=sha, limit=1)
        numbers = {name: getattr(compared.summary, name) for name, _ in WORDS}
        if numbers["failed"]:
            numbers["worse"] -= numbers["failed"]
            each = client.compare_commits(project=project, head=sha, limit=_MOST_FAILED, outcome=["failed"]).items
            numbers["failed"] = len({(one.case.label, one.variant, one.machine) for one in each})
        counts = [(numbers[name], words) for name, words in WORDS]
        if not any(count for count, _ in counts[:3]) and any(count for count, _ in counts[3:]):
            compared = client.compare_commits(
                project=project, head=sha, limit=1, outcome=["faster", "less", "likely_faster"]
            )
    except ClientError:
        return None  # the first commit of a project, or a service of an earlier release: nothing is lost by silence
    named = ""
    if compared.items and (worst := compared.items[0]).outcome in _SAID:
        named = series_in_words(worst.case.label, worst.variant, worst.metric, worst.outcome, worst.log_ratio)
    summary = compared.summary
    return changes_line(
        compared.reference.sha, counts, series=summary.series, not_comparable=summary.not_comparable, named=named
    )


def changes_line(
    reference: str, counts: Sequence[tuple[int, str]], *, series: int, not_comparable: int, named: str
) -> str:
    """A line on what changed against a commit: how many of which trend, and one series by name."""
    parts = [f"{count} {words}" for count, words in counts if count]
    if parts:
        return f"against {reference[:10]}: {', '.join(parts)} of {series} series{named and f' ({named})'}"
    apart = f", {not_comparable} not comparable" if not_comparable else ""
    return f"against {reference[:10]}: no change found in {series} series{apart}"


def series_in_words(case: str, variant: str, metric: str, outcome: str, log_ratio: float | None) -> str:
    """A series with its outcome and by how much it changed; what failed did so in all its metrics."""
    if outcome == "failed":
        return f"{case} {variant}: failed"
    ratio = "" if log_ratio is None else f", {100 * math.expm1(log_ratio):+.1f} %"
    return f"{case} {variant} {metric.replace('_', ' ')}: {outcome.replace('_', ' ')}{ratio}"
