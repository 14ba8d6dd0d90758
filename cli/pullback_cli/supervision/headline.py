"""The lines `up` prints when the checked-out commit is measured: the ratios a person came for."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from pullback_cli.receipt_text import changes_in_words, commit_page
from pullback_cli.supervision.first_jobs import FollowedJob
from pullback_cli.supervision.service_api import Item, ServiceApi
from pullback_runners.report.words import time_in_words
from pullback_runners.workloads import Case
from pullback_service.client import ClientError


@dataclass(frozen=True)
class Ratio:
    """One variant of one case against the baseline."""

    case: str
    variant: str
    baseline: str
    words: str
    """The wording of `pullback run`: `209x faster (195-224)`."""


def headline(api: ServiceApi, job: FollowedJob, url: str) -> RenderableType:
    """Say what was measured at the commit of a finished job, what that changed, and where the page is."""
    sha = str(job.commit["sha"])[:10]
    if job.state != "done" or job.job.report_id is None:
        return escape(f"{sha} could not be measured ({job.state}: {job.job.failure_message or 'no reason given'})")
    try:
        report = api.report(job.job.report_id)
    except ClientError as error:
        return escape(f"{sha} is measured; its ratios could not be read ({error}): {url}")
    failures = [escape(failure) for failure in failed_cases(report)]
    project, full = job.job.project, str(job.commit["sha"])
    ratios = list(time_ratios(report))
    table = [_table(ratios)] if ratios else []
    changed = changes_in_words(api.client, project, full)
    changes = [] if changed is None else [escape(changed)]
    return Group(f"{sha} is measured:", *table, *failures, *changes, f"More at {commit_page(url, project, full)}")


def time_ratios(report: Item) -> Iterator[Ratio]:
    """Every paired time of a report against the baseline."""
    for case in report.get("cases", ()):
        for pair in case.get("paired", ()):
            if pair["metric"] == "time" and pair.get("log_ratio") is not None:
                name = Case.of_document(case["case"]).name
                yield Ratio(name, pair["variant"], pair["baseline"], time_in_words(pair))


def failed_cases(report: Item) -> Iterator[str]:
    """One sentence per case that gave no measurement."""
    for case in report.get("cases", ()):
        if case.get("error"):
            yield f"{Case.of_document(case['case']).name} failed: {case['error']['message']}"


def _table(ratios: list[Ratio]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("case", "variant"):
        table.add_column(heading)
    table.add_column(f"time against {ratios[0].baseline if ratios else 'the baseline'}")
    for ratio in ratios:
        table.add_row(escape(ratio.case), escape(ratio.variant), ratio.words)
    return table
