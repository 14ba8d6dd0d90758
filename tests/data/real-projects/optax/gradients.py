"""Gradients that users of optax compute: two losses, and a step of Adam through which a learning rate is differentiated."""

import jax
import jax.numpy as jnp
import optax

from pullback_runners.workloads import grid, workload

SIZES = {"quick": grid(n=(1_000,), dtype=("f4",)), "standard": grid(n=(100,), dtype=("f4",))}


@workload(wrt="logits", numpy=False, **SIZES)
def focal(n):
    """the focal loss of n rows of 20 labels"""


@focal.inputs
def _(rng, dtype, n):
    return {
        "logits": rng.standard_normal((n, 20)).astype(dtype),
        "labels": rng.uniform(0.1, 0.9, (n, 20)).astype(dtype),
    }


@focal.variant("jax")
def _(logits, labels, *, n):
    arguments = [jnp.asarray(each) for each in (logits, labels)]
    step = jax.jit(jax.value_and_grad(lambda z, y: optax.sigmoid_focal_loss(z, y).mean()))
    return lambda: step(*arguments)


@workload(wrt="logits", numpy=False, **SIZES)
def cross_entropy(n):
    """the cross entropy of n rows of 20 labels"""


@cross_entropy.inputs
def _(rng, dtype, n):
    return {
        "logits": rng.standard_normal((n, 20)).astype(dtype),
        "labels": rng.integers(0, 20, n),
    }


@cross_entropy.variant("jax")
def _(logits, labels, *, n):
    arguments = [jnp.asarray(each) for each in (logits, labels)]
    step = jax.jit(jax.value_and_grad(lambda z, y: optax.softmax_cross_entropy_with_integer_labels(z, y).mean()))
    return lambda: step(*arguments)


def loss_after_a_step(rate, w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    adam = optax.adam(rate)
    updates, _ = adam.update(jax.grad(loss)(w), adam.init(w), w)
    return loss(optax.apply_updates(w, updates))


@workload(wrt="rate", numpy=False, **SIZES)
def adam(n):
    """the gradient by the learning rate, through a step of Adam"""


@adam.inputs
def _(rng, dtype, n):
    return {
        "rate": dtype.type(0.1),
        "w": rng.standard_normal(20).astype(dtype),
        "x": rng.standard_normal((n, 20)).astype(dtype),
    }


@adam.variant("jax")
def _(rate, w, x, *, n):
    arguments = [jnp.asarray(each) for each in (rate, w, x)]
    step = jax.jit(jax.value_and_grad(loss_after_a_step))
    return lambda: step(*arguments)
