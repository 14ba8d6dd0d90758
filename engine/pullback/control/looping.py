"""`pb.fori_loop` and `pb.while_loop`: loops that carry something and collect nothing."""

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from pullback.control.carry import Carry
from pullback.errors import ControlFlowError
from pullback.numpy_api.valued import ValuedTracer


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Run `carry = body(i, carry)` for i from lower up to, but not including, upper; give the last carry.

    `pb.fori_loop(0, 10, lambda i, x: 0.5 * (x + 2 / x), 1.0)`  # the square root of two
    """
    first, end = (_bound(value, name) for value, name in ((lower, "lower"), (upper, "upper")))
    carry = Carry("fori_loop", init)
    values = init
    for step in range(first, end):
        values = carry.rebuild(iter(carry.leaves_of(body(step, values), f"in step {step}")))
    return values


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Run `carry = body(carry)` as long as `condition(carry)` is true; give the last carry.

    `pb.while_loop(lambda x: abs(x * x - 2) > 1e-12, lambda x: 0.5 * (x + 2 / x), 1.0)`
    """
    carry = Carry("while_loop", init)
    values, step = init, 0
    while truth(condition(values), "while_loop: the condition"):
        values = carry.rebuild(iter(carry.leaves_of(body(values), f"in step {step}")))
        step += 1
    return values


def truth(value: Any, what: str) -> bool:
    """One truth value."""
    if np.shape(value) != ():
        raise ControlFlowError(
            f"{what} is an array of shape {np.shape(value)}, not one truth value; "
            "reduce it (np.all, np.any), or choose by element with np.where"
        )
    return bool(value)


def integer(value: Any) -> int:
    """An integer, also a traced one; TypeError for anything else."""
    return int(value) if isinstance(value, ValuedTracer) and value.dtype.kind in "iu" else index(value)


def _bound(value: Any, name: str) -> int:
    try:
        return integer(value)
    except TypeError:
        raise ControlFlowError(f"fori_loop: {name} is {value!r}; bounds are integers") from None
