"""Whole runs of tiny suites: the report, the file, engines of other commits, stopping."""

import json
import math
import subprocess
import sys

import psutil
import pytest

from pullback_runners import runs
from pullback_runners.errors import UsageError
from pullback_runners.report import write_report
from pullback_runners.runs import list_cases, run_suite
from pullback_runners.suites import Suite


def run(path, *variants, **wishes):
    return run_suite("quick", ["sound"], variants=variants, workload_files=[path], **wishes)


@pytest.fixture
def report(tiny_report):
    return tiny_report("right")


def test_a_report_has_the_shape_that_all_parts_agreed_on(report):
    assert (report["format"], report["version"]) == ("pullback-report", 1)
    assert set(report) == {
        *("format", "version", "id", "started_at", "duration_s", "project", "commit", "machine", "harness"),
        *("cases", "comparisons"),
    }
    assert report["duration_s"] > 0
    assert report["harness"]["quality"] in {"clean", "contaminated"}
    assert report["harness"]["complete"]
    (case,) = report["cases"]
    assert [variant["variant"] for variant in case["variants"]] == ["unfused", "right"]
    assert [variant["kind"] for variant in case["variants"]] == ["tier", "peer"]
    assert len(case["variants"][0]["metrics"]["time"]["processes"]) == 2
    assert len(case["variants"][0]["metrics"]["time"]["slices"][0]) == 4
    assert case["variants"][0]["metrics"]["array_bytes"]["value"] > 0
    assert {row["metric"] for row in case["paired"]} >= {"time", "array_bytes", "array_allocs", "peak_bytes"}
    json.dumps(report, allow_nan=False)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("quality", "claim"), [("clean", 0.02), ("contaminated", 0.14 / math.sqrt(2))])
def test_two_groups_claim_less_on_a_busy_machine(faulty_workloads, tiny_suite, monkeypatch, quality, claim):
    monkeypatch.setattr("pullback_runners.report.run.judge_quality", lambda *_: (quality, []))
    (case,) = run(faulty_workloads, "right")["cases"]
    (time,) = [row for row in case["paired"] if row["metric"] == "time"]
    assert (time["n"], time["claim"]) == (2, pytest.approx(claim, abs=1e-6))


