"""What the README tells people to type exists, and is what CI runs."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from pullback_cli.main import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
CI = (ROOT / ".ci" / "run").read_text()


def test_every_task_of_make_in_the_readme_exists():
    told = set(re.findall(r"^(?:\.?/)?make (\w+)|`make (\w+)`", README, re.MULTILINE))
    names = {name for pair in told for name in pair if name}
    assert {"up", "test"} <= names
    assert names <= set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def test_ci_runs_the_tests_as_the_readme_says():
    assert re.search(r"^make test\b", README, re.MULTILINE)
    assert re.search(r"^ *step tests make .*\btest\b", CI, re.MULTILINE)
    assert re.search(r"^ *step lint make .*\blint\b", CI, re.MULTILINE)


@pytest.mark.parametrize(
    "line", re.findall(r"\bpullback ((?:up|run|compare|serve|agent|status|down|worker|migrate)\b[^`#\n]*)", README)
)
def test_every_command_line_in_the_readme_is_one_the_program_takes(line):
    command, *arguments = line.split()
    get_command(app).commands[command].make_context(command, arguments).close()


def test_every_folder_and_file_the_readme_points_at_exists():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    folders = re.findall(r"^\| ((?:`[a-z]+/`(?:, )?)+) \|", README, re.MULTILINE)
    places = links + [name for cell in folders for name in re.findall(r"`([a-z]+/)`", cell)]
    assert len(places) > 8
    missing = [place for place in places if not (ROOT / place).exists()]
    assert missing == []
