"""Programs give the same bits on any number of threads, and their kernels are shared."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.threads import counts
from pullback_runners.workloads import find_workload
from pullback_runners.workloads.registry import known_workloads

THREADS = (1, 2, 3, 7)

#: Workloads that have kernels to share; others are a few numbers, LAPACK, or may be left to the tape.
SHARED = {
    "attention_head",
    "bias_act",
    "dense_bias_act",
    "gmm",
    "gmm_likelihood",
    "gru",
    "kmeans",
    "lstm",
    "mlp_step",
    "rnn",
}

#: Residuals of many numbers, which have no gradient.
MANY = {"ba", "ht"}

CASES = [find_workload(one.name).cases("quick")[-1] for one in known_workloads()]


def bits(tree):
    """The bytes of all arrays in a result."""
    if isinstance(tree, dict):
        return [part for name in sorted(tree) for part in bits(tree[name])]
    if isinstance(tree, (tuple, list)):
        return [part for one in tree for part in bits(one)]
    if isinstance(tree, pb.Block):
        return bits({name: tree[name] for name in tree})
    array = np.asarray(tree)
    return [(array.dtype, array.shape, array.tobytes())]


def close(ours, theirs):
    """Compare with what the tape gives."""
    for (dtype, shape, own), (_, _, other) in zip(bits(ours), bits(theirs), strict=True):
        single = dtype.itemsize == 4
        values = [np.frombuffer(raw, dtype).reshape(shape) for raw in (own, other)]
        np.testing.assert_allclose(*values, rtol=2e-3 if single else 1e-9, atol=1e-4 if single else 1e-9)


def check(function, *args):
    """The same bits, which are right; and whether any kernel was shared."""
    plan = pb.compile(function, tier="native")
    with pb.threads(1):
        plan(*args)
        expected = bits(plan(*args))
    close(plan(*args), function(*args))
    before = counts().shared
    for threads in THREADS:
        with pb.threads(threads):
            for _ in range(2):
                assert bits(plan(*args)) == expected
    return counts().shared > before


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_workload_has_the_same_gradients(case, cut_everything):
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    function = workload(**dict(case.params))
    if case.workload not in MANY:
        function = pb.value_and_grad(function, wrt=workload.wrt)
    assert check(function, *inputs.values()) or case.workload not in SHARED


RNG = np.random.default_rng(5)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def recurrence(w, x):
    return pb.scan(lambda h, x: (np.tanh(h @ w + x),) * 2, np.zeros((5, 24)), x)[1]


PROGRAMS = {
    "reductions of many kinds": (
        lambda x: (np.sum(x), np.sum(x, axis=0), np.max(x, axis=1), np.mean(x), np.prod(x[:4], axis=0), np.any(x > 2)),
        RNG.normal(size=(70, 90)),
    ),
    "softmax": (softmax, RNG.normal(size=(40, 33))),
    "sums that cancel": (lambda x: np.sum(x**3 - 2 * x**2 + x - 1), RNG.normal(size=5000)),
    "single precision": (lambda x: np.sum(np.exp(x) * x, axis=0), RNG.normal(size=(300, 17)).astype("f4")),
    "a product, an activation and sums": (
        lambda x, w: (np.tanh(x @ w), np.sum(np.tanh(x @ w), axis=0)),
        RNG.normal(size=(90, 40)),
        RNG.normal(size=(40, 50)),
    ),
    "a batch of products": (np.matmul, RNG.normal(size=(20, 9, 8)), RNG.normal(size=(20, 8, 11))),
    "products in a loop": (recurrence, RNG.normal(size=(24, 24)) / 5, RNG.normal(size=(4, 5, 24))),
    "the weights of a loop": (
        pb.grad(lambda w, x: np.sum(recurrence(w, x) ** 2)),
        RNG.normal(size=(24, 24)) / 5,
        RNG.normal(size=(4, 5, 24)),
    ),
    "rows picked and scattered": (
        pb.value_and_grad(lambda x: np.sum(np.sin(x[np.arange(200) % 37]) ** 2)),
        RNG.normal(size=(64, 20)),
    ),
    "short rows": (lambda x: x - np.mean(x, axis=0), RNG.normal(size=(400, 3))),
    "whole numbers": (lambda n: (np.sum(n), np.max(n, axis=0), n * n), RNG.integers(0, 9, size=(60, 40))),
}


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_same_results(name, cut_everything):
    function, *args = PROGRAMS[name]
    assert check(function, *args)
