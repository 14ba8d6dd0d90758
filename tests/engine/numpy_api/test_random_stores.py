"""Programs put together at random from stores, views and aliases give NumPy's values in every tier, and right gradients.

`Program(number).source` is the text of a program; what NumPy refuses is not taken into one. A long run:
`PULLBACK_RANDOM_STORES=2000 pytest -m "" tests/engine/numpy_api/test_random_stores.py`.
"""

import os
import random
import warnings

import numpy as np
import pytest

import pullback as pb

PROGRAMS = int(os.environ.get("PULLBACK_RANDOM_STORES", "12"))
PLANNED = tuple(tier for tier in pb.TIERS if tier != "unfused")

HEAD = """\
import numpy as np
import pullback.numpy as pnp

ROWS = np.array([2, 0, 3, 2])
MASK = np.array([True, False, True, True])
"""

#: New names: n is one, a and b are arrays that are there, k is a key.
MAKING = """\
{n} = np.zeros_like({a})|{n} = np.full_like({a}, 0.5)|{n} = {a} * 1|{n} = {a}.copy()|{n} = {a} + {b}|{n} = np.sin({a})|{n} = pnp.array({a})
{n} = pnp.zeros({a}.shape)|{n} = {a}|{n} = {a}[{k}]|{n} = {a}[{k}]|{n} = {a}.T|{n} = {a}.reshape(-1)|{n} = {a}.ravel()|{n} = {a}.flatten()
{n} = {a}[::-1]|{n} = np.reshape({a}, (2, -1))|{n} = {a}[[0, 1]]|{n} = {a}[MASK]|{n} = np.swapaxes({a}, 0, -1)|{n} = np.split({a}, 2)[1]
{n} = np.broadcast_to({a}, (2, *{a}.shape)) + {b}|{n} = np.concatenate([{a}, {b}])|{n} = {a}[:, None]|{n} = np.squeeze({a})|{n} = np.diagonal({a})
{n} = np.sum({a}, axis=0)|{n} = np.flip({a}, 0)|{n} = np.moveaxis({a}, 0, -1)|{n} = {a}.astype(float)|{n} = np.real({a})|{n} = +{a}
{n} = {b} * np.sum({a}[{a} > 0])|{n} = {b} + {a}[{a} < 0.3].var()|{n} = {a} * ({b}[{b} > 0] @ {b}[{b} > 0])""".replace(
    "\n", "|"
).split("|")

#: Stores; v is a value.
STORING = """\
{a}[{k}] = {v}|{a}[{k}] = {v}|{a}[{k}] = {v}|{a}[{k}] += {v}|{a}[{k}] *= {v}|{a}[{k}] -= {v}|{a} += {v}|{a} *= {v}|{a}[...] = {v}|{a}.fill({b}.sum())
np.add.at({a}, {i}, {v})|np.copyto({a}, {v})|{a}[{a} > 0.1] = 0.3|np.multiply({a}, {v}, out={a})|np.add({a}, {b}, out={a})|{a}.flat[1] = 0.7
np.put({a}, [1, 3, 1], {v})|np.fill_diagonal({a}, {v})|np.putmask({a}, {a} > 0, {v})|{a}[{k}][{k}] = {v}|{a}.T[{k}] = {v}|{a}.reshape(-1)[{k}] = {v}
{a}[{i}] = {v}|{a}[{i}] += {v}|{a}[:] = {a}[::-1]|{a}[1:] = {a}[:-1]|{a}[1:] += {a}[:-1]|{a}.sort()|np.where({b} > 0, {b}, 1.0)
{a}[{k}], {b}[{k}] = {b}[{k}], {a}[{k}]|pnp.updated({a}, {k}, {v})
{a}[{a} > 0.1] *= 0.5|{a}[{b} > 0] -= {b}.sum()|{a}[{b} < 0.2] = np.sin({a}[{b} < 0.2])|{a}[{b} > 0] += np.sqrt({b}[{b} > 0])
{a}[:, {b}[0] > 0] = {v}|{a}[{b}[:, 0] > 0] *= 0.7|{a}[{b}[:, 1] < 0] -= {a}[0]""".replace("\n", "|").split("|")

KEYS = [
    "0",
    "-1",
    "2",
    "1:",
    ":-1",
    "1:3",
    "::2",
    "::-1",
    "3:0:-2",
    "...",
    ":, 0",
    ":, 1:3",
    "0, 1",
    "1, ::2",
    "..., -1",
    ":, ::-1",
    "1:3, -2",
    "None, 1",
    "2:2",
]
POSITIONS = [
    "ROWS",
    "[0, 2]",
    "[1, 1]",
    "MASK",
    "(ROWS, ROWS)",
    "(slice(None), ROWS)",
    "([0, 2], 1)",
    "(ROWS[:, None], [0, 2])",
]
VALUES = [
    "0.5",
    "-1",
    "{b}",
    "{b}[{k}]",
    "np.sin({b})",
    "{b} * 0.5",
    "{b}.sum() * 0.1",
    "{b}[{k}] * {c}[{k}]",
    "{b}[0]",
    "{b}.T",
    "{a}[{k}] * 0.5",
    "[0.1, 0.2]",
]


