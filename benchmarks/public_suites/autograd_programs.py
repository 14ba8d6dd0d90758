"""Test-suites of programs that import autograd: autograd's own, and those of packages built on it.

They run against the engine: `autograd` in their imports is `pullback.compat.autograd`. A suite is read from a folder or
archive that is given, else fetched as the source distribution by pip into a temporary folder. Nothing of it is kept.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.public_suites.suite_outcomes import Outcome, classified

ALIASES = {"autograd": "pullback.compat.autograd"}
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Suite:
    """A public suite, by the name and version of its distribution."""

    distribution: str
    version: str
    marker: str  # a file of the folder of tests
    runs_from: str = "."  # where pytest is started, from the folder of tests
    own_conftest: bool = True  # else it is left out: it imports every engine the package supports
    only_mentioning: str = ""  # files of tests without this word have nothing to do with a gradient of ours
    plugin: str = ""  # a pytest plugin of ours that the tests run under, besides the one that records
    #: Tests that cannot say anything about another engine, with the reason. Patterns of names; failures only.
    not_portable: Mapping[str, str] = field(default_factory=dict)


SUITES = {
    "autograd": Suite(
        "autograd",
        "1.9.1",
        "test_systematic.py",
        not_portable={
            "test_fft.py::test_rfftn_odd_not_implemented": "asserts that autograd has no gradient, where this engine has one",
            "test_linalg.py::test_pinv": "calls autograd's private numpy.linalg._dot",
            "test_wrappers.py::test_wrapped_name_and_docs": "compares the wording of a docstring",
        },
    ),
    "pymanopt": Suite(
        "pymanopt", "2.2.1", "test_problem.py", runs_from="..", own_conftest=False, only_mentioning="autograd"
    ),
    "mygrad": Suite(
        "mygrad",
        "2.5.0",
        "test_constant_inference.py",
        runs_from="..",
        only_mentioning="backprop_test_factory(",
        plugin="benchmarks.public_suites.mygrad_oracle",
        not_portable={
            "*::test_inplace_arithmetic_bkwd*": "calls np.broadcast, which is a class and cannot dispatch",
            "*::test_reshape_bkwd[[]in_place_reshape]": "assigns to the shape of its argument",
            "*::test_flatten_bkwd": "calls the method of ndarray by its class",
            "*::test_batchnorm_bkwd": "its reference function is computed with MyGrad's tensors",
            "*::test_conv_1d_bkwd": "its reference function is computed with MyGrad's tensors",
            "*::test_softmax_focal_bkwd": "its reference function is computed with MyGrad's tensors",
            "*::test_softmax_crossentropy_bkwd": "its reference function is computed with MyGrad's tensors",
        },
    ),
}


def outcomes(suite: Suite, source: Path | None, packages: Path | None = None) -> list[Outcome]:
    """Run a suite in a fresh process and say how every test ended; `packages` may hold what it needs installed."""
    with tempfile.TemporaryDirectory(prefix="pullback-suite-") as folder:
        tests = Path(folder) / "run" / "tests"
        shutil.copytree(folder_of(suite, suite.marker, source, Path(folder)), tests)
        if not suite.own_conftest:
            (tests / "conftest.py").unlink(missing_ok=True)
        return classified(_run(suite, tests, Path(folder) / "outcomes.json", packages), suite.not_portable)


def folder_of(suite: Suite, marker: str, source: Path | None, folder: Path) -> Path:
    """The folder that holds a file in a source tree, an archive of one, or the distribution that pip fetches into `folder`."""
    if source is None:
        source = _downloaded(suite, folder)
    if source.is_file():
        with tarfile.open(source) as archive:
            archive.extractall(folder / "source", filter="data")
        source = folder / "source"
    found = sorted(source.rglob(marker))
    if not found:
        raise SystemExit(f"there is no {marker} of {suite.distribution} in {source}; give its source folder or archive")
    return found[0].parent


def _downloaded(suite: Suite, folder: Path) -> Path:
    wanted = f"{suite.distribution}=={suite.version}"
    arguments = ["download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), wanted]
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:  # noqa: S603 (our own interpreter)
        found = shutil.which("pip")
        if found is None:
            raise SystemExit("there is no pip to fetch the suite with; give its source folder or archive by --source")
        pip = [found]
    fetched = subprocess.run([*pip, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 (as above)
    if fetched.returncode != 0:
        raise SystemExit(f"pip could not fetch the suite; give it by --source\n{fetched.stderr.strip()}")
    return next(folder.glob("*.tar.gz"))


def _run(suite: Suite, tests: Path, report: Path, packages: Path | None) -> list[Outcome]:
    paths = [str(REPOSITORY), *([str(packages.resolve())] if packages else []), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PULLBACK_SUITE_ALIASES": json.dumps(ALIASES),
        "PULLBACK_SUITE_OUTCOMES": str(report),
    }
    start = (tests / suite.runs_from).resolve()
    files = [
        str(file)
        for file in sorted(tests.rglob("test_*.py"))
        if suite.only_mentioning in file.read_text(encoding="utf-8")
    ]
    configuration = ["-c", os.devnull, "--rootdir", str(start), "-p", "no:cacheprovider"]
    plugin = ["-p", "benchmarks.public_suites.pytest_recording", "--continue-on-collection-errors"]
    plugin += ["-p", suite.plugin] if suite.plugin else []
    ran = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-m", "pytest", *configuration, *plugin, "-q", "--tb=short", *files],
        env=environment,
        cwd=start,
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        raise SystemExit(f"the suite did not run:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    ended = json.loads(report.read_text(encoding="utf-8"))
    return [Outcome(name, test["outcome"], test["message"]) for name, test in ended.items()]
