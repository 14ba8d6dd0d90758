"""`pullback compare` and `pullback run --commits` as a user starts them, on engines that cost nothing."""

import json
import re
from pathlib import Path

import pytest

WORKLOADS = str(Path(__file__).with_name("faulty_workloads.py"))


@pytest.fixture
def pullback(command, clone):
    def run(name, *arguments, suite="trial"):  # as few groups as a report can have, where it is not about how many
        narrowed = ["--repository", str(clone), "--workloads", WORKLOADS, "--suite", f"{suite}:sound*"]
        return command(name, *narrowed, *arguments)

    return run


def test_a_regression_has_an_exit_status_of_its_own_and_a_report_to_upload(pullback, tmp_path):
    output = tmp_path / "compared.json"
    done = pullback("compare", "--against", "plain", "--variant", "unfused", "-o", str(output), suite="quick")
    assert done.returncode == 3, done.stderr
    assert "sound[n=8,f8,cpu]" in done.stdout
    assert "x slower (" in done.stdout
    assert re.search(
        "1 (likely )?slower", done.stdout
    )  # likely where others used the machine, for quick has no control
    report = json.loads(output.read_text())["pullback"]
    assert report["comparisons"][0]["outcome"] == "slower"


def test_a_wrong_gradient_has_status_1(pullback):
    done = pullback("compare", "--against", "plain", "--candidate", "wrong", "--variant", "unfused", "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["comparisons"][0]["outcome"] == "failed"


@pytest.mark.long
def test_what_cannot_be_had_is_said_and_the_rest_is_compared(pullback, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no')")
    wishes = ["--case", "sounder", "--workloads", str(broken), "--variant", "unfused", "--json"]
    done = pullback("compare", "--against", "plain", "--candidate", "plain", *wishes)
    assert done.returncode in {2, 3}, done.stderr  # 3 if noise makes a program slower than itself
    report = json.loads(done.stdout)
    assert [case["case"]["workload"] for case in report["cases"]] == ["sound"]
    file, name = report["harness"]["refused"]
    assert file.startswith(f"{broken} cannot be loaded")
    assert name.startswith("no case of suite 'trial' matches 'sounder'; did you mean sound? ")
    assert [line for line in done.stderr.splitlines() if line.startswith("pullback")] == [
        f"pullback: {sentence}" for sentence in (file, name)
    ]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--against", "nowhere"], "has no revision 'nowhere'"),
        (["--against", "plain", "--candidate", "none"], "cannot be built: it has no engine/ folder"),
        (["--against", "plain", "--variant", "fussed"], "no variant 'fussed'"),
        (["--against", "plain", "--device", "tpu"], "no device 'tpu'; known: cpu, cuda"),
        (
            ["--against", "plain", "-o", "/no/such/folder/x.json"],
            "the folder /no/such/folder does not exist; create it",
        ),
        (["--against", "plain", "--candidate", ""], "--candidate is empty; name a commit, or leave it out"),
        (["--against", "plain", "--dirty", "--candidate", "slow"], "give only one of them"),
    ],
)
def test_wrong_usage_is_one_sentence_with_status_2(pullback, arguments, said):
    done = pullback("compare", *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("pullback: ")
    assert not line.startswith("pullback: compare")
    assert said in line


def test_uncommitted_changes_are_judged_on_purpose_only(pullback, clone):
    (clone / "engine" / "pullback" / "__init__.py").write_text("TIERS = ()\n")
    done = pullback("compare", "--against", "plain")
    assert done.returncode == 2
    assert "engine/pullback/__init__.py" in done.stderr
    assert "--dirty" in done.stderr


def test_each_commit_of_a_range_is_a_report_and_one_that_cannot_be_built_stops_no_other(pullback, tmp_path):
    folder = tmp_path / "history"
    done = pullback("run", "--commits", "docs..none", "--variant", "unfused", "-o", str(folder))
    assert done.returncode == 1, done.stderr
    assert "has no engine/ folder" in done.stderr
    reports = [json.loads(path.read_text())["pullback"] for path in sorted(folder.iterdir())]
    assert [report["commit"]["title"] for report in reports] == ["engine slow", "engine wrong"]
    slow, wrong = (report["cases"][0]["variants"][0] for report in reports)
    assert slow["error"] is None
    assert wrong["error"]["kind"] == "gradient"
