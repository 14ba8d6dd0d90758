"""Faulty workloads to fail on purpose, and suites small enough for a test."""

import copy
import importlib.util
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from pullback_runners import suites
from pullback_runners.runs import run_suite
from pullback_runners.suites import Suite
from pullback_runners.workloads import Case, load_workload_file, registry

FAULTY_WORKLOADS = Path(__file__).with_name("faulty_workloads.py")

SOUND = Case("sound", (("n", 8),), "f8")


def _know_faulty_workloads(patch):
    registry.known_workloads()
    patch.setattr(registry, "_workloads", dict(registry._workloads))
    load_workload_file(FAULTY_WORKLOADS)
    return FAULTY_WORKLOADS


def _make_quick_tiny(patch):
    tiny = Suite("quick", groups=2, most_groups=2, slices=4, may_say_same=False, variants=("unfused",))
    patch.setitem(suites.SUITES, "quick", tiny)
    return tiny


@pytest.fixture
def faulty_workloads(monkeypatch):
    """The path of the faulty workloads, known to this test's registry and to no other's."""
    return _know_faulty_workloads(monkeypatch)


@pytest.fixture
def tiny_suite(monkeypatch):
    """`quick` with two groups of four slices."""
    return _make_quick_tiny(monkeypatch)


@pytest.fixture(scope="session")
def tiny_report():
    """A report of the sound case in the tiny suite, by variants: measured once, and a copy for each test that asks."""

    @cache
    def measured(*variants):
        with pytest.MonkeyPatch.context() as patch:
            path = _know_faulty_workloads(patch)
            _make_quick_tiny(patch)
            return run_suite("quick", ["sound"], variants=variants, workload_files=[path])

    return lambda *variants: copy.deepcopy(measured(*variants))


@pytest.fixture
def sound_case():
    return SOUND


DEVICES = Path(__file__).with_name("devices")


@pytest.fixture
def nvml_answers(monkeypatch, tmp_path):
    """A machine with devices, as a stand-in for NVIDIA's library plays it: a quiet one until this is called with another's name, or changes."""
    spec = importlib.util.spec_from_file_location("pynvml", DEVICES / "standin" / "pynvml.py")
    binding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(binding)
    monkeypatch.setitem(sys.modules, "pynvml", binding)
    played = tmp_path / "nvml.json"
    monkeypatch.setenv("STANDIN_NVML", str(played))
    monkeypatch.setenv("PULLBACK_LOCKS", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def play(name, **changes):
        answers = json.loads((DEVICES / "answers" / f"{name}.json").read_text())
        for question, answer in changes.items():
            (answers if question in answers or question == "init" else answers["gpus"][0])[question] = answer
        binding._played.clear()
        draft = played.with_suffix(".new")
        draft.write_text(json.dumps(answers))
        draft.replace(played)  # another process reads it at any moment

    play("quiet")
    return play


ENGINE = """
import contextlib
import numpy as np

TIERS = ("unfused",)


@contextlib.contextmanager
def tier(name):
    yield


def value_and_grad(function, wrt):
    def differentiated(x):
        for _ in range({times}):
            gradient = {factor} * x
        return function(x), (gradient,)

    return differentiated
"""
"""An engine that can differentiate the sum of squares, as often as it likes and as right as it likes."""


def git(folder, *arguments):
    """Run git with an identity of its own."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@a.test", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def projects_cache(tmp_path_factory, monkeypatch):
    """A folder for checkouts and environments that no other test shares."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def clone(tmp_path):
    """Commits of engines by tag: `plain`, `docs` (nothing new), `slow` (a hundred times the work), `wrong`, `none`."""
    folder = tmp_path / "clone"
    package = folder / "engine" / "pullback"
    package.mkdir(parents=True)
    git(folder, "init", "-q")

    def commit(tag, **engine):
        if engine:
            (package / "__init__.py").write_text(ENGINE.format(**engine))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"engine {tag}")
        git(folder, "tag", tag)

    (folder / "pullback.toml").write_text('[build]\npath = ["engine"]\nimport = ["pullback"]\n')
    commit("plain", times=1, factor="2.0")
    (folder / "README").write_text("words")
    commit("docs")
    commit("slow", times=100, factor="2.0")
    commit("wrong", times=1, factor="2.1")
    shutil.rmtree(folder / "engine")
    commit("none")
    git(folder, "checkout", "-q", "slow")
    return folder
