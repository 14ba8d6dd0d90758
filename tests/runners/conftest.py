"""Faulty workloads to fail on purpose, and suites small enough for a test."""

from pathlib import Path

import pytest

from pullback_runners import suites
from pullback_runners.suites import Suite
from pullback_runners.workloads import Case, load_workload_file, registry

FAULTY_WORKLOADS = Path(__file__).with_name("faulty_workloads.py")

SOUND = Case("sound", (("n", 8),), "f8")


@pytest.fixture
def faulty_workloads(monkeypatch):
    """The path of the faulty workloads, known to this test's registry and to no other's."""
    registry.known_workloads()
    monkeypatch.setattr(registry, "_workloads", dict(registry._workloads))
    load_workload_file(FAULTY_WORKLOADS)
    return FAULTY_WORKLOADS


@pytest.fixture
def tiny_suite(monkeypatch):
    """`quick` with two groups of four slices."""
    tiny = Suite("quick", groups=2, most_groups=2, slices=4, may_say_same=False, variants=("unfused",))
    monkeypatch.setitem(suites.SUITES, "quick", tiny)
    return tiny


@pytest.fixture
def sound_case():
    return SOUND
