"""Operators of neural networks that are short NumPy programs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from benchmarks.public_suites.torch_counterparts.reductions import softmax
from benchmarks.public_suites.torch_counterparts.shapes import padded

Counterpart = Callable[..., Any]


def _reduced(loss: Any, reduction: str) -> Any:
    return {"none": lambda: loss, "mean": lambda: np.mean(loss), "sum": lambda: np.sum(loss)}[reduction]()


def _huber(x: Any, y: Any, *, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    gap = np.abs(x - y)
    loss = np.where(gap < delta, 0.5 * gap**2, delta * (gap - 0.5 * delta))
    return _reduced(loss if weight is None else loss * weight, reduction)


def _cosine_similarity(x: Any, y: Any, *, dim: int = 1, eps: float = 1e-8) -> Any:
    sizes = [np.maximum(np.sqrt(np.sum(v * v, axis=dim)), eps) for v in (x, y)]
    return np.sum(x * y, axis=dim) / (sizes[0] * sizes[1])


def _normalize(x: Any, p: float = 2.0, dim: int = 1, *, eps: float = 1e-12) -> Any:
    return x / np.maximum(np.linalg.norm(x, p, axis=dim, keepdims=True), eps)


def _gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * scipy.special.erfc(-x / np.sqrt(2))


def _pairs(x: Any, p: float = 2.0) -> Any:
    first, second = np.triu_indices(np.shape(x)[0], 1)
    return np.linalg.norm(x[first] - x[second], p, axis=-1)


def _smooth_l1(x: Any, y: Any, *, reduction: str = "mean", beta: float = 1.0) -> Any:
    gap = np.abs(x - y)
    return _reduced(gap if beta == 0 else np.where(gap < beta, 0.5 * gap**2 / beta, gap - 0.5 * beta), reduction)


def _softplus(x: Any, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(beta * x > threshold, x, np.logaddexp(0.0, beta * x) / beta)


def _glu(x: Any, dim: int = -1) -> Any:
    a, b = np.split(x, 2, axis=dim)
    return a / (1 + np.exp(-b))


def _bilinear(x: Any, y: Any, weight: Any, bias: Any = None) -> Any:
    product = np.einsum("...i,oij,...j->...o", x, weight, y)
    return product if bias is None else product + bias


def _instance_norm(x: Any, *_: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, **__: Any) -> Any:
    axes = tuple(range(2, np.ndim(x)))
    y = (x - np.mean(x, axis=axes, keepdims=True)) / np.sqrt(np.var(x, axis=axes, keepdims=True) + eps)
    shape = (1, -1) + (1,) * len(axes)
    y = y if weight is None else y * np.reshape(weight, shape)
    return y if bias is None else y + np.reshape(bias, shape)


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    return x @ np.transpose(weight) if bias is None else x @ np.transpose(weight) + bias


def _attention(q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.shape(q)[-1])
    if is_causal:
        scores = np.where(np.tril(np.ones(np.shape(scores)[-2:], bool)), scores, -np.inf)
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + attn_mask
    return softmax(scores, -1) @ v


COUNTERPARTS: dict[str, Counterpart] = {
    "nn.functional.bilinear": _bilinear,
    "nn.functional.cosine_similarity": _cosine_similarity,
    "nn.functional.gelu": _gelu,
    "nn.functional.mish": lambda x: x * np.tanh(np.logaddexp(0.0, x)),
    "nn.functional.pdist": _pairs,
    "nn.functional.smooth_l1_loss": _smooth_l1,
    "nn.functional.softplus": _softplus,
    "nn.functional.glu": _glu,
    "nn.functional.hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0.0),
    "nn.functional.hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "nn.functional.hardtanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    "nn.functional.huber_loss": _huber,
    "nn.functional.instance_norm": _instance_norm,
    "nn.functional.leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope),
    "nn.functional.linear": _linear,
    "nn.functional.normalize": _normalize,
    "nn.functional.pad": padded,
    "nn.functional.relu6": lambda x: np.clip(x, 0, 6),
    "nn.functional.scaled_dot_product_attention": _attention,
    "nn.functional.soft_margin_loss": lambda x, y, *, reduction="mean": _reduced(np.log1p(np.exp(-y * x)), reduction),
    "nn.functional.softmin": lambda x, dim, *, dtype=None: softmax(-x, dim, dtype=dtype),
    "nn.functional.softshrink": lambda x, lambd=0.5: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)),
    "nn.functional.kl_div": lambda x, y, *, reduction="mean", log_target=False: (
        _reduced(np.exp(y) * (y - x) if log_target else y * (np.log(y) - x), reduction)
        if reduction != "batchmean"
        else np.sum(np.exp(y) * (y - x) if log_target else y * (np.log(y) - x)) / np.shape(x)[0]
    ),
    "nn.functional.margin_ranking_loss": lambda a, b, y, *, margin=0.0, reduction="mean": _reduced(
        np.maximum(0.0, -y * (a - b) + margin), reduction
    ),
    "nn.functional.poisson_nll_loss": lambda x, y, *, log_input=True, full=False, eps=1e-8, reduction="mean": _reduced(
        np.exp(x) - y * x if log_input else x - y * np.log(x + eps), reduction
    ),
}
