"""Conversations recorded with GradBench's evals and its hand-written C++ tool, held with ours: every number to 1e-9 of the
largest of its answer, where GradBench itself asks for 1e-4 of 1.

Two answers are compared with something else, because what was recorded is not the derivative that was asked for:
- `ode`, gradient: `manual` gives the derivative of the exact solution. The function itself is computed by Runge and Kutta's
  method, which is exact up to four elements only; beyond, ours is compared with the closed form of the method.
- `particle` was recorded with finite differences (1.4e-9 off): it is compared with the value that the eval itself expects.
"""

import gzip
import io
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from pullback_runners.gradbench import Engine, Tool, converse
from pullback_runners.gradbench.tool import MODULES
from pullback_runners.workloads import Case, find_workload

DATA = Path(__file__).parents[2] / "data"
RECORDED = [*sorted(DATA.glob("gradbench/*.xz")), *sorted(DATA.glob("importers/gradbench/*.jsonl.gz"))]
TOLERANCE = 1e-9
PARTICLE = 0.2071918746486116

# One size of an eval shows what another would, and every size is compiled.
CHOSEN = {
    "ba": "ba1_n49_m7776_p31843", "det": "6", "llsq": "n=256,m=128", "lstm": "l=2,c=64", "ode": None,
}  # fmt: skip


def conversation(path):
    """Pairs of message and answer, of the chosen size where there are many."""
    unpack = lzma if path.suffix == ".xz" else gzip
    lines = [json.loads(line) for line in unpack.open(path)]
    pairs = [(line["message"], answer["response"]) for line, answer in zip(lines[::2], lines[1::2], strict=True)]
    chosen = CHOSEN.get(path.name.split(".")[0])
    described = {message.get("description") for message, _ in pairs}
    if chosen is not None and chosen in described:
        pairs = [(m, a) for m, a in pairs if m["kind"] != "evaluate" or m["description"] == chosen]
    return pairs


def numbers(value):
    """Shape and numbers of an answer."""
    if isinstance(value, dict):
        parts = {name: numbers(part) for name, part in value.items()}
        return {name: shape for name, (shape, _) in parts.items()}, [
            x for name in sorted(parts) for x in parts[name][1]
        ]
    if isinstance(value, list):
        parts = [numbers(part) for part in value]
        return [shape for shape, _ in parts], [x for _, part in parts for x in part]
    return type(value) in (int, float), [value]


def held(tool, message):
    answers = io.BytesIO()
    converse(io.BytesIO(json.dumps(message).encode() + b"\n"), answers, tool.respond)
    (line,) = answers.getvalue().splitlines()
    return json.loads(line)


def reference(message, recorded):
    if message["module"] == "particle":
        return PARTICLE
    given = message["input"]
    if message["module"] == "ode" and message["function"] == "gradient" and len(given["x"]) > 4:
        n, steps = len(given["x"]), given["s"]
        if n > 4 * steps:  # the method carries nothing that far
            return [0.0] * n
        x = np.array(given["x"])
        return (
            find_workload("ode").closed_form(Case("ode", (("n", n), ("steps", steps)), "f8"), {"x": x})[1]["x"].tolist()
        )
    return recorded


@pytest.fixture(scope="module")
def tool():
    return Tool(Engine())


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.split(".")[0])
def test_the_answers_are_those_that_were_recorded(tool, path):
    evaluated = 0
    for message, recorded in conversation(path):
        answer = held(tool, message)
        assert answer["id"] == recorded["id"]
        assert answer.get("success", True), answer["error"]
        if message["kind"] != "evaluate":
            continue
        evaluated += 1
        shape, found = numbers(answer["output"])
        expected_shape, expected = numbers(reference(message, recorded["output"]))
        assert shape == expected_shape
        largest = np.max(np.abs(expected))
        assert np.max(np.abs(np.subtract(found, expected))) <= TOLERANCE * largest, message["description"]
        assert [timing["name"] for timing in answer["timings"]] == ["prepare", "compile", "evaluate"]
    assert evaluated


def test_every_eval_has_a_recorded_conversation():
    assert {message["module"] for path in RECORDED for message, _ in conversation(path)[1:2]} == set(MODULES)
