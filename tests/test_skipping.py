"""Where CI runs a skip is a failure, except for the reasons that are allowed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {
    "test_allowed.py": 'import pytest\npytest.importorskip("nowhere", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")',
    "test_refused_file.py": 'import pytest\npytest.importorskip("nowhere", reason="NO PARQUET TESTS")',
    "test_single.py": """
import pytest

def test_allowed():
    pytest.skip("torch: not installed")

def test_refused():
    pytest.skip("NO BROWSER TESTS: no Chromium found")

@pytest.mark.skipif(True, reason="llvmlite is not installed; install it to have native programs")
def test_refused_mark():
    pass

@pytest.mark.xfail(reason="known", strict=True)
def test_expected():
    raise AssertionError

def test_passes():
    pass
""",
}


@pytest.fixture
def run(tmp_path):
    """pytest with the suite's own conftest, where CI runs or elsewhere."""
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(**environment):
        inherited = {
            name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-q", "-rs", "--continue-on-collection-errors"],
            cwd=tmp_path,
            env={**inherited, **environment, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    return run


def test_a_skip_for_want_of_what_ci_installs_is_a_failure(run):
    said = run(CI="true")
    assert "1 failed, 1 passed, 2 skipped, 1 xfailed, 2 errors" in said
    for reason in ("NO PARQUET TESTS", "NO BROWSER TESTS: no Chromium found", "llvmlite is not installed"):
        assert f"Skipped where CI runs, which is a failure: {reason}" in said


def test_elsewhere_any_test_may_be_skipped(run):
    assert "1 passed, 5 skipped, 1 xfailed" in run()
