"""The programs of the benchmark compute what they say: each tier's gradient against differences of the plain function."""

import numpy as np
import pytest
from benchmarks.programs import __main__ as programs
from benchmarks.programs.rows import CHOSEN, ROWS, Row

import pullback as pb


def moved(arguments, directions, step):
    """The arguments, those that have a direction moved along it."""
    return [
        argument if direction is None else {k: v + step * direction[k] for k, v in argument.items()} if isinstance(argument, dict)
        else argument + step * direction
        for argument, direction in zip(arguments, directions, strict=True)
    ]  # fmt: skip


def direction_of(argument, rng):
    if isinstance(argument, dict):
        return {key: rng.normal(size=value.shape) for key, value in argument.items()}
    return rng.normal(size=np.shape(argument))


def dot(gradient, direction):
    if isinstance(direction, dict):
        return sum(np.sum(gradient[key] * direction[key]) for key in direction)
    return np.sum(gradient * direction)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("row", [row for row in ROWS if row.sizes.get("dtype", "f8") == "f8"], ids=lambda row: row.name)
@pytest.mark.parametrize("tier", ["unfused", "native"])
def test_the_gradient_of_a_program_is_its_slope(row: Row, tier):
    program, arguments = row.program, row.arguments()
    rng = np.random.default_rng(1)
    directions = [direction_of(a, rng) if place in program.wrt else None for place, a in enumerate(arguments)]
    gradient = pb.value_and_grad(program.loss, wrt=program.wrt)
    with pb.tier(tier):
        value, gradients = gradient(*arguments)
    assert np.isclose(value, program.loss(*moved(arguments, directions, 0.0)), rtol=1e-12)
    slope = sum(dot(g, directions[place]) for g, place in zip(gradients, program.wrt, strict=True))
    step = 1e-5
    ends = [program.loss(*moved(arguments, directions, sign * step)) for sign in (1, -1)]
    assert np.isclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-7)


def test_every_program_stands_in_a_row_and_eight_of_them_were_chosen():
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert {row.module for row in ROWS} >= CHOSEN
    assert len(CHOSEN) == 8


def test_the_table_says_what_was_met_and_what_is_missing():
    fast, slow = ROWS[0], ROWS[1]
    record = {
        "seconds": {"native": [1e-6] * 6, "jax": [2e-6] * 6},
        "first": {"native": 0.5},
        "absent": {},
        "fallbacks": [],
    }
    late = {**record, "seconds": {"native": [1e-6] * 6, "jax": [5e-7] * 6}}
    lines = programs.table({fast.name: record, slow.name: late}).splitlines()
    assert "| met |" in lines[2]
    assert "**missed**" in lines[3]
    assert "not measured" in lines[4]
