"""A reading is one type and the rule of judgement has one caller, so that every page, feed and answer says the same."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVICE = "service/pullback_service/"
SAMPLES = "shows the samples themselves"
MEASURED = "asks what a report measured, and reads no value"
READERS_OF_POINTS = {
    "readings/projection.py": "computes readings",
    "readings/queries.py": SAMPLES,  # the processes behind a reading, and its reports
    "series/windows.py": SAMPLES,  # `raw=true`
    "incidents/evidence.py": SAMPLES,  # the chart of an incident has every observation around it
    "incidents/detection_inputs.py": "looks at the reports of a commit one by one, where they may differ among themselves",
    "reports/retention.py": "takes process values away after the time for which they are kept",
    "reports/reconstruction.py": "puts a document together whose file is gone",
    "reports/withdrawal.py": "removes what a report measured",
    "database_checks.py": "checks the database",
    "database_rebuild.py": "mends the database",
    **dict.fromkeys(
        (
            "checks/queries.py",
            "reports/case_reports.py",
            "series/overview_data.py",
            "jobs/idle_machines.py",
            "backfills/queries.py",
        ),
        MEASURED,
    ),
}
"""Files that read points, and what for. Everything else reads `reading` and `step`."""


def files_with(pattern):
    files = [file for part in ("service", "dashboards", "cli") for file in sorted((ROOT / part).rglob("*.py"))]
    return [str(file.relative_to(ROOT)) for file in files if re.search(pattern, file.read_text(), re.MULTILINE)]


def test_points_are_read_for_a_reason():
    found = set(files_with(r"\b(FROM|JOIN) point\b|\b(select|join)\(Point\b"))
    allowed = {SERVICE + name for name in READERS_OF_POINTS}
    assert found <= allowed, (
        f"{sorted(found - allowed)} read points: read `reading`, which is pooled and judged once, or give the reason in READERS_OF_POINTS"
    )
    assert found == allowed, f"{sorted(allowed - found)} read no points: take them out of READERS_OF_POINTS"


def test_a_reading_is_one_type():
    assert files_with(r"^class Reading\b") == ["service/pullback_service/readings/reading.py"]
    assert files_with(r"\bReading as\b") == []


def callers_of(name):
    found = set()
    for part in ("service", "dashboards", "cli"):
        for file in (ROOT / part).rglob("*.py"):
            text = file.read_text()
            tree = ast.walk(ast.parse(text if name in text else ""))
            calls = (node.func for node in tree if isinstance(node, ast.Call))
            if name in {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}:
                found.add(str(file.relative_to(ROOT)))
    return found


def test_the_rule_has_one_caller_in_the_service_and_one_in_the_terminal_which_has_no_service():
    """Pages read judgements that are stored, or ask the service to compare."""
    terminal = "cli/pullback_cli/run_changes.py"
    assert callers_of("judge") == {"service/pullback_service/comparisons/queries.py", terminal}
    assert callers_of("judge_usual") == {
        "service/pullback_service/comparisons/aligned_readings.py"
    }  # the same rule as arrays
    # Points of stored reports, and of the one that is taken apart before it is stored.
    assert callers_of("pool") == {
        "service/pullback_service/readings/projection.py",
        "service/pullback_service/reports/point_rows.py",
        terminal,
    }
