"""The pytest plugin a suite runs under: aliases its imports and writes down how every test ended.

Told by the environment: PULLBACK_SUITE_ALIASES (JSON, alias to package) and PULLBACK_SUITE_OUTCOMES (a file to write).
"""

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.public_suites import aliases

OUTCOMES: dict[str, dict[str, str]] = {}

for _alias, _target in json.loads(os.environ["PULLBACK_SUITE_ALIASES"]).items():
    aliases.install(_alias, _target)


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the worst outcome of a test's phases, and its last line."""
    known = OUTCOMES.setdefault(report.nodeid, {"outcome": "passed", "message": ""})
    if report.outcome == "failed":
        known |= {"outcome": "failed", "message": _last_line(report)}
    elif report.outcome == "skipped" and known["outcome"] == "passed":
        known |= {"outcome": "skipped", "message": _last_line(report)}


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported counts as one failure under its own name."""
    if report.outcome == "failed":
        OUTCOMES[report.nodeid] = {"outcome": "failed", "message": _last_line(report)}


def pytest_sessionfinish() -> None:
    """Write what was kept."""
    Path(os.environ["PULLBACK_SUITE_OUTCOMES"]).write_text(json.dumps(OUTCOMES), encoding="utf-8")


def _last_line(report: Any) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr).strip().splitlines()[-1]
    lines: list[str] = str(text).splitlines()
    return " ".join(line.strip() for line in lines[:3])[:300]
