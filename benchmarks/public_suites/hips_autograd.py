"""The test-suite of HIPS autograd, run against the engine: `autograd` in its imports is `pullback.compat.autograd`.

The suite is read from a folder or archive that is given, else fetched as the source distribution by pip into a temporary
folder. Nothing of it is kept.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.public_suites.outcomes import Outcome, classified

VERSION = "1.9.1"
ALIASES = {"autograd": "pullback.compat.autograd"}
REPOSITORY = Path(__file__).resolve().parents[2]

#: Tests that cannot say anything about another engine, with the reason. Patterns of names; failures only.
NOT_PORTABLE: dict[str, str] = {
    "test_fft.py::test_rfftn_odd_not_implemented": "asserts that autograd has no gradient, where this engine has one",
    "test_linalg.py::test_pinv": "calls autograd's private numpy.linalg._dot",
    "test_wrappers.py::test_wrapped_name_and_docs": "compares the wording of a docstring",
}


def outcomes(source: Path | None, packages: Path | None = None) -> list[Outcome]:
    """Run the suite in a fresh process and say how every test ended; `packages` may hold what some tests ask for."""
    with tempfile.TemporaryDirectory(prefix="pullback-suite-") as folder:
        tests = Path(folder) / "tests"
        shutil.copytree(_tests_of(source, Path(folder)), tests)
        return classified(_run(tests, Path(folder) / "outcomes.json", packages), NOT_PORTABLE)


def _tests_of(source: Path | None, folder: Path) -> Path:
    """The folder of tests in a source tree, an archive of one, or the distribution that pip fetches."""
    if source is None:
        source = _downloaded(folder)
    if source.is_file():
        with tarfile.open(source) as archive:
            archive.extractall(folder / "source", filter="data")
        source = folder / "source"
    found = sorted(source.rglob("test_systematic.py"))
    if not found:
        raise SystemExit(f"there is no autograd test-suite in {source}; give its source folder or archive")
    return found[0].parent


def _downloaded(folder: Path) -> Path:
    arguments = ["download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), f"autograd=={VERSION}"]
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:  # noqa: S603 (our own interpreter)
        found = shutil.which("pip")
        if found is None:
            raise SystemExit("there is no pip to fetch the suite with; give its source folder or archive by --source")
        pip = [found]
    fetched = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 (as above)
    if fetched.returncode != 0:
        raise SystemExit(f"pip could not fetch the suite; give it by --source\n{fetched.stderr.strip()}")
    return next(folder.glob("autograd-*.tar.gz"))


def _run(tests: Path, report: Path, packages: Path | None) -> list[Outcome]:
    paths = [str(REPOSITORY), *([str(packages.resolve())] if packages else []), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PULLBACK_SUITE_ALIASES": json.dumps(ALIASES),
        "PULLBACK_SUITE_OUTCOMES": str(report),
    }
    configuration = ["-c", os.devnull, "--rootdir", str(tests), "-p", "no:cacheprovider"]
    plugin = ["-p", "benchmarks.public_suites.pytest_recording", "--continue-on-collection-errors"]
    ran = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-m", "pytest", *configuration, *plugin, "-q", "--tb=short", str(tests)],
        env=environment,
        cwd=tests,
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        raise SystemExit(f"the suite did not run:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    ended = json.loads(report.read_text(encoding="utf-8"))
    return [Outcome(name, test["outcome"], test["message"]) for name, test in ended.items()]
