"""A small made history for views and figures, without a database."""

import itertools
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from tests.service.conftest import anyio_backend, count_statements, database, reports  # noqa: F401 - fixtures
from tests.service.incidents.conftest import History as StoredHistory
from tests.service.readings.making import reading

from pullback_cli.app import create_app
from pullback_dashboards.history import Commit, Failure, History, Line, Metric, pair_of, with_exact_ratios
from pullback_service.comparisons.judging import Judgement, change_of_ratios, likely
from pullback_service.ratio import Ratio
from pullback_service.readings.reading import Reading
from pullback_service.settings import Settings

TIME = Metric("time", "s", exact=False)
BYTES = Metric("array_bytes", "B", exact=True)
UNNAMED = reading(1.0).report_id
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def paired(ratio, outcome="faster", *, doubt=0.01, base=1e-4):
    """A reading of a paired time."""
    middle = math.log(ratio)
    return reading(base * ratio)._replace(ratio=Ratio(middle, middle - doubt, middle + doubt, 20), outcome=outcome)


def commits(count):
    return tuple(
        Commit(f"{place:x}" * 40, f"Change {place}", "first author", START + timedelta(days=place), "main", place)
        for place in range(count)
    )


def line(variant, results, metric=TIME, *, workload="dense", case="dense[n=100,f4,cpu]", previous=None):
    return Line(workload, case, variant, metric, tuple(results), previous=previous or {})


def reported(line):
    """The line with a report of its own for each reading."""
    results = [
        one._replace(report_id=f"r{at}") if isinstance(one, Reading) and one.report_id == UNNAMED else one
        for at, one in enumerate(line.results)
    ]
    return replace(line, results=tuple(results))


def judged(line):
    """What the service stores of every two readings of a line, whichever follows which."""
    for before, now in itertools.combinations([one for one in line.results if isinstance(one, Reading)], 2):
        if line.metric.exact:
            outcome = "more" if now.value > before.value else "less" if now.value < before.value else "equal"
            yield pair_of(line, before, now), Judgement(outcome, "exact")
        elif before.ratio.bounded is not None and now.ratio.bounded is not None:
            same = now.program_hash is not None and now.program_hash == before.program_hash
            change, width = change_of_ratios(before.ratio.bounded, now.ratio.bounded)
            found = likely(change, width, "ratios", bigger_is_better=line.metric.bigger_is_better)
            yield pair_of(line, before, now), Judgement((not same and found) or "ambiguous", "ratios", Ratio(change))
        elif min(before.value, now.value) > 0 and before.ratio.log_ratio is None and now.ratio.log_ratio is None:
            change = math.log(now.value / before.value)
            found = likely(change, None, "values", bigger_is_better=line.metric.bigger_is_better)
            yield pair_of(line, before, now), Judgement(found or "ambiguous", "values", Ratio(change))


@pytest.fixture
def build():
    """The functions of this file, for tests that make their own history."""

    class Build:
        time, bytes = TIME, BYTES
        paired, commits, line = staticmethod(paired), staticmethod(commits), staticmethod(line)

        @staticmethod
        def history(*lines):
            told = tuple(map(reported, lines))
            verdicts = dict(pair for each in told for pair in judged(each))
            return with_exact_ratios(History(commits(len(lines[0].results)), told, verdicts=verdicts))

    return Build


@pytest.fixture
def history(build):
    """Four commits: fused becomes slower at the last one, failed at the second and doubles its bytes at the last."""
    failed = Failure("wrong gradient: relative error 0.03")
    base_time, base_bytes = reading(1e-4), reading(4096.0)
    return build.history(
        line("unfused", [base_time, failed, base_time, base_time]),
        line("fused", [paired(0.40), failed, paired(0.40), paired(0.50)]),
        line("stateful", [paired(0.98, "ambiguous", doubt=0.03), failed, None, paired(0.30)]),
        line("unfused", [base_bytes, failed, base_bytes, base_bytes], BYTES),
        line("fused", [reading(1024.0), failed, reading(1024.0), reading(2048.0)], BYTES),
        line("stateful", [reading(512.0), failed, None, reading(0.0)], BYTES),
    )


@pytest.fixture
async def stored_history(database_url, reports, database):  # noqa: F811 - fixtures
    """A stored history in which changes were looked for, and a client of its pages."""
    app = create_app(Settings(DATABASE_URL=database_url))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", timeout=30) as client,
    ):
        yield StoredHistory(client, reports, database)
