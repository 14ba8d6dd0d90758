"""A small made history for views and figures, without a database."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from pullback_dashboards.history import Commit, History, Line, Metric, Reading, with_exact_ratios

TIME = Metric("time", "s", exact=False)
BYTES = Metric("array_bytes", "B", exact=True)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def paired(ratio, outcome="faster", *, doubt=0.01, base=1e-4):
    """A reading of a paired time."""
    middle = math.log(ratio)
    return Reading(base * ratio, middle, middle - doubt, middle + doubt, 20, outcome, report="r")


def commits(count):
    return tuple(
        Commit(f"{place:x}" * 40, f"Change {place}", "first author", START + timedelta(days=place), "main", place)
        for place in range(count)
    )


def line(variant, readings, metric=TIME, *, workload="dense", case="dense[n=100,f4,cpu]"):
    return Line(workload, case, variant, metric, tuple(readings))


@pytest.fixture
def build():
    """The functions of this file, for tests that make their own history."""

    class Build:
        time, bytes = TIME, BYTES
        paired, commits, line = staticmethod(paired), staticmethod(commits), staticmethod(line)

        @staticmethod
        def history(*lines):
            return with_exact_ratios(History(commits(len(lines[0].readings)), lines))

    return Build


@pytest.fixture
def history(build):
    """Four commits: fused becomes slower at the last one, failed at the second and doubles its bytes at the last."""
    failed = Reading(failure="wrong gradient: relative error 0.03")
    base_time, base_bytes = Reading(1e-4), Reading(4096.0)
    return build.history(
        line("unfused", [base_time, failed, base_time, base_time]),
        line("fused", [paired(0.40), failed, paired(0.40), paired(0.50)]),
        line("stateful", [paired(0.98, "ambiguous", doubt=0.03), failed, None, paired(0.30)]),
        line("unfused", [base_bytes, failed, base_bytes, base_bytes], BYTES),
        line("fused", [Reading(1024.0), failed, Reading(1024.0), Reading(2048.0)], BYTES),
        line("stateful", [Reading(512.0), failed, None, Reading(0.0)], BYTES),
    )
