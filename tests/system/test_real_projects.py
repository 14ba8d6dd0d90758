"""Libraries of others, commit by commit of their public history; docs/real-projects.md says how to have them at hand."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = os.environ.get("PULLBACK_REAL_PROJECTS")
FILES = Path(__file__).parents[1] / "data" / "real-projects"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(FOLDER is None, reason="PULLBACK_REAL_PROJECTS names no folder with clones of real projects"),
]


@dataclass(frozen=True)
class History:
    """Twenty commits that changed what is measured, and the cases of each."""

    name: str
    after: str
    until: str
    cases: int


HISTORIES = (
    History("autograd", "01fa794764f1c05b0fd940ab2675cdffe7ec5098", "bff107b8d71a444a1160deade3e1cbd0b92f4fa6", 4),
    History("optax", "6e5690ac8f07739a4d142388a6dfd4311c581f8d", "2edbcbe2390da13983b92cbef94ac0460ecde1c5", 3),
    History("nanoGPT", "23a0bfac20945a3801f1a57dfa583e8495be6d26", "3adf61e154c3fe3fca428ad6bc3818b27a3b8291", 2),
    History("diffcp", "d7ac3f005bbc9f429e0beef5e63385c54cedb100", "44e4ffe95ee72f31b04a93fa62bb0216b1c04a3a", 2),
)


def clone_of(name, until, folder):
    """A clone at a commit, with the files that measure it as one commit more."""
    clone = folder / name
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@a.test"]
    subprocess.run([*git, "clone", "-q", str(Path(FOLDER) / name), str(clone)], check=True)
    subprocess.run([*git, "-C", clone, "checkout", "-q", until], check=True)
    shutil.copytree(FILES / name, clone / "bench", dirs_exist_ok=True)
    (clone / "bench" / "pullback.toml").rename(clone / "pullback.toml")
    subprocess.run([*git, "-C", clone, "add", "pullback.toml", "bench"], check=True)
    subprocess.run([*git, "-C", clone, "commit", "-q", "-m", "Measure gradients"], check=True)
    return clone


def pullback(clone, *arguments):
    command = [sys.executable, "-c", "from pullback_cli.main import main; main()", *arguments]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False, timeout=3600)


@pytest.mark.parametrize("history", HISTORIES, ids=lambda each: each.name)
def test_twenty_commits_are_measured_or_it_is_said_why_not(history, tmp_path):
    clone = clone_of(history.name, history.until, tmp_path)
    output = tmp_path / "history"
    done = pullback(clone, "run", "--commits", f"{history.after}..{history.until}", "--suite", "trial", "-o", output)
    assert done.returncode in {0, 1}, done.stderr
    assert "Traceback" not in done.stderr
    reports = [json.loads(path.read_text())["pullback"] for path in sorted(output.glob("*.json"))]
    failed = re.findall(r"commit (\w+) cannot be (?:built|measured)", done.stderr)
    print(f"{history.name}: {len(reports)} commits measured, not: {failed}")  # noqa: T201 - for who runs it with -s
    assert len(reports) + len(failed) == 20
    newest = reports[-1]["cases"]
    assert len(newest) == history.cases
    assert [each["error"] for case in newest for each in case["variants"]] == [None] * history.cases
    assert done.stdout.count("gradient error") == len(reports)


def test_a_commit_that_says_that_it_saves_memory_does_and_costs_time_where_arrays_are_small(tmp_path):
    clone = clone_of("optax", "2edbcbe2390da13983b92cbef94ac0460ecde1c5", tmp_path)
    commit = "2fe2297efd7fcdb4d9898198f551df43d407b83f"  # Reduce focal loss memory usage.
    done = pullback(clone, "compare", "--against", f"{commit}~1", "--candidate", commit, "--case", "focal", "--json")
    rows = {row["metric"]: row for row in json.loads(done.stdout)["comparisons"]}
    assert rows["native_bytes"]["outcome"] == "less"
    # XLA's program for 2,000 elements evaluates 15 transcendental functions for each instead of 10: 1.25 times the processor time.
    assert rows["time"]["outcome"] == "slower"
    assert done.returncode == 3
