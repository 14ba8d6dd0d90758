"""New arrays after the model of a traced one, or between traced ends."""

from typing import Any

import numpy as np

from pullback.numpy_api.table import implements


@implements(np.zeros_like)
def zeros_like(a: Any, **keywords: Any) -> Any:
    """Zeros do not depend on their model: an ordinary array."""
    return np.zeros(**_like(a, keywords))


@implements(np.ones_like)
def ones_like(a: Any, **keywords: Any) -> Any:
    return np.ones(**_like(a, keywords))


def _like(a: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in keywords.items() if value is not None}
    return {"shape": a.shape, "dtype": a.dtype, **given}


@implements(np.result_type)
def result_type(*operands: Any) -> Any:
    return np.result_type(*(getattr(operand, "dtype", operand) for operand in operands))
