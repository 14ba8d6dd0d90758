"""`pullback run` as a user starts it."""

import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from pullback_cli.main import main; main()", "run"]


def pullback_run(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def run(command):
    return partial(command, "run")


@pytest.fixture
def trial_run(run):
    """As few groups as a report can have, where it is not about how many."""
    return partial(run, "--suite", "trial")


def git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "report.json"
    done = pullback_run("--case", "mul_restore", "--variant", "numpy", "-o", str(path))
    return done, path


@pytest.mark.long
def test_a_run_prints_a_table_a_pipe_can_read(measured):
    done, path = measured
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[:4] == ["variant", "time", "a", "call"]
    assert lines[1].strip() == "mul_restore[m=16,k=32,n=8,f8,cpu]"
    assert "baseline" in lines[2]
    assert "x faster (" in lines[3]
    assert "\x1b" not in done.stdout
    assert f"python -m pyperf stats {path}" in done.stdout
    assert re.search("differences of less than (2|6) % are not claimed", done.stdout)
    assert "[7/7] mul_restore" in done.stderr


@pytest.mark.long
def test_a_run_writes_its_report(measured):
    _, path = measured
    report = json.loads(path.read_text())["pullback"]
    assert report["harness"]["suite"] == "quick"
    (row,) = [row for row in report["cases"][0]["paired"] if row["metric"] == "time"]
    assert (row["variant"], row["n"], row["outcome"]) == ("numpy", 6, "faster")


def test_json_goes_to_standard_output_and_a_failed_case_is_status_1(trial_run):
    done = trial_run("--case", "poly9_b*", "--variant", "torch", "--json", "--quiet")
    assert done.returncode == 1
    assert done.stderr == ""
    (case,) = json.loads(done.stdout)["cases"]
    assert [variant["error"] and variant["error"]["kind"] for variant in case["variants"]] == [None, "unavailable"]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--suite", "hasty"], "known: quick, standard, full"),
        (["--case", "densse"], "--list"),
        (["--engine", "/nowhere"], "give a checkout"),
        (["--variant", "fussed"], "no variant 'fussed'; known: unfused, fused"),
        (["--html", "/nowhere/page.html"], "create it, or give --html another file"),
        (["-o", "one.json", "--html", "one.json"], "-o and --html are both one.json"),
        (["--commits", "nowhere..HEAD"], "has no revision 'nowhere'"),
        (["--commits", "HEAD", "--html", "page.html"], "each commit is a report"),
        (["-o", "/nowhere/report.json"], "create it, or give -o another file"),
    ],
)
def test_wrong_usage_is_one_sentence_with_the_remedy_and_status_2(run, arguments, remedy):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("pullback: ")
    assert not line.startswith("pullback: run")
    assert remedy in line


@pytest.mark.long
def test_what_cannot_be_had_is_said_the_rest_is_measured_and_the_status_is_2(trial_run, tmp_path):
    path, file = tmp_path / "report.json", tmp_path / "mine.py"
    file.write_text("import no_such")
    done = trial_run(
        *("--case", "densse", "--case", "poly9_broadcast", "--variant", "numpy"),
        *("--workloads", str(file), "--workloads", "/nowhere.py", "-o", str(path)),
    )
    assert done.returncode == 2
    broken, missing, unknown, measured = done.stderr.splitlines()  # refusals first, not after minutes
    assert measured.startswith("[3/3] poly9_broadcast")
    assert f"not measured: {file} cannot be loaded" in done.stdout
    assert "no workload file /nowhere.py; give the path" in missing
    assert f"{file} cannot be loaded (line 1)" in broken
    assert "no case of suite 'trial' matches 'densse'" in unknown
    (case,) = json.loads(path.read_text())["pullback"]["cases"]
    assert case["case"]["workload"] == "poly9_broadcast"


@pytest.mark.parametrize("text", ["raise RuntimeError('boom')", "def (", "import sys; sys.exit(3)", "import no_such"])
def test_a_workload_file_that_cannot_be_loaded_is_wrong_usage(run, tmp_path, text):
    file = tmp_path / "mine.py"
    file.write_text(f"\n{text}\n")
    done = run("--list", "--workloads", str(file))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{file} cannot be loaded (line 2)" in line


def test_the_list_measures_nothing(run):
    done = run("--list", "--json", "--case", "dense*f4*")
    assert done.returncode == 0
    assert [case["params"]["n"] for case in json.loads(done.stdout)] == [32, 100]