class Program:
    """A function of x and w, arrays of 4 x 4 and of 4."""

    def __init__(self, number):
        self.random = random.Random(number)
        self.arguments = [np.random.default_rng((number, call)).uniform(-1, 1, (4, 4)) for call in range(2)]
        self.weights = np.random.default_rng(number).uniform(-1, 1, 4)
        lines, names = ["y0 = x * 1", "y1 = w + 0"], ["y0", "y1"]
        for step in range(self.random.randint(3, 9)):
            for _ in range(40):
                making = self.random.random() < 0.35
                line = self._line(self.random.choice(MAKING if making else STORING), names, f"v{step}")
                if self._runs([*lines, line]):
                    lines.append(line)
                    names += [f"v{step}"] * making
                    break
        self.returned = sorted({names[-1], *self.random.choices(names, k=3)})
        self.source = self._text(lines)
        self.function = self._made(self.source)

    def _line(self, template, names, new):
        chosen = {letter: self.random.choice(names) for letter in "abc"}
        filled = {**chosen, "n": new, "k": self.random.choice(KEYS), "i": self.random.choice(POSITIONS)}
        value = self.random.choice(VALUES).format(**{**filled, "b": self.random.choice(names)})
        if "pnp.updated" in template:
            return f"{chosen['a']}[...] = pnp.updated({chosen['a']}, {self.random.choice(POSITIONS)}, {value})"
        return template.format(**filled, v=value)

    def _text(self, lines):
        body = "".join(f"    {line}\n" for line in lines)
        return f"{HEAD}\ndef function(x, w):\n{body}    return {', '.join(getattr(self, 'returned', ['y0', 'y1']))},\n"

    @staticmethod
    def _made(source):
        namespace = {"__name__": "program"}
        exec(compile(source, "<random stores>", "exec"), namespace)  # noqa: S102 - our own text
        return namespace["function"]

    def _runs(self, lines):
        everything = [
            *lines,
            f"return {', '.join(sorted({line.split(' = ')[0] for line in lines if line[0] in 'yv' and ' = ' in line and '[' not in line.split(' = ')[0]} | {'y0'}))},",
        ]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                results = [self._made(self._text(everything))(x, self.weights) for x in self.arguments]
        except Exception:  # noqa: BLE001 - NumPy's word on what fits
            return False
        return all(
            isinstance(part, np.ndarray) and part.size and part.size < 200 and np.all(np.abs(part) < 50)
            for result in results
            for part in result
        )


def total(function):
    return lambda x, w: sum(np.sum(np.sin(part) * (1 + k)) for k, part in enumerate(function(x, w)))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_random_program_of_stores_gives_numpys_values_in_every_tier(number):
    program = Program(number)
    expected = [program.function(x.copy(), program.weights.copy()) for x in program.arguments]
    loss = total(program.function)
    gradient = pb.value_and_grad(loss, wrt=(0, 1))
    try:
        on_the_tape = [gradient(x, program.weights) for x in program.arguments]
    except pb.errors.TracingError as refusal:  # docs/assignment.md; NumPy's answer depends on how the argument lies
        refused = (
            "a store beside a reshape of an array that is not in C order",
            "a key with a single truth value in it",
            "with a view of the array that is written to",
        )
        if not any(text in str(refusal) for text in refused):
            raise
        return
    for x, wanted, (value, slopes) in zip(program.arguments, expected, on_the_tape, strict=True):
        np.testing.assert_allclose(value, total(lambda *_, wanted=wanted: wanted)(x, None), rtol=1e-10)
        moves = [np.random.default_rng(number).normal(size=slope.shape) * 1e-6 for slope in slopes]
        after, before = (loss(x + sign * moves[0], program.weights + sign * moves[1]) for sign in (1, -1))
        if abs(after + before - 2 * value) < 1e-9:  # else a kink or a jump lies between
            found = sum(np.sum(slope * move) for slope, move in zip(slopes, moves, strict=True))
            np.testing.assert_allclose(found, (after - before) / 2, rtol=1e-4, atol=1e-9)
    for tier in PLANNED:
        values, slopes = pb.compile(program.function, tier=tier), pb.compile(gradient, tier=tier)
        for _ in range(2):
            for x, wanted, (value, wanted_slopes) in zip(program.arguments, expected, on_the_tape, strict=True):
                for ours, numpys in zip(values(x, program.weights), wanted, strict=True):
                    np.testing.assert_allclose(ours, numpys, rtol=1e-10, atol=1e-12)
                    assert ours.dtype == numpys.dtype
                found, found_slopes = slopes(x, program.weights)
                np.testing.assert_allclose(found, value, rtol=1e-10)
                for ours, theirs in zip(found_slopes, wanted_slopes, strict=True):
                    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
