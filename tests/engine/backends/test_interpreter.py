"""The text of programs: golden files, renewed by `pytest tests/engine/backends --renew-golden`."""

from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback_runners.allocations.arrays import ArrayCounter

GOLDEN = Path(__file__).parent.parent / "golden"
F4 = np.float32


def _dense(w, x, b):
    return np.sum(pb.nn.dense_bias_act(w, x, b, "tanh") ** 2)


def _polynomial(x, c0, c1, c2):
    return np.sum(c0 + c1 * x + c2 * x**2)


def _restored(a, b, c, g):
    return np.sum(pb.inplace.matmul(c, a, b) * g)


def _read(p, c):
    return c[1] * p


def _projected(p, c, projection):
    return (c @ projection) * p


def _softplus_layer(w, x):
    return np.mean(pb.nn.dense_bias_act(w, x, None, "softplus"))


PROGRAMS = {
    "dense": (_dense, (0, 1, 2), (np.ones((4, 5), F4), np.ones((5, 3), F4), np.ones((4, 1), F4))),
    "polynomial": (_polynomial, 3, (np.ones(10), 1.0, 2.0, 3.0)),
    "restored": (_restored, (0, 1), (np.ones((4, 5)), np.ones((5, 3)), np.ones((4, 3)), np.ones((4, 3)))),
    "read": (_read, 0, (2.0, np.ones(100))),
    "projected": (_projected, 0, (2.0, np.ones(100), np.ones(100))),
    "softplus_layer": (_softplus_layer, 0, (np.ones((4, 5)), np.ones((5, 3)))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_those_of_the_golden_files(name, renew_golden):
    function, wrt, args = PROGRAMS[name]
    plan = pb.compile(pb.value_and_grad(function, wrt=wrt), tier="fused")
    plan(*args)
    page = plan.explain().split("\n\n")
    last_graph = next(section for section in reversed(page) if "\ngraph(" in section)
    program = [section for section in page if section.startswith(("# program", "# memory"))]
    counts = {name: told for name, told in plan.summary().items() if name != "program"}  # changes with NumPy's version
    text = "\n\n".join([last_graph, *program, f"{counts}"]) + "\n"
    file = GOLDEN / f"{name}.txt"
    text = "\n".join(line.partition(" test_interpreter.py")[0].rstrip() for line in text.splitlines()) + "\n"
    if renew_golden:
        file.write_text(text)
    assert text == file.read_text(), f"renew with: pytest {Path(__file__).name} --renew-golden"


def test_the_same_program_has_the_same_hash_and_another_has_another():
    def hash_of(function, *args):
        plan = pb.compile(pb.value_and_grad(function), tier="fused")
        plan(*args)
        return plan.summary()["hash"]

    assert hash_of(lambda x: np.sum(np.square(x)), np.ones(3)) == hash_of(lambda y: np.sum(y**2), np.ones(3))
    assert hash_of(lambda x: np.sum(x * x), np.ones(3)) != hash_of(lambda x: np.sum(x * x), np.ones(4))


@pytest.mark.parametrize(
    "key", [1, -1, slice(1, None), (slice(None), 0), (None, 1), (Ellipsis, 1), slice(None, None, -2)]
)
def test_keys_survive_the_text(key):
    x = np.arange(12.0).reshape(3, 4)
    plan = pb.compile(lambda x: x[key] * 2, tier="fused")
    np.testing.assert_array_equal(plan(x), x[key] * 2)


@pytest.mark.parametrize("number", [float("inf"), float("nan"), -0.0, 1e30, np.float32(0.1), True, 3])
def test_numbers_survive_the_text(number):
    x = np.ones(2, F4)
    result = pb.compile(lambda x: x * number, tier="fused")(x)
    np.testing.assert_array_equal(result, x * number)
    assert result.dtype == (x * number).dtype


def test_memory_that_is_made_anew_on_each_call_is_given_back_when_it_is_dead():
    def deep(x):
        for width in (700, 600, 500, 400):  # of different types, so that no buffer can be used again
            x = np.tanh(x[:width] * 2.0)
        return np.sum(x)

    x = np.linspace(0.0, 1.0, 1000).repeat(64).reshape(1000, 64)
    plan = pb.compile(pb.grad(deep), tier="fused")
    plan(x)
    counter = ArrayCounter()
    with counter.window():
        plan(x)
        read = counter.read()
    assert read.peak_bytes <= plan.summary()["peak_bytes"]
    assert read.peak_bytes < 0.8 * read.requested_bytes


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_a_complex_number_of_python_and_a_number_make_one_of_numpy(tier):
    def function(x):
        start = 0.5j + x[0]
        return start, *pb.scan(lambda z, step: (z * 1j + step, z), start, x)

    x = np.array([0.3, -0.7, 1.1])
    plan = pb.compile(function, tier=tier)
    for _ in range(2):
        for found, expected in zip(plan(x), function(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert np.asarray(found).dtype == complex


@pytest.mark.parametrize("tier", pb.TIERS[1:])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_power_by_a_number_of_numpys_is_as_wide_as_numpys(tier, dtype):
    x = np.array([1.5, -0.25], dtype)
    for exponent in (np.int64(2), np.float64(2), 2):
        found = pb.compile(lambda x, exponent=exponent: x**exponent, tier=tier)(x)
        np.testing.assert_allclose(found, x**exponent, rtol=1e-6)
        assert found.dtype == (x**exponent).dtype


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    "name", ["b0", "s0", "in0", "v0", "n0", "c5", "state", "program", "copyto", "array", "int", "if"]
)
def test_functions_of_users_may_have_the_names_of_the_text(name, tier):
    def sine(x):
        return np.sin(x)

    sine.__name__ = name
    rule = pb.primitive(sine)
    rule.infer(lambda x: x)
    rule.pulls(x=lambda y_bar, y, x: np.cos(x) * y_bar)

    def function(x):
        y = rule(np.tanh(x * x) @ x)
        return np.sum(np.exp(y[0] * np.float32(0.3)) * (3 if y[0, 0] > 0 else 2)), x, x.T

    x = np.array([[0.3, 0.4], [0.5, 0.6]])
    plan = pb.compile(function, tier=tier)
    for _ in range(3):
        for found, expected in zip(plan(x), function(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    slope = pb.compile(pb.grad(lambda x: function(x)[0]), tier=tier)(x)
    np.testing.assert_allclose(slope, pb.grad(lambda x: function(x)[0])(x), rtol=1e-12)
