"""Attention over sequences of unequal length, scores of padding and of the future masked by assignment: 8 x 48 tokens, width 32."""

from typing import Any

import numpy as np

BATCH, TOKENS, WIDTH = 8, 48, 32


def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    q, k, v = (rng.normal(size=(BATCH, TOKENS, WIDTH)) for _ in range(3))
    lengths = rng.integers(TOKENS // 2, TOKENS + 1, size=BATCH)
    hidden = np.arange(TOKENS)[None, None, :] >= lengths[:, None, None]
    future = np.triu(np.ones((TOKENS, TOKENS), bool), 1)
    return q, k, v, hidden | future


wrt = (0, 1, 2)


def loss(q: Any, k: Any, v: Any, hidden: Any) -> Any:
    scores = q @ np.swapaxes(k, 1, 2) / WIDTH**0.5
    scores[hidden] = -1e30
    shares = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    shares /= np.sum(shares, axis=-1, keepdims=True)
    return np.mean((shares @ v) ** 2)


def jax_loss(q: Any, k: Any, v: Any, hidden: Any) -> Any:
    scores = q @ np.swapaxes(k, 1, 2) / WIDTH**0.5
    scores = np.where(hidden, -1e30, scores)
    shares = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    shares = shares / np.sum(shares, axis=-1, keepdims=True)
    return np.mean((shares @ v) ** 2)
