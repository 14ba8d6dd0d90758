"""Rules whose only form writes into existing arrays. Evaluating one allocates the arrays first."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.types import ArrayType, type_of


def by_writing(
    into: Callable[..., Any], infer: Callable[..., ArrayType], scratch: Callable[..., Sequence[ArrayType]]
) -> Callable[..., Any]:
    """An `evaluate` for a rule of one result, from its `into` and the types of the result and the scratch arrays."""

    def evaluate(*operands: Any, **params: Any) -> Any:
        types = [type_of(operand) for operand in operands]
        wanted = (infer(*types, **params), *scratch(*types, **params))
        out, *spare = [np.empty(type_.shape, type_.dtype) for type_ in wanted]
        into(out, *operands, **params, scratch=spare)
        return out

    return evaluate
