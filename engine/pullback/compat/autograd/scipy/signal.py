"""`convolve` over chosen axes, with axes to sum over and axes to keep."""

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np

Axes = Sequence[Sequence[int]]


def convolve(A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full") -> Any:
    """Convolve A and B along pairs of axes, sum products over pairs of `dot_axes`, keep the others.

    Axes of the result: those kept of A, those kept of B, the convolved ones. `mode` as in `scipy.signal.convolve`.
    """
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode {mode!r} is not one of full, same, valid")
    pairs = list(zip(*axes, strict=True)) if axes is not None else [(axis, axis) for axis in range(np.ndim(A))]
    sizes = [(np.shape(A)[a], np.shape(B)[b]) for a, b in pairs]
    if mode == "valid" and any(a > b for a, b in sizes) and any(a < b for a, b in sizes):
        raise ValueError("in mode valid one array must be the larger along all convolved axes")
    letters = iter(ascii_letters)
    of_a: list[str] = [next(letters) for _ in range(np.ndim(A))]
    of_b: list[str] = [next(letters) for _ in range(np.ndim(B))]
    for a, b in zip(*dot_axes, strict=True):
        of_b[b] = of_a[a]
    taken = {*(a for a, _ in pairs), *dot_axes[0]}, {*(b for _, b in pairs), *dot_axes[1]}
    kept = [letter for axis, letter in enumerate(of_a) if axis not in taken[0]]
    kept += [letter for axis, letter in enumerate(of_b) if axis not in taken[1]]
    # Along each convolved axis A becomes its windows of the length of B, an axis of places and one within the window.
    for (a, b), (a_size, b_size) in zip(pairs, sizes, strict=True):
        A = _windows(A, sum(len(letters_of) for letters_of in of_a[:a]), a_size, b_size, mode)
        of_a[a] += of_b[b]
    flipped = np.flip(B, tuple(b for _, b in pairs)) if pairs else B
    out = "".join(kept) + "".join(of_a[a][0] for a, _ in pairs)
    return np.einsum(f"{''.join(of_a)},{''.join(of_b)}->{out}", A, flipped)


def _windows(A: Any, axis: int, a_size: int, b_size: int, mode: str) -> Any:
    """A with an axis replaced by two: the places of the result, and the elements that B's meet there."""
    start, length = {
        "full": (0, a_size + b_size - 1),
        "same": ((b_size - 1) // 2, a_size),
        "valid": (min(a_size, b_size) - 1, abs(a_size - b_size) + 1),
    }[mode]
    # Place o of the full result meets elements o - b_size + 1 to o of A; those outside are zero.
    padding = [(0, 0)] * np.ndim(A)
    padding[axis] = (b_size - 1 - start, max(0, start + length - a_size))
    places = np.arange(length)[:, None] + np.arange(b_size)[None, :]
    return np.take(np.pad(A, padding), places, axis=axis)
