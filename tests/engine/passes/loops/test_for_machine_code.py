"""Passes on loops for a backend that compiles them: panels, shifted carries, and what is taken in."""

import re

import numpy as np
import pytest

import pullback as pb
from pullback.core.types import type_of
from pullback.ir.checker import check_graph
from pullback.ir.printer import format_graph
from pullback.passes.loops.panels import lay_in_panels
from pullback.passes.loops.shifted_carries import shift_carries
from pullback.passes.loops.sunk_additions import sink_additions
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

RNG = np.random.default_rng(1)
STEPS = 5


def lowered(function, *args):
    def several(*traced):
        results = function(*traced)
        return (list(results) if isinstance(results, tuple) else [results]), None

    graph, _ = record(several, [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def body_of(graph):
    (text,) = re.findall(r"body\(.*?return[^\n]*", format_graph(check_graph(graph)), re.DOTALL)
    return text


def names_in(text):
    return re.findall(r"= (\w+)", text)


def same(function, *args):
    native, expected = (pb.compile(function, tier=tier)(*args) for tier in ("native", "unfused"))
    several = isinstance(native, tuple)
    single = min(x.dtype.itemsize for x in args) == 4
    for one, other in zip(*((native, expected) if several else ([native], [expected])), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4 if single else 1e-11, atol=1e-4 if single else 1e-11)


# --- panels ----------------------------------------------------------------------------------------------------------
def multiplied(w, h):
    return pb.scan(lambda h, _: (np.tanh(h @ w), h), h, None, length=STEPS)


def test_a_large_matrix_of_a_loop_is_laid_in_panels():
    w, h = (0.05 * RNG.normal(size=shape).astype("f4") for shape in ((288, 288), (32, 288)))
    text = format_graph(check_graph(lay_in_panels(lowered(multiplied, w, h))))
    assert "f4[9,288,32]" in text.split("scan")[0]
    assert "matmul" in text
    assert "f4[9,32,32]" in text
    same(multiplied, w, h)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_gradients_through_panels_are_those_of_the_plain_way(dtype):
    w, h = (0.05 * RNG.normal(size=shape).astype(dtype) for shape in ((288, 288), (32, 288)))
    same(pb.grad(lambda w, h: np.sum(multiplied(w, h)[1] ** 2), wrt=(0, 1)), w, h)
    same(pb.grad(lambda w, h: np.sum(multiplied(np.transpose(w), h)[1] ** 2), wrt=(0, 1)), w, h)


@pytest.mark.parametrize(
    ("rows", "hidden"),
    [
        (1, 288),  # one row reads the matrix once
        (32, 128),  # it stays in the cache
        (32, 300),  # no whole panels
        (4, 288),  # too few rows in all steps
    ],
)
def test_other_matrices_stay_as_they_are(rows, hidden):
    w, h = (0.05 * RNG.normal(size=shape).astype("f4") for shape in ((hidden, hidden), (rows, hidden)))
    graph = lowered(multiplied, w, h)
    assert format_graph(lay_in_panels(graph)) == format_graph(graph)
    same(multiplied, w, h)


def test_a_matrix_that_is_read_otherwise_as_well_stays_as_it_is():
    def function(w, h):
        return pb.scan(lambda h, _: (np.tanh(h @ w) + np.sum(w * h[0]), h), h, None, length=STEPS)

    w, h = (0.001 * RNG.normal(size=shape).astype("f4") for shape in ((288, 288), (32, 288)))
    graph = lowered(function, w, h)
    assert format_graph(lay_in_panels(graph)) == format_graph(graph)


# --- shifted carries -------------------------------------------------------------------------------------------------
def remembering(h, xs, *, reverse=False):
    """States before and after each step."""
    return pb.scan(lambda h, x: ((after := np.tanh(h * x)), (h, after)), h, xs, reverse=reverse)


H, XS = RNG.normal(size=(3, 2)), RNG.normal(size=(STEPS, 3, 2))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_carry_is_collected_as_it_becomes(reverse):
    def function(h, xs):
        last, (before, after) = remembering(h, xs, reverse=reverse)
        return last, np.exp(before), np.exp(after)

    shifted = shift_carries(lowered(function, H, XS))
    returned = re.findall(r"return ([^\n]*)", body_of(shifted))[0].split(", ")
    assert len(returned) == 2
    assert len(set(returned)) == 1
    assert "concatenate" in format_graph(shifted)
    same(function, H, XS)


def test_a_carry_that_is_collected_only_as_it_was_is_collected_as_it_becomes():
    def function(h, xs):
        return pb.scan(lambda h, x: (np.tanh(h * x), h), h, xs)[1]

    assert len(re.findall(r"return ([^\n]*)", body_of(shift_carries(lowered(function, H, XS))))[0].split(", ")) == 2
    same(function, H, XS)
    same(lambda h, xs: np.exp(function(h, xs)), H, XS)


def test_a_carry_that_is_another_one_was_is_copied():
    def function(h, xs):
        return pb.scan(lambda pair, x: ((pair[1], pair[0] * x), pair[0]), (h, h + 1), xs)[1]

    graph = lowered(function, H, XS)
    assert format_graph(shift_carries(graph)) == format_graph(graph)
    same(function, H, XS)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_gradients_of_short_loops_are_right(length):
    def loss(h, xs):
        last, (before, after) = remembering(h, xs[:length])
        return np.sum(last) + np.sum(before * after)

    same(pb.grad(loss, wrt=(0, 1)), H, XS)


# --- taking in ---------------------------------------------------------------------------------------------------------
def biased(w, b, h, xs):
    return pb.scan(lambda h, x: ((after := np.tanh((x @ w + b) + h)), after), h, xs)[1]


W, B = RNG.normal(size=(2, 2)), RNG.normal(size=2)


def test_what_is_added_to_all_inputs_is_added_in_the_step():
    graph = lowered(biased, W, B, H, XS)
    assert names_in(body_of(graph)) == ["add", "tanh"]
    assert names_in(body_of(sink_additions(graph))) == ["add", "add", "tanh"]
    same(biased, W, B, H, XS)


def test_what_is_read_elsewhere_too_or_differs_from_step_to_step_is_not_taken_in():
    def function(w, b, h, xs):
        z = xs @ w + b
        return pb.scan(lambda h, z: ((after := np.tanh(z + h)), after), h, z)[1], np.sum(z)

    def differing(h, xs):
        return pb.scan(lambda h, z: ((after := np.tanh(z + h)), after), h, xs + np.exp(xs))[1]

    for graph in (lowered(function, W, B, H, XS), lowered(differing, H, XS)):
        assert format_graph(sink_additions(graph)) == format_graph(graph)


def test_what_a_product_of_the_step_reads_is_not_taken_in():
    def function(w, b, h, xs):
        return pb.scan(lambda h, z: ((after := np.tanh(z @ w + h)), after), h, xs * b)[1]

    graph = lowered(function, W, B, H, XS)
    assert "mul" not in names_in(body_of(sink_additions(graph)))


# --- single rows -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("hidden", "packed"), [(32, True), (512, False)])
def test_a_matrix_for_single_rows_is_turned_before_the_loop_if_it_stays_in_the_cache(hidden, packed):
    def function(w, h):
        return pb.scan(lambda h, _: (np.tanh(h @ np.transpose(w)), h), h, None, length=STEPS)

    w, h = 0.1 * RNG.normal(size=(hidden, hidden)), RNG.normal(size=(1, hidden))
    outside = format_graph(lowered(function, w, h)).split("scan")[0]
    assert ("copy" in outside) == packed
    same(function, w, h)


# --- all of it ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layer", [pb.nn.rnn, pb.nn.lstm, pb.nn.gru])
def test_steps_of_recurrent_layers_are_a_product_and_a_nest_or_two(layer, batch):
    def loss(params, x):
        states = layer(params, x)
        return np.sum((states[0] if isinstance(states, tuple) else states) ** 2)

    block = {pb.nn.rnn: pb.nn.rnn_block, pb.nn.lstm: pb.nn.lstm_block, pb.nn.gru: pb.nn.gru_block}[layer]
    params = block(4, 8, init=lambda shape: RNG.normal(size=shape))
    x = RNG.normal(size=(STEPS, batch, 4))
    native, expected = (pb.compile(pb.value_and_grad(loss), tier=tier)(params, x) for tier in ("native", "unfused"))
    np.testing.assert_allclose(native[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(native[1].array, expected[1].array, rtol=1e-9, atol=1e-11)
