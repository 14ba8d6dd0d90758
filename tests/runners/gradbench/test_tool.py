import importlib
import pkgutil

import numpy as np
import pytest

from pullback_runners.errors import UsageError
from pullback_runners.gradbench import Engine, Tool, modules
from pullback_runners.gradbench.bounded_searches import search
from pullback_runners.gradbench.module import array, whole
from pullback_runners.gradbench.modules.ba import Structure
from pullback_runners.gradbench.timing import repeated
from pullback_runners.gradbench.tool import MODULES
from pullback_runners.workloads import find_workload

FUNCTIONS = {
    "hello": {"square", "double"},
    **{name: {"objective", "jacobian"} for name in ("ba", "gmm", "ht", "lstm")},
    **{name: {"primal", "gradient"} for name in ("det", "llsq", "lse", "ode")},
    "kmeans": {"cost", "dir"},
    **{name: {"rr", "ff", "fr", "rf"} for name in ("particle", "saddle")},
}


@pytest.fixture
def tool():
    return Tool(Engine("fused"))


def evaluate(tool, module, function, given):
    return tool.respond({"id": 1, "kind": "evaluate", "module": module, "function": function, "input": given})


def test_there_are_twelve_modules_with_twenty_eight_functions():
    found = {name: importlib.import_module(f"{modules.__name__}.{name}").MODULE for name in MODULES}
    assert {name: set(module.functions) for name, module in found.items()} == FUNCTIONS
    assert sum(map(len, FUNCTIONS.values())) == 28
    assert {each.name for each in pkgutil.iter_modules(modules.__path__)} == set(MODULES)


def test_the_start_says_how_everything_is_computed(tool):
    answer = tool.respond({"id": 0, "kind": "start", "eval": "det"})
    assert answer["tool"] == "pullback"
    assert answer["config"]["dtype"] == "float64"
    assert answer["config"]["tier"] == "fused"
    assert "every minor computed once" in answer["config"]["det"]


def test_analyses_and_kinds_that_are_not_known_are_acknowledged(tool):
    assert tool.respond({"id": 3, "kind": "analysis", "of": 2, "valid": True}) == {"id": 3}
    assert tool.respond({"id": 4, "kind": "something new"}) == {"id": 4}


def test_an_unknown_module_is_not_defined(tool):
    answer = tool.respond({"id": 1, "kind": "define", "module": "nothing"})
    assert answer["success"] is False
    assert "known: hello, ba, det" in answer["error"]


@pytest.mark.parametrize("module", [None, ["hello"], "os", "../hello"])
def test_a_module_is_one_of_the_twelve_and_nothing_else_is_imported(tool, module):
    assert tool.respond({"id": 1, "kind": "define", "module": module})["success"] is False
    assert evaluate(tool, module, "square", 1.0)["success"] is False


def test_an_unknown_function_is_answered_with_the_known_ones(tool):
    answer = evaluate(tool, "hello", "cube", 1.0)
    assert answer["success"] is False
    assert "known: square, double" in answer["error"]


def test_a_definition_comes_with_the_time_it_took(tool):
    answer = tool.respond({"id": 1, "kind": "define", "module": "hello"})
    assert answer["success"] is True
    assert [timing["name"] for timing in answer["timings"]] == ["import"]


@pytest.mark.parametrize(
    ("module", "function", "given", "reason"),
    [
        ("hello", "square", "a word", "could not convert"),
        ("hello", "square", None, "NoneType"),
        ("lse", "gradient", {}, "no 'x'"),
        ("lse", "gradient", {"x": [[1.0]]}, "'x' has shape (1, 1) instead of (any)"),
        ("lse", "gradient", {"x": [1.0, "two"]}, "'x' is no array of numbers"),
        ("llsq", "gradient", {"x": [1.0], "n": 1}, "integer of at least 2"),
        ("llsq", "gradient", {"x": [1.0], "n": 2.5}, "integer of at least 2"),
        ("det", "gradient", {"A": [1.0] * 3, "ell": 2}, "(4)"),
        ("det", "gradient", {"A": [1.0] * 441, "ell": 21}, "20 at most"),
        ("gmm", "objective", {"d": 2, "k": 1, "n": 1}, "gamma"),
        ("lse", "primal", {"x": [1.0], "min_runs": "many"}, "min_runs"),
        ("lse", "primal", {"x": [1.0], "min_seconds": -1}, "min_seconds"),
    ],
)
def test_input_that_cannot_be_computed_is_answered_with_a_sentence(tool, module, function, given, reason):
    answer = evaluate(tool, module, function, given)
    assert answer["success"] is False
    assert reason in answer["error"]
    assert "output" not in answer
    assert evaluate(tool, "hello", "double", 2.0)["output"] == 4.0


