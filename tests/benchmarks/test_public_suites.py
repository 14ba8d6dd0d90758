"""The harness that runs public suites: what it counts, and a small suite run through it from outside."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SUITE = """
import autograd.numpy as np
from autograd import grad
import autograd.scipy.stats.norm as norm
import pytest

def test_right():
    assert grad(lambda x: np.sum(x**2))(3.0) == 6.0
    assert np.__name__ == "pullback.compat.autograd.numpy"

def test_wrong():
    assert grad(np.sin)(0.0) == 2.0

def test_pinv():
    np.linalg._dot

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass
"""


@pytest.fixture
def outcomes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.public_suites.suite_outcomes")


def test_a_suite_is_run_with_its_imports_answered_by_the_engine(tmp_path):
    tests = tmp_path / "suite" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_systematic.py").write_text(SUITE)
    (tests / "test_linalg.py").write_text("import autograd.numpy as np\ndef test_pinv():\n    np.linalg._dot\n")
    report = tmp_path / "report.json"
    command = ["-m", "benchmarks.public_suites", "autograd", "--source", str(tests.parent), "--json", str(report)]
    ran = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "33.3% of what is portable passes" in ran.stdout
    assert "failed: test_systematic.py::test_wrong" in ran.stdout
    data = json.loads(report.read_text())
    assert data["counts"] == {"passed": 1, "failed": 2, "skipped": 1, "not portable": 1}


EXAMPLES = {
    "rosenbrock.py": """
import autograd.numpy as np
import autograd.scipy.special
from autograd import grad
import parts

print(grad(lambda x: np.sum(parts.half(x) * autograd.scipy.special.expit(x)))(np.zeros(2)), grad.__module__)
""",
    "parts.py": "half = lambda x: x / 2",
    "trains.py": "import time\nprint('epoch 0')\ntime.sleep(600)",
    "wrong.py": "from autograd import no_such_name",
    "rkhs.py": "class RKHSFunBox:\n    pass\n\n\nRKHSFunBox.register(int)",
    "fluidsim/classifier.py": "import gzip\nprint(len(gzip.open('../data/train-images-idx3-ubyte.gz').read()), 'bytes of mnist')",
}


@pytest.mark.long
def test_examples_are_run_with_their_imports_changed_and_what_fails_unexpectedly_is_told(tmp_path):
    folder = tmp_path / "checkout" / "examples"
    (folder / "fluidsim").mkdir(parents=True)
    for name, text in EXAMPLES.items():
        (folder / name).write_text(text)
    report = tmp_path / "report.json"
    command = ["-m", "benchmarks.public_suites", "examples", "--source", str(folder.parent), "--seconds", "10"]
    ran = subprocess.run(
        [sys.executable, *command, "--json", str(report)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    ended = {example["example"]: example for example in json.loads(report.read_text())["examples"]}
    assert {name: example["ending"] for name, example in ended.items()} == {
        "fluidsim/classifier.py": "finished",
        "parts.py": "finished",
        "rkhs.py": "known to fail",
        "rosenbrock.py": "finished",
        "trains.py": "ran until the limit",
        "wrong.py": "failed",
    }
    assert ended["rosenbrock.py"]["said"].startswith("[0.25 0.25] pullback.")
    assert ended["trains.py"]["said"] == "epoch 0"
    assert "no_such_name" in ended["wrong.py"]["said"]
    assert "random images in place of MNIST" in ran.stdout
    assert (folder / "rosenbrock.py").read_text() == EXAMPLES["rosenbrock.py"]  # the checkout stays as it was


def test_examples_pass_where_none_fails_that_is_not_known_to(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    examples = importlib.import_module("benchmarks.public_suites.examples")
    ended = [
        examples.ExampleOutcome("rkhs.py", "known to fail", 1.0, "Box"),
        examples.ExampleOutcome("rnn.py", "ran until the limit", 45.0, ""),
    ]
    assert examples.passed(ended)
    assert not examples.passed([*ended, examples.ExampleOutcome("tanh.py", "failed", 1.0, "boom")])
    assert not examples.passed([])


def test_help_names_every_suite():
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.public_suites", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "--source" in ran.stdout
    assert "torch" in ran.stdout


def test_a_table_of_reasons_explains_failures_and_hides_nothing(outcomes):
    ended = [
        outcomes.Outcome("a::x", "failed", "boom"),
        outcomes.Outcome("a::y", "passed"),
        outcomes.Outcome("b::z", "failed"),
    ]
    explained = outcomes.classified(ended, {"a::*": "private names"})
    assert [outcome.ending for outcome in explained] == ["not portable", "passed", "failed"]
    assert explained[0].message == "private names"
    assert outcomes.pass_rate(explained) == 0.5


def test_skipped_tests_count_neither_way(outcomes):
    ended = [outcomes.Outcome("a::x", "skipped"), outcomes.Outcome("a::y", "passed")]
    assert outcomes.pass_rate(ended) == 1.0
    assert "100.0%" in outcomes.table(ended)
