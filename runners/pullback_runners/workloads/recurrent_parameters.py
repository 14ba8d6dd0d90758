"""Parameters of the recurrent workloads: one block with views, or arrays of their own; with a bias or without.

Flux.jl's pull request 1855 asks what a block is worth; `form` is `blocked` or `separate`, `bias` is `with` or `without`,
everything else is the same.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import pullback as pb


def draw_parameters(
    make_block: Callable[..., pb.Block],
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    hidden: int,
    form: str,
    bias: str,
) -> Any:
    """A block of a layer with as many inputs as hidden units, or the same numbers as a dictionary of arrays."""
    block = make_block(hidden, hidden, bias=bias == "with", dtype=dtype, init=pb.nn.glorot_uniform(rng))
    if bias == "with":
        block.b = (0.1 * rng.standard_normal(len(block.b))).astype(dtype)
    return block if form == "blocked" else {name: np.array(block[name]) for name in block}


def arrays_like(params: Any, make: Callable[[Any], Any]) -> Any:
    """`make` of every array, in the form of `params`."""
    return {name: make(array) for name, array in params.items()} if isinstance(params, dict) else params.map(make)


def accumulate_product(gradient: Mapping[str, Any], z_bar: Any, x: Any, h: Any) -> None:
    """Add what one step contributes where z = Wi x + Wh h + b, for examples in rows."""
    gradient["Wi"][...] += z_bar.T @ x
    gradient["Wh"][...] += z_bar.T @ h
    if "b" in gradient:
        gradient["b"][...] += z_bar.sum(0)


def write_products(gradient: Mapping[str, Any], z_bar: Any, x: Any, h: Any) -> Any:
    """The same for all steps at once, written into arrays that are there."""
    np.matmul(z_bar.T, x, out=gradient["Wi"])
    np.matmul(z_bar.T, h, out=gradient["Wh"])
    if "b" in gradient:
        np.sum(z_bar, axis=0, out=gradient["b"])
    return gradient
