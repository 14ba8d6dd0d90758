"""Negative log-likelihood of a hidden Markov model by the forward algorithm in logarithms: 100 observations, 12 states.

Differentiated by unnormalized initial, transition and emission logits.
"""

from typing import Any

import numpy as np

STATES, SYMBOLS, STEPS = 12, 8, 100


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    observed = rng.integers(0, SYMBOLS, size=STEPS)
    return rng.normal(size=STATES), rng.normal(size=(STATES, STATES)), rng.normal(size=(STATES, SYMBOLS)), observed


wrt = (0, 1, 2)


def log_sum_exp(x: Any, axis: int) -> Any:
    highest = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(highest, axis) + np.log(np.sum(np.exp(x - highest), axis=axis))


def log_softmax(x: Any) -> Any:
    return x - log_sum_exp(x, -1)[..., None]


def loss(initial: Any, transition: Any, emission: Any, observed: Any) -> Any:
    transition, emission = log_softmax(transition), log_softmax(emission)
    alpha = log_softmax(initial) + emission[:, observed[0]]
    for t in range(1, STEPS):
        alpha = log_sum_exp(alpha[:, None] + transition, 0) + emission[:, observed[t]]
    return -log_sum_exp(alpha, 0)
