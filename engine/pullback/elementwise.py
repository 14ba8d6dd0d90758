"""Functions of numbers on whole arrays, differentiated with dual numbers."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from pullback.primitive import Traced
from pullback.rules.elementwise_map import TakesTracedError, elementwise_map
from pullback.tiers import current_tier


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one rule over arrays that broadcast: its derivative keeps no array but the operands.

    The function computes with operators and NumPy's ufuncs, one element at a time. Its derivative carries one partial
    per argument that is asked for. In the `unfused` tier, while a plan is recorded (which fuses by itself), and where
    the function takes a traced value from around it, it simply runs.

        poly = pb.elementwise(lambda x, a, b, c: a + x * (b + x * c))
        pb.grad(lambda b: np.sum(poly(x, a, b, c)))(2.0)      # one partial, not four
    """

    @wraps(function)
    def on_arrays(*operands: Any) -> Any:
        if current_tier() == "unfused" or not any(isinstance(operand, Traced) for operand in operands):
            return function(*operands)
        try:
            return elementwise_map(*operands, function=function)
        except TakesTracedError:
            return function(*operands)

    return on_arrays
