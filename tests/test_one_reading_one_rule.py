"""A reading is one type and the rule of judgement has one caller, so that every page, feed and answer says the same."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def files_with(pattern):
    files = [file for part in ("service", "dashboards", "cli") for file in sorted((ROOT / part).rglob("*.py"))]
    return [str(file.relative_to(ROOT)) for file in files if re.search(pattern, file.read_text(), re.MULTILINE)]


def test_a_reading_is_one_type():
    assert files_with(r"^class Reading\b") == ["service/pullback_service/readings/reading.py"]
    assert files_with(r"\bReading as\b") == []


def test_the_rule_has_one_caller_in_the_service_and_one_in_the_terminal_which_has_no_service():
    """Pages read judgements that are stored, or ask the service to compare."""
    assert files_with(r"(?<!def )\bjudge\($") == [
        "service/pullback_service/comparisons/queries.py",
        "cli/pullback_cli/run_changes.py",
    ]
