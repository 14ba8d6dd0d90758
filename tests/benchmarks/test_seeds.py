"""The table of the seeds, run from outside for a moment: what it prints, what it writes, what it refuses."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def at_the_root():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks.seeds", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_way_of_a_row_is_printed_and_written_with_its_figures(tmp_path):
    ran = run("--only", "dropout", "--seconds", "0.05", "--json", str(tmp_path / "seeds.json"))
    assert ran.returncode == 0, ran.stderr
    ways = json.loads((tmp_path / "seeds.json").read_text())
    assert [way["way"] for way in ways] == ["numpy", *pullback.TIERS]
    assert all(way["us"]["low"] <= way["us"]["middle"] <= way["us"]["high"] for way in ways)
    assert all(way["way"] in ran.stdout for way in ways)
    assert ways[-1]["nbytes"] == 0


def test_the_growth_of_a_row_at_two_sizes_is_measured(tmp_path):
    ran = run("--only", "back of c[1]", "--seconds", "0.05", "--json", str(tmp_path / "seeds.json"))
    assert ran.returncode == 0, ran.stderr
    ways = json.loads((tmp_path / "seeds.json").read_text())
    assert all(way["growth"]["middle"] > 0 for way in ways)
    assert {way["nbytes"] for way in ways} == {0}


def test_rows_are_listed_without_measuring_and_an_unknown_one_is_refused():
    listed = run("--list").stdout.splitlines()
    assert {line.split("-")[0] for line in listed} == {"s1", "s2", "s3", "s4"}
    refused = run("--only", "no such row")
    assert refused.returncode == 2
    assert "--list shows the names" in refused.stderr


def test_a_way_that_computes_something_else_is_not_timed():
    main = importlib.import_module("benchmarks.seeds.__main__")
    with pytest.raises(SystemExit, match="wrong does not compute what unfused does"):
        main._require_agreement("row", {"unfused": lambda: 1.0, "wrong": lambda: 1.1})


def test_the_interval_of_a_median_holds_it_and_narrows():
    median = importlib.import_module("benchmarks.turns").Median
    few, many = median.of([1.0, 3.0, 2.0, 5.0, 4.0]), median.of([float(k % 10) for k in range(400)])
    assert (few.low, few.middle, few.high) == (1.0, 3.0, 5.0)
    assert many.low <= many.middle <= many.high
    assert many.high - many.low <= 2
