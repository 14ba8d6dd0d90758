"""What commits are compared by if nobody names a variant."""

import json
from pathlib import Path

import pytest

from pullback_runners.errors import LoadError, UsageError
from pullback_runners.measurement import subject_cases
from pullback_runners.measurement.subject import Subject
from pullback_runners.measurement.subject_cases import CaseSelection, choose_for
from pullback_runners.measurement.worker_process import RandomDraws, python_environment, worker_environment
from pullback_runners.suites import find_suite
from pullback_runners.workloads import AvailableVariants, Case


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
    offer = AvailableVariants("a workload", is_foreign, has_numpy, ("jax",), "unfused")
    chosen = CaseSelection([], [], [], {"mine": offer}, ["jax"], ["mine"], of_engine=of_engine)
    assert chosen.variants("mine") == variants


@pytest.mark.parametrize(("comparisons", "seconds"), [(1, 60), (4, 60), (5, 75), (8, 120)])
def test_a_minute_is_shared_by_four_comparisons(comparisons, seconds):
    assert find_suite("standard").comparisons_s(comparisons) == seconds


def test_a_path_that_a_project_names_comes_behind_that_of_the_harness():
    subject = Subject(harness=Path("/harness"), variables={"PYTHONPATH": "vendor", "OMP_NUM_THREADS": "3"})
    draw = RandomDraws(hash_seed=1, padding=0)
    for variables in (python_environment(subject), worker_environment(Case("sound", (), "f8"), subject, draw)):
        assert (variables["PYTHONPATH"], variables["OMP_NUM_THREADS"]) == ("/harness:vendor", "3")


def test_whoever_leaves_out_modules_of_the_user_does_so_in_all_processes(monkeypatch):
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    assert python_environment(Subject())["PYTHONNOUSERSITE"] == "1"


CASE = {"workload": "mine", "params": {"n": 3}, "dtype": "f8", "device": "cpu"}
OFFER = {"sentence": "", "is_foreign": True, "has_numpy": True, "variants": [], "baseline": None, "digests": {}}
ANSWER = {
    "cases": [CASE], "files": ["/w.py"], "refused": [], "offers": {"mine": OFFER}, "known": [], "imports": [], "modules": []
}  # fmt: skip


@pytest.fixture
def choice(monkeypatch):
    """The choice of a subject whose process answers so."""

    def choice(answer):
        monkeypatch.setattr(subject_cases, "_asked", lambda *_: (0, json.dumps(answer).encode() + b"\n", ""))
        return choose_for(Subject(imports=("theirs",)), "quick")

    return choice


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        *(({name: None}, name) for name in ANSWER),
        *((name, name) for name in ANSWER),
        ({"cases": [{**CASE, "params": {"n": 0.5}}]}, "cases"),
        ({"cases": [{**CASE, "params": {"threads": "all"}}]}, "cases"),
        ({"cases": [{**CASE, "device": "cpu\0"}]}, "cases"),
        ({"cases": [{"workload": "mine"}]}, "cases"),
        ({"offers": {}}, "offers"),
        ({"offers": {"mine": {}}}, "offers"),
        ({"offers": {"mine": {**OFFER, "variants": "native"}}}, "offers"),
        ({"failed": []}, "failed"),
        ({"raised": "a traceback"}, "failed"),
        ({"failed": "so", "raised": {}}, "raised"),
    ],
)
def test_an_answer_of_another_form_is_one_sentence_that_names_its_entry(choice, changed, wrong):
    lacking = {name: each for name, each in ANSWER.items() if name != changed}
    with pytest.raises(UsageError, match=f"^the workload files wrote a JSON object whose '{wrong}' is missing"):
        choice(lacking if isinstance(changed, str) else {**ANSWER, **changed})


def test_what_an_answer_holds_besides_is_left_out(choice):
    chosen = choice({**ANSWER, "of_engine": True, "more": 1, "offers": {"mine": {**OFFER, "more": 1}}})
    assert ([case.name for case in chosen.cases], chosen.of_engine) == (["mine[n=3,f8,cpu]"], False)
    with pytest.raises(LoadError, match="^it broke$"):
        choice({"failed": "it broke", "raised": "a traceback"})
