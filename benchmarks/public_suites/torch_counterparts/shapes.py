"""Operators that move elements."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

Counterpart = Callable[..., Any]


def _at(x: Any, dim: int, key: Any) -> Any:
    return x[(slice(None),) * (dim % np.ndim(x)) + (key,)]


def _chunks(x: Any, chunks: int, dim: int = 0) -> Any:
    length = np.shape(x)[dim]
    size = -(-length // chunks)
    return np.split(x, list(range(size, length, size)), axis=dim)


def _pieces(x: Any, sizes: Any, dim: int = 0) -> Any:
    length = np.shape(x)[dim]
    ends = range(sizes, length, sizes) if isinstance(sizes, int) else accumulate(sizes[:-1])
    return np.split(x, list(ends), axis=dim)


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return np.conj(np.swapaxes(x, -1, -2))


def padded(x: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    """Torch names the widths of the last axis first, all in one list."""
    widths = [(0, 0)] * (np.ndim(x) - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    if mode == "constant":
        return np.pad(x, widths, constant_values=0 if value is None else value)
    modes: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return np.pad(x, widths, mode=modes[mode])


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return np.diagonal(x, offset, dim1, dim2)


def trees_of(xs: Sequence[Any]) -> Sequence[Any]:
    """Arguments that may come as one list."""
    return xs[0] if len(xs) == 1 and isinstance(xs[0], list | tuple) else xs


def _expanded(x: Any, shape: Sequence[int]) -> Any:
    missing = len(shape) - np.ndim(x)
    sizes = [np.shape(x)[axis - missing] if size == -1 else size for axis, size in enumerate(shape)]
    return np.broadcast_to(x, tuple(sizes))


def _block_diag(blocks: Sequence[Any]) -> Any:
    blocks = [np.atleast_2d(block) for block in blocks]
    width = sum(np.shape(block)[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        columns = np.shape(block)[1]
        rows.append(np.pad(block, ((0, 0), (before, width - before - columns))))
        before += columns
    return np.concatenate(rows)


SPLITS = {"chunk": _chunks, "unsafe_chunk": _chunks} | dict.fromkeys(
    ("split", "unsafe_split", "split_with_sizes", "split_with_sizes_copy"), _pieces
)
COUNTERPARTS: dict[str, Counterpart] = {
    "H": adjoint,
    "T": np.transpose,
    "mH": adjoint,
    "mT": lambda x: np.swapaxes(x, -1, -2),
    "adjoint": adjoint,
    "t": np.transpose,
    "t_copy": np.transpose,
    "alias_copy": lambda x: x + 0,
    "atleast_1d": lambda *xs: [np.atleast_1d(x) for x in trees_of(xs)],
    "atleast_2d": lambda *xs: [np.atleast_2d(x) for x in trees_of(xs)],
    "atleast_3d": lambda *xs: [np.atleast_3d(x) for x in trees_of(xs)],
    "block_diag": lambda *xs: _block_diag(xs),
    "cat": lambda xs, dim=0: np.concatenate(xs, axis=dim),
    "column_stack": np.column_stack,
    "constant_pad_nd": lambda x, pad, value=0: padded(x, pad, "constant", value),
    "diagonal": _diagonal,
    "diagonal_copy": _diagonal,
    "linalg.diagonal": lambda x, *, offset=0, dim1=-2, dim2=-1: np.diagonal(x, offset, dim1, dim2),
    "dsplit": np.dsplit,
    "dstack": np.dstack,
    "expand": lambda x, shape: _expanded(x, shape),
    "expand_copy": lambda x, shape: _expanded(x, shape),
    "expand_as": lambda x, y: np.broadcast_to(x, np.shape(y)),
    "flip": lambda x, dims: np.flip(x, tuple(dims)),
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "hsplit": np.hsplit,
    "hstack": np.hstack,
    "vsplit": np.vsplit,
    "vstack": np.vstack,
    "meshgrid": lambda *xs, indexing="ij": np.meshgrid(*trees_of(xs), indexing=indexing),
    "movedim": np.moveaxis,
    "narrow": lambda x, dim, start, length: _at(x, dim, slice(int(start), int(start) + length)),
    "permute_copy": lambda x, dims: np.transpose(x, dims),
    "repeat_interleave": lambda x, repeats, dim=None, **_: np.repeat(x, repeats, axis=dim),
    "reshape": np.reshape,
    "view": lambda x, shape: np.reshape(x, shape),
    "reshape_as": lambda x, y: np.reshape(x, np.shape(y)),
    "view_as": lambda x, y: np.reshape(x, np.shape(y)),
    "rot90": lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    "select": lambda x, dim, index: _at(x, dim, int(index)),
    "slice": lambda x, dim=0, start=None, end=None, step=1: _at(x, dim, slice(start, end, step)),
    "stack": lambda xs, dim=0: np.stack(xs, axis=dim),
    "transpose_copy": np.swapaxes,
    "tril": np.tril,
    "triu": np.triu,
    "unsqueeze": np.expand_dims,
    "unsqueeze_copy": np.expand_dims,
    "fft.fftshift": lambda x, dim=None: np.fft.fftshift(x, dim),
    "fft.ifftshift": lambda x, dim=None: np.fft.ifftshift(x, dim),
}
