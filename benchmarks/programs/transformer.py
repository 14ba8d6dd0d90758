"""A transformer block: layer norm, attention with four heads, a feed-forward layer with GELU; batch 4, 32 tokens, width 64."""

from typing import Any

import numpy as np

BATCH, TOKENS, WIDTH, HEADS = 4, 32, 64, 4


def arguments(rng: np.random.Generator, dtype: str) -> tuple[Any, ...]:
    def weights(*shape: int) -> Any:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(dtype)

    parameters = {
        "qkv": weights(WIDTH, 3 * WIDTH),
        "out": weights(WIDTH, WIDTH),
        "up": weights(WIDTH, 4 * WIDTH),
        "down": weights(4 * WIDTH, WIDTH),
        "gain1": np.ones(WIDTH, dtype),
        "gain2": np.ones(WIDTH, dtype),
    }
    return parameters, rng.normal(size=(BATCH, TOKENS, WIDTH)).astype(dtype)


wrt = (0,)


def normalized(x: Any, gain: Any) -> Any:
    centered = x - np.mean(x, axis=-1, keepdims=True)
    return gain * centered / np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + 1e-5)


def attention(x: Any, qkv: Any, out: Any) -> Any:
    heads = np.reshape(x @ qkv, (BATCH, TOKENS, 3, HEADS, WIDTH // HEADS))
    q, k, v = (np.transpose(heads[:, :, part], (0, 2, 1, 3)) for part in range(3))
    scores = q @ np.swapaxes(k, -1, -2) / (WIDTH // HEADS) ** 0.5
    shares = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    shares = shares / np.sum(shares, axis=-1, keepdims=True)
    return np.reshape(np.transpose(shares @ v, (0, 2, 1, 3)), (BATCH, TOKENS, WIDTH)) @ out


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def loss(parameters: Any, x: Any) -> Any:
    y = x + attention(normalized(x, parameters["gain1"]), parameters["qkv"], parameters["out"])
    y = y + gelu(normalized(y, parameters["gain2"]) @ parameters["up"]) @ parameters["down"]
    return np.mean(y**2)
