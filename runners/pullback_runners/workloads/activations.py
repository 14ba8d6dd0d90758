"""Activations and their derivatives as one writes them by hand, for closed forms and hand-written gradients."""

from typing import Any

import numpy as np

GELU_SCALE = float(np.sqrt(2 / np.pi))
GELU_CUBIC = 0.044715


def activated(act: str, z: Any) -> Any:
    """act(z) in an array of its own and of the precision of z."""
    match act:
        case "identity":
            return +z
        case "tanh":
            return np.tanh(z)
        case "relu":
            return np.maximum(z, 0)
        case "sigmoid":
            return 0.5 * (np.tanh(0.5 * z) + 1)
        case "softplus":
            return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))
        case "gelu":
            return 0.5 * z * (1 + _gelu_gate(z))
    raise NotImplementedError(f"no closed form for act={act!r}; write its value and its derivative here")


def slope(act: str, z: Any) -> Any:
    """act'(z) from the input, as books have it, in an array of its own."""
    match act:
        case "identity":
            return np.ones_like(z)
        case "tanh":
            return 1 / np.cosh(z) ** 2
        case "relu":
            return (z > 0).astype(z.dtype)
        case "sigmoid":
            return 0.25 / np.cosh(0.5 * z) ** 2
        case "softplus":
            return 0.5 * (np.tanh(0.5 * z) + 1)
        case "gelu":
            gate = _gelu_gate(z)
            inner = GELU_SCALE * (1 + 3 * GELU_CUBIC * z * z)
            return 0.5 * (1 + gate) + 0.5 * z * (1 - gate * gate) * inner
    raise NotImplementedError(f"no closed form for act={act!r}; write its value and its derivative here")


def loss_and_slope(act: str, z: Any) -> tuple[Any, Any]:
    """sum(act(z)**2) and its derivative by z as a careful person computes them: z is overwritten where that will do."""
    if act == "tanh":
        y = np.tanh(z, out=z)
        value = np.vdot(y, y)
        z_bar = y * y
        np.subtract(1, z_bar, out=z_bar)
        z_bar *= y
    elif act in ("relu", "identity"):
        z_bar = np.maximum(z, 0, out=z) if act == "relu" else z
        value = np.vdot(z_bar, z_bar)
    elif act == "sigmoid":
        y = activated(act, z)
        value = np.vdot(y, y)
        z_bar = y * y
        y -= 1
        z_bar *= y
        np.negative(z_bar, out=z_bar)
    else:
        y = activated(act, z)
        value = np.vdot(y, y)
        z_bar = slope(act, z)
        z_bar *= y
    z_bar *= 2
    return value, z_bar


def _gelu_gate(z: Any) -> Any:
    """The tanh of Hendrycks and Gimpel's approximation, which `gelu` stands for."""
    return np.tanh(GELU_SCALE * (z + GELU_CUBIC * z * z * z))
