"""Nests that become one after all, and those that must not."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.nests.fusion import FusedNodes, fuse
from pullback.backends.nests.merging import merged
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.traces.recorder import record

A, B, C = (np.random.default_rng(number).normal(size=(4, 5)) for number in range(3))


def lowered(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def nests(kernels):
    """The nests, each as the names of its nodes."""
    return [[node.primitive.name for node in kernel.nodes] for kernel in kernels if isinstance(kernel, FusedNodes)]


def before_and_after(function, *args):
    found = fuse(lowered(function, *args), {})
    return nests(found.kernels), nests(merged(found).kernels)


def by_turns(a, b, c):
    """A product read by nobody yet, something of its own, and what reads both."""
    return np.concatenate([a * b * (1 - c), np.square(1 - b)])


def test_a_nest_begun_apart_becomes_one_with_what_reads_the_same_memory():
    before, after = before_and_after(by_turns, A, B, C)
    assert len(before) > len(after)
    assert len(after) == 1
    assert sorted(after[0]) == sorted(name for nest in before for name in nest)


def test_what_is_read_by_positions_stays_in_a_nest_after_it():
    def function(x, p):
        y = np.exp(x) * x
        return np.sum(y[p] * x)

    graph = lowered(function, np.ones(4), np.array([0, 3, 1, 1]))
    after = nests(merged(fuse(graph, {}, belongs=lambda node: True)).kernels)
    assert after == [["exp", "mul"], ["gather", "mul", "sum"]]


def test_what_is_read_through_a_view_stays_in_a_nest_after_it():
    def function(x):
        return np.exp(x) + np.transpose(np.tanh(x))

    before, after = before_and_after(function, np.ones((3, 3)))
    assert after == before == [["exp", "tanh"], ["add"]]


def test_what_needs_a_sum_stays_in_a_nest_after_it():
    before, after = before_and_after(lambda x: x / np.sum(x, axis=0) + np.exp(x), A)
    assert [nest for nest in after if "sum" in nest] != [nest for nest in after if "div" in nest]
    assert len(before) == len(after)


def test_a_kernel_between_two_nests_keeps_them_apart_where_it_hands_on_what_one_makes():
    def function(x):
        y = np.tanh(x)
        return y * (y @ x)

    square = np.ones((4, 4))
    assert before_and_after(function, square)[1] == [["tanh"], ["mul"]]


def test_a_kernel_between_two_nests_that_has_nothing_to_do_with_them_does_not_keep_them_apart():
    def function(x, w):
        y = np.tanh(x)
        z = w @ w
        return np.concatenate([np.exp(y), z, np.square(x)])

    assert len(before_and_after(function, np.ones((4, 4)), np.ones((4, 4)))[1]) == 1


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("seed", range(20))
def test_merged_programs_give_what_the_interpreter_gives(seed):
    rng = np.random.default_rng(seed)

    def function(*values):
        made = list(values)
        choices = np.random.default_rng(seed)
        for _ in range(25):
            a, b = (made[int(choices.integers(len(made)))] for _ in range(2))
            kind = int(choices.integers(6))
            made.append(
                (a + b, a * b, np.tanh(a), a @ b, a / (2 + np.sum(np.abs(b), axis=0)), np.transpose(a) - b)[kind]
            )
            made[-1] = np.tanh(made[-1])
        return np.concatenate(made[-6:]), made[-3] * made[-9]

    args = [rng.normal(size=(5, 5)) for _ in range(3)]
    native, expected = (pb.compile(function, tier=tier)(*args) for tier in ("native", "fused"))
    for one, other in zip(native, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
