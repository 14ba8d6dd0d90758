"""One application of a primitive on tensors, made ready for operands of known types.

In this order: an elementwise primitive by the row of its ufunc; another by its own row; one that has `lower`, or is a
composed elementwise function, by the primitives it is made of; and the rest on the host, which is reported.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pullback.core.kinds import Scalar, promotable
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType
from pullback.devices.cuda.rows import matrices, moving, pooling, products, reductions
from pullback.devices.cuda.rows.elementwise import WIDE_UNSIGNED, row_of
from pullback.devices.cuda.rows.table import row_for
from pullback.devices.cuda.values import tensor_of, torch_dtype
from pullback.rules.elementwise import where

assert all((matrices, moving, pooling, products, reductions))  # noqa: S101 - importing them fills the table

Application = Callable[..., Any]
"""Takes tensors and numbers, gives a tensor or a tuple of them."""


def row_application(
    primitive: Primitive, types: Sequence[ArrayType], params: dict[str, Any], device: torch.device
) -> Application | None:
    """The application of a primitive by its row of PyTorch; None where it has none for these types."""
    if isinstance(primitive, Scalar):
        return _elementwise(primitive, types, device)
    own = row_for(primitive)
    if own is None or any(type_.dtype.kind not in own.kinds for type_ in types):
        return None
    results = primitive.infer(*types, **params)
    if not own.is_view and any(type_.dtype in WIDE_UNSIGNED for type_ in (*types, *results)):
        return None
    dtypes = [torch_dtype(result.dtype) for result in results]
    dtype, function = dtypes[0], own.function

    def apply(*operands: Any) -> Any:
        tensors = [x if isinstance(x, Tensor) else tensor_of(x, device) for x in operands]
        made: Any = function(results[0], dtype, *tensors, **params)
        if isinstance(made, tuple):
            return tuple(part.to(wanted) for part, wanted in zip(made, dtypes, strict=True))
        return made if made.dtype == dtype else made.to(dtype)

    return apply


def _elementwise(primitive: Scalar, types: Sequence[ArrayType], device: torch.device) -> Application | None:
    (result,) = primitive.infer(*types)
    loop = loop_dtypes(primitive, types, result)
    function = None if loop is None else row_of(primitive, loop)
    if loop is None or function is None or any(dtype.kind not in "biufc" for dtype in loop):
        return None
    dtypes, dtype, row = [*map(torch_dtype, loop)], torch_dtype(result.dtype), function

    def apply(*operands: Any) -> Tensor:
        tensors = [_in(x, own, device) for x, own in zip(operands, dtypes, strict=True)]
        made: Tensor = row(*tensors)
        return made if made.dtype == dtype else made.to(dtype)

    return apply


def _in(x: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """An operand in the dtype it is computed in. A number stays on the host: kernels take it as an argument."""
    if isinstance(x, Tensor):
        return x if x.dtype == dtype else x.to(dtype)
    if not np.ndim(x):
        return torch.tensor(np.asarray(x).item(), dtype=dtype)
    return tensor_of(x, device).to(dtype)


def loop_dtypes(primitive: Scalar, types: Sequence[ArrayType], result: ArrayType) -> tuple[np.dtype[Any], ...] | None:
    """The dtypes in which a ufunc computes operands of these types; None for functions composed of ufuncs."""
    ufunc = primitive.ufunc
    if primitive is where:
        return (np.dtype(bool), result.dtype, result.dtype)
    if not isinstance(ufunc, np.ufunc):
        return None
    operands = [promotable(type_) for type_ in types]
    if all(isinstance(operand, type) for operand in operands):
        return tuple(type_.dtype for type_ in types)
    try:
        resolved = ufunc.resolve_dtypes((*operands, *([None] * ufunc.nout)))
    except TypeError:
        return None
    return tuple(resolved[: ufunc.nin])
