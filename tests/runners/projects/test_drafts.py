"""The files that are written first: they are Python and TOML, and say what was found."""

import ast
import tomllib

import pytest

from pullback_runners.projects.detection import Guess, Guesses
from pullback_runners.projects.drafts import example_for, project_text, workload_name, workload_text
from pullback_runners.projects.functions import ENGINES, Argument, PlainFunction


def test_the_project_file_holds_each_guess_in_its_table():
    guesses = (
        Guess("environment", "FLAGS", 'a "b"', ""),
        Guess("project", "name", "ridge", ""),
        Guess("build", "path", ("src",), ""),
    )
    assert tomllib.loads(project_text(Guesses(guesses), ["bench/gradients.py"])) == {
        "project": {"name": "ridge"},
        "build": {"path": ["src"]},
        "measure": {"workloads": ["bench/gradients.py"]},
        "environment": {"FLAGS": 'a "b"'},
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_number", [True, False])
@pytest.mark.parametrize("names", ["x", "xy"])
def test_the_workload_of_any_engine_is_python_that_calls_the_function(engine, is_number, names):
    arguments = (*(Argument(name, rank) for rank, name in enumerate(names)), Argument("steps", 1, is_whole=True))
    function = PlainFunction("ridge.losses", "loss", engine, arguments, is_number, "")
    text = workload_text(function, "loss", "ridge")
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
    assert "ridge.losses.loss" in calls
    assert "import ridge.losses\n" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_an_example_stands_for_itself(engine):
    tree = ast.parse(workload_text(example_for(engine), "mean_squared_error", "ridge"))
    assert "squares" in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_a_workload_takes_no_name_that_is_taken():
    function = PlainFunction("waves.lstm", "lstm", "numpy", (Argument("x", 1),), is_number=True, place="")
    assert workload_name(function, {"lstm"}) == "gradient_of_lstm"
    assert workload_name(function, ()) == "lstm"
