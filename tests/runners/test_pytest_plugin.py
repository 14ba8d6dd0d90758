"""pytest with and without --pullback, as somebody else's tests use it."""

import json
import subprocess
import sys

import pytest
from tests.runners.conftest import git

TESTS = """
import numpy as np
import pytest


@pytest.mark.parametrize("n", [10, 20])
def test_squares(gradient_benchmark, n):
    x = np.ones(n)
    value, gradient = gradient_benchmark(lambda: ((x * x).sum(), 2 * x), order=2)
    assert gradient.shape == x.shape


def test_plain(gradient_benchmark):
    assert gradient_benchmark(lambda: 3) == 3
"""


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "ridge"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "test_mine.py").write_text(TESTS)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)

    return run


def test_with_the_option_a_report_is_written_that_the_service_takes(suite, tmp_path):
    schemas = pytest.importorskip("pullback_service.reports.schemas", reason="the service's extra is not installed")
    done = suite("--pullback", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stdout
    assert "squares[n=10,order=2,f8,cpu] function:" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())["pullback"]
    schemas.ReportDocument.model_validate(report)
    assert report["project"] == "ridge"
    assert report["commit"]["title"] == "first"
    assert [case["case"]["workload"] for case in report["cases"]] == ["squares", "squares", "plain"]
    metrics = report["cases"][0]["variants"][0]["metrics"]
    assert len(metrics["time"]["slices"][0]) == 50
    assert metrics["array_allocs"]["value"] >= 2


def test_without_the_option_nothing_is_measured_or_imported(suite):
    done = suite()
    assert done.returncode == 0, done.stdout
    assert "gradients" not in done.stdout
    program = (
        "import sys, pullback_runners.pytest_plugin; print({'numpy', 'scipy', 'psutil', 'pyperf'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pullback", "/no/such/folder/x.json"], "--pullback cannot write /no/such/folder/x.json"),
        (["--pullback", "x.json", "-n", "2"], "--pullback times one test at a time; leave out -n"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_test_runs(suite, arguments, said):
    done = suite(*arguments)
    assert done.returncode == 4
    assert said in done.stderr
    assert "passed" not in done.stdout


@pytest.mark.long
def test_a_case_that_is_measured_twice_fails_its_test(suite, tmp_path):
    twice = "def test_a(gradient_benchmark):\n    gradient_benchmark(int)\n    gradient_benchmark(int)\n"
    (tmp_path / "ridge" / "test_mine.py").write_text(twice)
    done = suite("--pullback", str(tmp_path / "report.json"))
    assert done.returncode == 1
    assert "a[f8,cpu] function was measured already; give gradient_benchmark another size or variant" in done.stdout


WRONG = """
import numpy as np


def test_wrong(gradient_benchmark):
    value, gradient = gradient_benchmark(lambda: (1.0, np.zeros(3)))
    assert gradient.any()


def test_once(gradient_benchmark):
    calls = []

    def call():
        calls.append(1)
        return 1 / (len(calls) == 1)

    gradient_benchmark(call)


def test_right(gradient_benchmark):
    gradient_benchmark(lambda: 3)
"""


@pytest.mark.long
def test_what_a_failed_test_measured_has_no_numbers(suite, tmp_path):
    (tmp_path / "ridge" / "test_mine.py").write_text(WRONG)
    done = suite("--pullback", str(tmp_path / "report.json"))
    assert done.returncode == 1
    assert "wrong[f8,cpu] function: its test failed: assert" in done.stdout
    cases = json.loads((tmp_path / "report.json").read_text())["pullback"]["cases"]
    assert [(case["case"]["workload"], case["gradient"]["ok"]) for case in cases] == [("wrong", False), ("right", True)]
    (wrong,) = cases[0]["variants"]
    assert (wrong["error"]["kind"], wrong["metrics"]) == ("gradient", {})