WRONG_ORACLE = """
import numpy as np
from pullback_runners.workloads import grid, workload

@workload(wrt="x", quick=grid(n=(3,)))
def squares(n):
    return lambda x: np.sum(x * x)

@squares.inputs
def _(rng, dtype, n):
    return {"x": rng.standard_normal(n).astype(dtype)}

@squares.oracle
def _(x, *, n):
    return np.sum(x * x), {"x": 3 * x}
"""


def test_a_workload_of_ones_own_is_filed_under_its_repository_and_its_wrong_oracle_is_called_wrong(run, tmp_path):
    repository, path = tmp_path / "mine", tmp_path / "report.json"
    repository.mkdir()
    (repository / "squares.py").write_text(WRONG_ORACLE)
    git(repository, "init", "--quiet")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "Squares")
    done = run(
        *("--workloads", str(repository / "squares.py"), "--case", "squares", "--variant", "fused"),
        *("--quiet", "-o", str(path)),
    )
    assert done.returncode == 1, done.stderr
    assert "unfused and fused agree with each other and not with the oracle: the oracle is wrong, or" in done.stdout
    assert "fused and unfused agree with each other and not with the oracle: the oracle is wrong, or" in done.stdout
    sha = git(repository, "rev-parse", "HEAD")
    assert f"mine at {sha[:10]} on " in done.stdout
    report = json.loads(path.read_text())["pullback"]
    assert (report["project"], report["commit"]["sha"], report["commit"]["dirty"]) == ("mine", sha, False)
    assert report["harness"]["engine"] != report["commit"]
    assert report["harness"]["workload_files"] == ["squares.py"]
    assert f"written to {path}; nothing in it was timed, so pyperf cannot read it" in done.stdout


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_interrupts_a_run_keeps_what_was_measured(tmp_path, signal_number, status):
    path = tmp_path / "report.json"
    with subprocess.Popen(
        [*COMMAND, "--suite", "trial", "--variant", "numpy", "-o", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert "finished" in running.stderr.readline()
        running.send_signal(signal_number)
        stdout, _ = running.communicate(timeout=30)
    assert running.returncode == status
    assert "stopped early" in stdout
    report = json.loads(path.read_text())["pullback"]
    assert not report["harness"]["complete"]
    assert 1 <= len(report["cases"]) < 6


def test_a_suite_may_be_narrowed_as_up_takes_it(run):
    done = run("--list", "--json", "--suite", "quick:poly9*;mul_restore*")
    assert done.returncode == 0
    assert {case["workload"] for case in json.loads(done.stdout)} >= {"poly9_broadcast", "mul_restore"}


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_takes_the_file_and_not_what_was_measured(trial_run):
    done = trial_run("--case", "mul_restore", "--variant", "numpy", "-o", "/dev/full")
    assert done.returncode == 2
    assert "mul_restore[m=16,k=32,n=8,f8,cpu]" in done.stdout
    assert "cannot write /dev/full: No space left on device; give another file to -o" in done.stderr


def test_a_run_makes_a_page_and_markdown(trial_run, tmp_path):
    pytest.importorskip("plotly")
    page, tables = tmp_path / "run.html", tmp_path / "run.md"
    done = trial_run("--case", "mul_restore", "--variant", "numpy", "--html", str(page), "--markdown", str(tables))
    assert done.returncode == 0, done.stderr
    assert "mul_restore[m=16,k=32,n=8,f8,cpu]" in page.read_text()
    assert "| numpy |" in tables.read_text()


def test_pyperf_compares_two_files(measured, tmp_path):
    _, path = measured
    other = tmp_path / "other.json"
    other.write_text(path.read_text())
    for arguments in (["hist", str(path)], ["compare_to", str(path), str(other)]):
        done = subprocess.run([sys.executable, "-m", "pyperf", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_in_a_repository_without_a_project_it_is_said_whose_workloads_these_are(trial_run, tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    done = trial_run("--case", "mul_restore", "--variant", "numpy", "--repository", str(tmp_path))
    assert done.returncode == 0
    assert "no pullback.toml here: these are Pullback's own workloads; `pullback init` begins with yours" in done.stderr


def test_a_bare_repository_is_refused(run, tmp_path):
    git(tmp_path, "init", "-q", "above")
    (tmp_path / "above" / "pullback.toml").write_text('[measure]\nworkloads = ["bench/gradients.py"]\n')
    git(tmp_path / "above", "add", "-A")
    git(tmp_path / "above", "commit", "-q", "-m", "first")
    git(tmp_path, "clone", "-q", "--bare", "above", "bare")
    for arguments in ((), ("--list",)):
        done = run(*arguments, "--case", "mul_restore", "--variant", "numpy", "--repository", str(tmp_path / "bare"))
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert "bare is a bare repository, where no pullback.toml is checked out; give a clone of it" in line
