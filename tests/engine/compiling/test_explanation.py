"""The page of a plan tells the story: who came in, what each pass did, what is kept."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb
from pullback import trees


@dataclass
class Model:
    weights: object
    scale: object


Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 (a tuple with names is what is tested)


def page_of(gradient, *args, tier="stateful"):
    plan = pb.compile(gradient, tier=tier)
    plan(*args)
    sections = [section.partition("\n") for section in plan.explain().split("\n\n")]
    return {title.removeprefix("# "): text for title, _, text in sections}


def test_arguments_have_the_names_and_places_that_the_caller_gave_them():
    def loss(params, data):
        return np.sum(np.tanh(params["w"] @ data) * params["layers"][0])

    page = page_of(pb.grad(loss), {"w": np.ones((3, 2)), "layers": [2.0]}, np.ones(2))
    assert page["arguments"].splitlines() == [
        "a  in0  f8[3,2], 48 bytes  params['w']",
        "b  in1  f[]                params['layers'][0]",
        "c  in2  f8[2], 16 bytes    data",
    ]


def test_arrays_around_the_function_are_named_too():
    weights = np.ones(3)
    page = page_of(pb.grad(lambda x: np.sum(weights * x)), np.ones(3))
    assert page["arguments"].splitlines()[1].startswith("b  in1  f8[3], 24 bytes  ")
    assert "weights" in page["arguments"].splitlines()[1]


def test_the_first_section_tells_the_costs_and_what_was_looked_at():
    def loss(x):
        return np.sum(x * x) if x[0] > 0 else np.sum(x)

    page = page_of(pb.value_and_grad(loss), np.ones(4))
    assert "value_and_grad(loss, wrt=0), tier stateful: 1 program for 1 signature" in page["plan"]
    assert "new arrays on each call: 0 (0 bytes)" in page["plan"]
    assert "valid while 1 guard holds" in page["plan"]


def test_a_pass_that_changed_nothing_says_so():
    page = page_of(pb.grad(lambda x: np.sum(np.sin(x))), np.ones(3))
    (names,) = (title for title, text in page.items() if text == "nothing changed" and "lowered" in title)
    assert names == "decompositions, systems, lowered"


def test_constants_in_a_program_have_their_values_beside_them():
    page = page_of(pb.grad(lambda x: np.sum(np.sin(0.25 * x))), np.ones(3))
    assert "f8(0.25)" in page["program"].splitlines()[1]


def test_the_memory_of_a_program_is_its_buffers():
    page = page_of(pb.grad(lambda x: np.sum(np.sin(x) * x)), np.ones(100))
    *buffers, total = page["memory of the program"].splitlines()
    assert all(line.startswith("b") and line.endswith(("kept", "returned")) for line in buffers)
    assert total.startswith("at most ")


def test_a_pullback_has_a_page_with_two_programs():
    plan = pb.compile(lambda x: np.sin(x) * x, tier="fused")
    plan.vjp(np.ones(3))
    page = plan.pullbacks[False].explain()
    assert "# program\n" in page
    assert "# backward program\n" in page


def test_a_function_on_the_tape_says_why():
    plan = pb.compile(pb.grad(lambda x: np.sum(x * np.random.default_rng().normal())))
    plan(np.ones(3))
    assert "runs on the tape: " in plan.explain()


def test_a_plan_that_was_not_called_says_so():
    assert "not called yet" in repr(pb.compile(np.sin))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (1.0, [""]),
        ([1.0, (2.0, None)], ["[0]", "[1][0]"]),
        (Pair(1.0, [2.0]), [".left", ".right[0]"]),
        (Model({"w": 1.0}, 2.0), [".weights['w']", ".scale"]),
    ],
)
def test_leaves_have_paths(tree, expected):
    assert trees.paths(tree) == expected
    assert len(trees.flatten(tree)[0]) == len(expected)


def test_long_statements_widen_their_column_up_to_a_limit():
    text = str(pb.trace(lambda x: np.broadcast_to(x, (3, 4, 5, 6)) * 2)(np.ones((3, 4, 5, 6))[:1, :1]))
    columns = {line.index("f8[3,4,5,6]") for line in text.partition("  return")[0].splitlines()[1:]}
    assert len(columns) == 1


def test_slices_and_numbers_read_as_in_python():
    text = str(pb.trace(lambda x: x[1:, ..., None] * np.float64(2.0))(np.ones((3, 2))))
    assert "key=(1:, :, None)" in text
    assert "f8(2.0)" in text
