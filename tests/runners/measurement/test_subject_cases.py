"""What commits are compared by if nobody names a variant."""

from pathlib import Path

import pytest

from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.subject_cases import CaseSelection
from pullback_runners.measurement.worker_process import Draw, python_environment, worker_environment
from pullback_runners.suites import find_suite
from pullback_runners.workloads import Case, Offer


@pytest.mark.parametrize(
    ("is_foreign", "has_numpy", "of_engine", "variants"),
    [
        (True, True, False, ["unfused", "native", "jax"]),
        (True, False, False, ["jax"]),
        (True, True, True, ["unfused", "fused", "stateful", "native", "jax"]),
        (False, True, True, ["unfused", "fused", "stateful", "native"]),
    ],
)
def test_a_projects_own_function_is_compared_by_two_tiers_and_an_engine_by_all(
    is_foreign, has_numpy, of_engine, variants
):
    offer = Offer("a workload", is_foreign, has_numpy, ("jax",), "unfused")
    chosen = CaseSelection([], [], [], {"mine": offer}, ["jax"], ["mine"], of_engine=of_engine)
    assert chosen.variants("mine") == variants


@pytest.mark.parametrize(("comparisons", "seconds"), [(1, 60), (4, 60), (5, 75), (8, 120)])
def test_a_minute_is_shared_by_four_comparisons(comparisons, seconds):
    assert find_suite("standard").comparisons_s(comparisons) == seconds


def test_a_path_that_a_project_names_comes_behind_that_of_the_harness():
    subject = Subject(harness=Path("/harness"), variables={"PYTHONPATH": "vendor", "OMP_NUM_THREADS": "3"})
    draw = Draw(hash_seed=1, padding=0)
    for variables in (python_environment(subject), worker_environment(Case("sound", (), "f8"), subject, draw)):
        assert (variables["PYTHONPATH"], variables["OMP_NUM_THREADS"]) == ("/harness:vendor", "3")


def test_whoever_leaves_out_modules_of_the_user_does_so_in_all_processes(monkeypatch):
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    assert python_environment(Subject())["PYTHONNOUSERSITE"] == "1"
