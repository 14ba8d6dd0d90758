import json
from io import StringIO

import pytest
from rich.console import Console

from pullback_runners.report.terminal_table import footnotes, report_table


@pytest.fixture
def report(tiny_report):
    return tiny_report("right", "zeros")


def shown(report, width):
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(report_table(report, width))
    for line in footnotes(report):
        console.print(line, soft_wrap=True)
    return console.file.getvalue()


def test_a_wide_table_has_a_line_for_each_variant(report):
    report = json.loads(json.dumps(report))
    for row in report["cases"][0]["paired"]:
        if (row["variant"], row["metric"]) == ("right", "time"):  # two groups beside other tests may say anything
            row |= {"log_ratio": -1.6, "low": -1.7, "high": -1.5, "outcome": "faster"}
    heading, case, unfused, right, zeros, *notes = shown(report, 200).splitlines()
    assert heading.split()[0] == "variant"
    assert case == "sound[n=8,f8,cpu]"
    assert [line.split()[0] for line in (unfused, right, zeros)] == ["unfused", "right", "zeros"]
    assert "baseline" in unfused
    assert " B in " in right
    assert "x faster (" in right
    assert zeros.split() == ["zeros", "failed", "gradient"]
    assert "failed: sound[n=8,f8,cpu] zeros: gradient of x is off by" in notes[0]


def test_a_narrow_table_folds_between_words_and_stays_in_its_width(report):
    lines = shown(report, 80).splitlines()
    assert max(map(len, lines[: lines.index(next(line for line in lines if line.startswith("failed:")))])) <= 80
    assert "…" not in "".join(lines)


def test_doubt_is_said(report):
    doubtful = json.loads(json.dumps(report))
    doubtful["harness"] |= {"quality": "contaminated", "contamination": ["it was loud"], "complete": False}
    for row in doubtful["cases"][0]["paired"]:
        if row["metric"] == "time" and row["outcome"] != "failed":
            row |= {"outcome": "ambiguous", "claim": 0.02}
    text = shown(doubtful, 200)
    assert "busy machine: it was loud" in text
    assert "stopped early" in text
    assert "ambiguous: 2 groups are too few" in text
    assert "differences of less than 2 % are not claimed: too few groups to know this machine's own noise" in text
    for row in doubtful["cases"][0]["paired"]:
        row["n"] = 1
    assert "ambiguous: 1 group is too few" in shown(doubtful, 200)


def test_variants_that_fail_alike_share_a_sentence(report):
    failing = json.loads(json.dumps(report))
    for variant in failing["cases"][0]["variants"][:2]:
        variant["error"] = {"kind": "exception", "message": "IndexError: no"}
    told = [line for line in shown(failing, 200).splitlines() if line.startswith("failed:")]
    assert told[0] == "failed: sound[n=8,f8,cpu] unfused, right: IndexError: no"
    assert [line.split(":")[1].split()[-1] for line in told[1:]] == ["zeros"]


def test_an_empty_report_is_a_heading(report):
    assert shown(report | {"cases": []}, 100).split()[0] == "variant"
