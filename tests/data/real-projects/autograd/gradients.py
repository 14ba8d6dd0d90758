"""Gradients that users of HIPS autograd compute: a network, a recurrence, a mixture, a linear solve."""

import autograd
import autograd.numpy as np
from autograd.numpy import linalg
from autograd.scipy.special import logsumexp

from pullback_runners.workloads import grid, workload


def network(w, x, y):
    hidden = np.tanh(np.dot(x, w))
    return np.mean((np.sum(hidden, axis=1) - y) ** 2)


@workload(wrt="w", numpy=False, standard=grid(n=(30,)), quick=grid(n=(30,)))
def dense(n):
    """the squared error of one tanh layer"""


@dense.inputs
def _(rng, dtype, n):
    return {
        "w": rng.standard_normal((n, n)).astype(dtype),
        "x": rng.standard_normal((2 * n, n)).astype(dtype),
        "y": rng.standard_normal(2 * n).astype(dtype),
    }


@dense.variant("autograd")
def _(w, x, y, *, n):
    step = autograd.value_and_grad(network)
    return lambda: step(w, x, y)


def steps(w, x):
    h = np.zeros(w.shape[0])
    for row in x:
        h = np.tanh(np.dot(w, h) + row)
    return np.sum(h**2)


@workload(wrt="w", numpy=False, standard=grid(n=(30,)), quick=grid(n=(20,)))
def recurrence(n):
    """fifty steps of a recurrent layer"""


@recurrence.inputs
def _(rng, dtype, n):
    return {"w": 0.1 * rng.standard_normal((n, n)).astype(dtype), "x": rng.standard_normal((50, n)).astype(dtype)}


@recurrence.variant("autograd")
def _(w, x, *, n):
    step = autograd.value_and_grad(steps)
    return lambda: step(w, x)


def log_likelihood(means, x):
    distances = np.sum((x[:, None, :] - means[None, :, :]) ** 2, axis=2)
    return np.sum(logsumexp(-0.5 * distances, axis=1))


@workload(wrt="means", numpy=False, standard=grid(n=(30,)), quick=grid(n=(200,)))
def mixture(n):
    """the log likelihood of a mixture of ten Gaussians"""


@mixture.inputs
def _(rng, dtype, n):
    return {
        "means": rng.standard_normal((10, 3)).astype(dtype),
        "x": rng.standard_normal((n, 3)).astype(dtype),
    }


@mixture.variant("autograd")
def _(means, x, *, n):
    step = autograd.value_and_grad(log_likelihood)
    return lambda: step(means, x)


def quadratic(a, b):
    return np.dot(b, linalg.solve(np.dot(a, a.T) + np.eye(len(b)), b)) + linalg.norm(a)


@workload(wrt="a", numpy=False, standard=grid(n=(30,)), quick=grid(n=(20,)))
def solve(n):
    """a quadratic form of an inverse, and a norm"""


@solve.inputs
def _(rng, dtype, n):
    return {"a": rng.standard_normal((n, n)).astype(dtype), "b": rng.standard_normal(n).astype(dtype)}


@solve.variant("autograd")
def _(a, b, *, n):
    step = autograd.value_and_grad(quadratic)
    return lambda: step(a, b)