def test_a_whole_number_is_as_good_as_a_float(tool):
    assert evaluate(tool, "hello", "square", 3)["output"] == 9.0
    assert evaluate(tool, "lse", "gradient", {"x": [1, 1]})["output"] == [0.5, 0.5]


def test_the_first_call_is_timed_apart_and_runs_are_as_many_as_asked_for(tool):
    answer = evaluate(tool, "lse", "gradient", {"x": [1.0, 2.0], "min_runs": 5, "min_seconds": 0})
    assert [timing["name"] for timing in answer["timings"]] == ["prepare", "compile"] + ["evaluate"] * 5
    assert all(type(timing["nanoseconds"]) is int and timing["nanoseconds"] >= 0 for timing in answer["timings"])


def test_runs_go_on_until_they_took_as_long_as_asked_for():
    calls = []
    result, timings = repeated(lambda: calls.append(None) or len(calls), 1, 0.01)
    assert result == len(calls) == len(timings)
    assert sum(timing["nanoseconds"] for timing in timings) >= 1e7
    assert sum(timing["nanoseconds"] for timing in timings[:-1]) < 1e7


def test_a_plan_is_kept_for_the_same_sizes_and_few_are_kept_at_all():
    engine = Engine("fused")
    first = engine.plan("a", lambda: np.sin)
    assert engine.plan("a", lambda: np.cos) is first
    for name in "bcdefg":
        engine.plan(name, lambda: np.sin)
    assert engine.plan("a", lambda: np.cos) is not first


def test_tiers_that_are_not_there_are_refused(monkeypatch):
    with pytest.raises(UsageError, match="'fastest'"):
        Engine("fastest")
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    with pytest.raises(UsageError, match="PULLBACK_NATIVE"):
        Engine("native")
    assert Engine().tier == "stateful"


def test_a_search_gets_the_bound_that_suffices():
    asked = []

    def make(limit):
        asked.append(limit)
        return lambda start: (start, limit >= 8)

    assert search(Engine("unfused"), "name", make, 3.0, 2)() == 3.0
    assert asked == [2, 4, 8]
    with pytest.raises(ValueError, match="does not end"):
        search(Engine("unfused"), "other", lambda _: lambda start: (start, False), 3.0, 2**15)


def test_searches_from_another_start_end_where_plain_numbers_do():
    tool = Tool(Engine())
    found = evaluate(tool, "particle", "fr", {"w": 0.1})
    particle = find_workload("particle")
    (case,) = particle.cases("quick")
    assert particle.closed_form(case, {"w": np.array([found["output"]])})[0] < 1e-6
    found = evaluate(tool, "saddle", "fr", {"start": [0.9, 1.1]})
    assert found["success"]
    assert np.max(np.abs(found["output"])) < 1e-4
    # The first move is too short to be made.
    assert evaluate(tool, "saddle", "fr", {"start": [0.1, 0.2]})["output"] == [0.1, 0.2, 0.1, 0.2]


def test_the_structure_of_the_sparse_jacobian():
    structure = Structure(2, 3, np.array([0, 1]), np.array([2, 0]))
    structure.make()
    assert structure.row_starts.tolist() == [0, 15, 30, 45, 60, 61, 62]
    first, second = structure.of_errors.tolist()
    assert first == [[*range(11), 28, 29, 30, 31]] * 2
    assert second == [[*range(11, 22), 22, 23, 24, 32]] * 2
    assert structure.of_weights.tolist() == [31, 32]


def test_arrays_and_whole_numbers_say_what_is_wrong_with_them():
    assert array({"x": [[1, 2]]}, "x", None, 2).shape == (1, 2)
    with pytest.raises(ValueError, match="'x' has shape"):
        array({"x": [1, 2]}, "x", 3)
    with pytest.raises(ValueError, match="integer of at least 0"):
        whole({"m": True}, "m", least=0)
