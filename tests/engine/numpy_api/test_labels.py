"""Functions whose results have a shape that depends on labels: constants of a plan, which is held to the labels."""

import numpy as np
import pytest

import pullback as pb

LABELS = np.array([2, 0, 2, 1, 1, 2])
X = np.random.default_rng(0).normal(size=(6, 3))
TIERS = pytest.mark.parametrize("tier", pb.TIERS)


def classes(x, labels):
    total = 0.0
    values, counts = np.unique(labels, return_counts=True)
    for value, count in zip(values, counts, strict=True):
        total = total + np.sum(x[labels == value].mean(axis=0) ** 2) * count
    return total


def by_name(x, labels):
    means = {int(k): np.sum(x[labels == k], axis=0) for k in np.unique(labels)}
    return sum(k * np.sum(mean**2) for k, mean in means.items()) * len(means)


def one_hot(x, labels):
    return np.sum((x.T @ (labels[:, None] == np.unique(labels))) ** 2)


def counted(x, labels):
    return np.sum(np.bincount(labels, weights=x[:, 0]) ** 2 / np.bincount(labels))


def grouped(x, labels):
    places = [np.flatnonzero(labels == k) for k in range(len(np.bincount(labels)))]
    return sum(np.prod(np.sort(x[place], axis=0)[0]) for place in places)


def differences(function, step=1e-6):
    unit = step * np.eye(X.size).reshape(-1, *X.shape)
    return np.reshape([(function(X + one) - function(X - one)) / (2 * step) for one in unit], X.shape)


PROGRAMS = [classes, by_name, one_hot, counted, grouped]


@pytest.mark.sample(every=9)
@TIERS
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("is_argument", [True, False])
def test_labels_are_held_to(program, is_argument, tier):
    held = {"labels": LABELS}

    def function(x, *labels):
        return program(x, *(labels or (held["labels"],)))

    plan = pb.compile(pb.value_and_grad(function), tier=tier)
    for labels in (LABELS, LABELS.copy(), LABELS[::-1].copy(), np.array([0, 1, 1, 0, 1, 1]), LABELS):
        held["labels"] = labels
        value, gradient = plan(X, labels) if is_argument else plan(X)
        np.testing.assert_allclose(value, program(X, labels), rtol=1e-13)
        np.testing.assert_allclose(gradient, differences(lambda x: program(x, labels)), rtol=1e-6, atol=1e-8)  # noqa: B023
    assert tier == "unfused" or plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("tier", pb.TIERS[1:])
def test_what_moves_is_not_held_to_and_says_what_to_do(tier):
    plan = pb.compile(pb.grad(lambda x: np.sum(np.unique(np.round(x)) * x[0])), tier=tier)
    with pytest.warns(pb.errors.PlanWarning, match="numpy.unique .* compute it outside of the function, and pass it"):
        plan(np.arange(3.0))


def test_counts_that_differ_between_examples_name_what_counts_them():
    labels, weights = np.array([[1, 2, 1], [0, 1, 3]]), np.ones((2, 3))
    with pytest.raises(pb.errors.TracingError, match=r"counts = pb.numpy.zeros\(n\)"):
        pb.vmap(lambda x, w: np.bincount(x, w, 4))(labels, weights)

    def counted(x, w):
        counts = pb.numpy.zeros(4)
        np.add.at(counts, x, w)
        return counts

    np.testing.assert_array_equal(pb.vmap(counted)(labels, weights), [[0, 2, 1, 0], [1, 1, 0, 1]])