def test_pyperf_reads_the_file_and_the_report_comes_back(report, tmp_path):
    path = tmp_path / "report.json"
    write_report(report, path)
    assert json.loads(path.read_text())["pullback"] == report
    done = subprocess.run([sys.executable, "-m", "pyperf", "stats", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Total number of values: 8" in done.stdout
    shown = subprocess.run(
        [sys.executable, "-m", "pyperf", "show", path], capture_output=True, text=True, check=True
    ).stdout
    assert "sound[n=8,f8,cpu] unfused" in shown
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_without_a_single_time_is_written_too(report, tmp_path):
    report["cases"] = []
    write_report(report, tmp_path / "empty.json")
    assert json.loads((tmp_path / "empty.json").read_text())["pullback"]["cases"] == []


def test_a_file_that_cannot_be_written_is_named(report, tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        write_report(report, tmp_path / "nowhere" / "report.json")


def test_progress_is_told_in_steps_that_add_up(tiny_suite, faulty_workloads):
    steps = []
    run(faulty_workloads, "right", on_progress=steps.append)
    assert [step.phase for step in steps] == ["preflight", "examine", "measure", "measure", "finished"]
    assert (steps[-1].done, steps[-1].total) == (3, 3)
    assert steps[-1].case == "sound[n=8,f8,cpu]"


def test_a_failed_variant_takes_no_case_down_and_is_in_the_report(tiny_suite, faulty_workloads):
    (case,) = run(faulty_workloads, "zeros", "right")["cases"]
    assert {variant["variant"]: bool(variant["error"]) for variant in case["variants"]} == {
        "unfused": False,
        "zeros": True,
        "right": False,
    }
    assert case["error"] is None
    assert case["variants"][1]["error"]["kind"] == "gradient"
    assert [row["outcome"] for row in case["paired"] if row["variant"] == "zeros"] == ["failed"]


@pytest.mark.long
def test_a_hang_ends_at_its_timeout(tiny_suite, faulty_workloads):
    (case,) = run(faulty_workloads, "hangs", timeout_s=15.0)["cases"]
    unfused, hangs = case["variants"]
    assert hangs["error"] == {"kind": "timeout", "message": "no answer in 15 s; the worker was killed"}
    assert len(unfused["metrics"]["time"]["processes"]) == 2


def test_stopping_keeps_the_cases_that_were_finished(tiny_suite, faulty_workloads):
    finished = []

    def note(step):
        if step.phase == "finished":
            finished.append(step.case)

    report = run_suite(
        "quick",
        ["sound", "poly9*"],
        variants=["unfused"],
        workload_files=[faulty_workloads],
        on_progress=note,
        stop=lambda: bool(finished),
    )
    assert not report["harness"]["complete"]
    assert report["harness"]["partial"]
    assert [case["case"]["workload"] for case in report["cases"]] == ["poly9_broadcast"]


def test_an_ambiguous_case_is_given_more_groups_up_to_the_suites_limit(monkeypatch, faulty_workloads):
    # Nothing can be told from three slices of the same program, and a quick suite may not say same.
    greedy = Suite("quick", groups=2, most_groups=4, slices=3, may_say_same=False, more_groups=5)
    monkeypatch.setattr("pullback_runners.suites.SUITES", {"quick": greedy})
    monkeypatch.setattr("pullback_runners.report.document.noisy_outcome", lambda *_, **__: "ambiguous")
    steps = []
    (case,) = run(faulty_workloads, "right", on_progress=steps.append)["cases"]
    assert len(case["variants"][0]["metrics"]["time"]["processes"]) == 4
    assert (steps[-1].done, steps[-1].total) == (5, 5)


SQUARES = """
from pullback_runners.workloads import grid, workload

@workload(wrt="x", quick=grid(n=(5,)))
def squares(n):
    return lambda x: (x**2).sum()

@squares.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n)}

@squares.variant("right")
def _(x, *, n):
    return lambda: ((x**2).sum(), 2 * x)
"""


@pytest.mark.long
def test_a_variant_of_the_suite_that_is_not_there_is_absent_and_one_asked_for_by_name_has_failed(
    monkeypatch, faulty_workloads, tmp_path
):
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    coming = Suite("quick", 2, 2, 3, may_say_same=False, variants=("unfused", "native"))
    monkeypatch.setattr("pullback_runners.suites.SUITES", {"quick": coming})
    (tmp_path / "squares.py").write_text(SQUARES)
    report = run_suite("quick", ["squares"], workload_files=[tmp_path / "squares.py"])
    (case,) = report["cases"]
    assert [variant["variant"] for variant in case["variants"]] == ["unfused", "right"]  # what it declares is measured
    (sentence,) = report["harness"]["absent"]
    assert sentence.startswith("native takes part in no case: ")
    (case,) = run(faulty_workloads, "native", "right")["cases"]
    errors = {variant["variant"]: variant["error"] and variant["error"]["kind"] for variant in case["variants"]}
    assert errors == {"unfused": None, "native": "unavailable", "right": None}


def test_the_engine_of_another_checkout_is_the_one_that_runs(tiny_suite, faulty_workloads, tmp_path):
    def checkout(name, engine):
        package = tmp_path / name / "engine" / "pullback"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(engine)
        return tmp_path / name

    ancient = checkout("ancient", "TIERS = ('ancient',)\n")
    report = run(faulty_workloads, "right", engine_dir=ancient)
    (case,) = report["cases"]
    assert [each["variant"] for each in case["variants"]] == ["right"]
    assert (case["baseline"], case["error"]) == (None, None)
    assert report["harness"]["absent"] == [
        "unfused takes part in no case: this engine cannot run tier 'unfused', it offers ancient"
    ]
    thin = checkout("thin", "TIERS = ('unfused',)\n")
    (case,) = run(faulty_workloads, "right", engine_dir=thin / "engine")["cases"]
    assert case["error"]["kind"] == "exception"
    assert "has no attribute 'value_and_grad'" in case["error"]["message"]


def test_wrong_arguments_measure_nothing(tiny_suite, tmp_path):
    with pytest.raises(UsageError, match="'hasty'; known: quick, standard"):
        run_suite("hasty")
    with pytest.raises(UsageError, match="no engine in"):
        run_suite("quick", engine_dir=tmp_path)
    with pytest.raises(UsageError, match="'densse'"):
        run_suite("quick", ["densse"])


def test_given_commit_and_job_are_passed_on(tiny_suite, faulty_workloads):
    report = run(faulty_workloads, "unfused", commit={"sha": "a" * 40}, job={"id": 7, "attempt": 2}, project="mine")
    assert report["commit"] == {"sha": "a" * 40}
    assert report["harness"]["job"] == {"id": 7, "attempt": 2}
    assert report["project"] == "mine"


def test_listed_cases_say_what_they_are():
    described = {case.name: description for case, description in list_cases("quick")[0]}
    assert described["poly9_broadcast[n=1000,f8,cpu]"] == "sum(c0 + c1 x + ... + c9 x**9) with respect to c2."


@pytest.mark.long
@pytest.mark.parametrize("is_stopped", [False, True])
def test_the_next_case_is_examined_while_the_last_group_of_the_one_before_takes_its_turns(
    monkeypatch, faulty_workloads, tiny_suite, tmp_path, is_stopped
):
    (file := tmp_path / "squares.py").write_text(SQUARES.replace("(5,)", "(5, 6)"))
    seen = []
    start = runs.start_examination
    monkeypatch.setattr(runs, "start_examination", lambda *all_: seen.append("started") or start(*all_))
    report = run_suite(
        "quick",
        ["squares"],
        variants=["right"],
        workload_files=[file],
        on_progress=lambda step: seen.append(step.phase),
        stop=lambda: is_stopped and "started" in seen,
    )
    assert len(report["cases"]) == (0 if is_stopped else 2)
    assert seen[: seen.index("started") + 1] == ["preflight", "examine", "measure", "measure", "started"]
    assert psutil.Process().children() == []
