"""Plans for the ways a gradient is called: with what is returned beside the value, and with arguments by keyword."""

import numpy as np
import pytest

import pullback as pb

X = np.random.default_rng(0).normal(size=(3, 4))
PLANNED = ("fused", "stateful")


def with_aux(x, w):
    hidden = np.tanh(x * w)
    return np.sum(hidden), {"hidden": hidden, "total": np.sum(x), "none": None, "same": x}


def by_name(x, *, scale, shift=1.0):
    return np.sum(np.tanh(x * scale) + shift)


def compare(ours, theirs):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = tuple(ours.values()), tuple(theirs.values())
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple)
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
    elif theirs is None:
        assert ours is None
    else:
        assert type(ours) is type(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("tier", PLANNED)
@pytest.mark.parametrize("transform", [pb.grad, pb.value_and_grad])
@pytest.mark.parametrize("wrt", [0, (0, 1)])
def test_what_is_returned_beside_the_value_comes_out_of_the_plan(tier, transform, wrt):
    gradient = transform(with_aux, wrt=wrt, has_aux=True)
    with pb.tier("unfused"):
        expected = gradient(X, 2.0)
    plan = pb.compile(gradient, tier=tier)
    for _ in range(3):
        compare(plan(X, 2.0), expected)
    assert plan.summary()["fallbacks"] == []
    with pb.tier(tier):
        compare(gradient(X, 2.0), expected)


def test_what_is_returned_beside_the_value_costs_no_array_in_kept_memory(arrays_in_steady_state):
    plan = pb.compile(pb.value_and_grad(lambda x: (np.sum(np.exp(x)), np.exp(x) * 2), has_aux=True), tier="stateful")
    for held in (False, True):
        assert arrays_in_steady_state(lambda: plan(X), held=held) == {0}


@pytest.mark.parametrize("tier", PLANNED)
def test_a_value_without_the_other_is_refused(tier):
    with pytest.raises(pb.errors.DifferentiationError, match="returns \\(value, aux\\)"):
        pb.compile(pb.grad(np.sum, has_aux=True), tier=tier)(X)


@pytest.mark.parametrize("tier", PLANNED)
def test_arguments_by_keyword_only_are_arguments_of_the_plan(tier):
    for transform in (pb.grad, pb.value_and_grad):
        gradient = transform(by_name)
        plan = pb.compile(gradient, tier=tier)
        for scale in (2.0, 3.0, X):
            for extra in ({}, {"shift": 2.0}):
                with pb.tier("unfused"):
                    expected = gradient(X, scale=scale, **extra)
                compare(plan(X, scale=scale, **extra), expected)
                assert plan.summary()["fallbacks"] == []
                with pb.tier(tier):
                    compare(gradient(X, scale=scale, **extra), expected)


@pytest.mark.parametrize("tier", PLANNED)
def test_a_function_called_by_keyword_is_compiled_too(tier):
    plan = pb.compile(by_name, tier=tier)
    compare(plan(x=X, scale=2.0), by_name(X, scale=2.0))
    assert plan.summary()["fallbacks"] == []
    with pytest.raises(TypeError, match="missing a required argument"):
        plan(scale=2.0)


def test_arguments_by_keyword_are_compiled_once_for_each_type(monkeypatch):
    from pullback.compiling import plan as module

    built = []
    build = module.build
    monkeypatch.setattr(module, "build", lambda *args, **keywords: built.append(args) or build(*args, **keywords))
    gradient = pb.grad(by_name)
    with pb.tier("stateful"):
        for scale in (1.0, 2.0, 3.0, 4.0):
            gradient(X, scale=scale)
    assert len(built) == 1


@pytest.mark.parametrize("tier", PLANNED)
def test_a_fallback_keeps_the_fused_rules_and_leaves_the_plans_off(tier):
    block = pb.nn.lstm_block(3, 4)
    x = np.random.default_rng(1).normal(size=(6, 2, 3))

    def loss(params, x):
        vars()  # what it reads cannot be known
        return np.sum(pb.nn.softmax(pb.nn.lstm(params, x)[0], axis=-1) ** 2)

    plan = pb.compile(pb.grad(loss), tier=tier)
    with pb.debug.counting() as counts:
        gradient = plan(block, x)
    assert plan.summary()["fallbacks"] != []
    assert counts.evaluated["lstm"] == 1
    assert counts.evaluated["softmax"] == 1
    with pb.tier("unfused"):
        expected = pb.grad(loss)(block, x)
    np.testing.assert_allclose(gradient.array, expected.array, rtol=1e-10, atol=1e-14)
