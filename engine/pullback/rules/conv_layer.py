"""conv_bias_act(w, x[, b]) = act(conv(w, x) + b): one array instead of three. See `pullback.rules.bias_act`."""

from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal
from pullback.core.kinds import Scalar
from pullback.core.types import type_of
from pullback.core.ufunc_buffers import rows_in_place
from pullback.rules import activations
from pullback.rules.bias_act import BilinearLayer, activating
from pullback.rules.convolution import conv, convolve
from pullback.rules.trigonometric import tanh


class _ConvBiasAct(BilinearLayer):
    """Parameters: those of `conv`, and act. The bias has one number for each output channel.

    Bias and activation are done part by part, as the convolution computes its parts, while these are in the cache.
    """

    rule = conv

    def evaluate(self, *operands: Any, act: Scalar, constants: tuple[float, ...] = (), **params: Any) -> Any:
        """One array, finished where it is computed if product, bias and result are of one type."""
        (z,) = conv.infer(*map(type_of, operands[:2]), **params)
        write = activating(act, constants, z.dtype)
        is_half = z.dtype == np.float16  # computed in single precision, and rounded before the bias is added
        fits = all(np.result_type(z.dtype, b.dtype) == z.dtype and b.size == z.shape[1] for b in operands[2:])
        if write is None or is_half or not fits:
            return super().evaluate(*operands, act=act, constants=constants, **params)
        columns = [np.reshape(b, (params["groups"], z.shape[1] // params["groups"], 1)) for b in operands[2:]]

        def finish(product: np.ndarray[Any, Any]) -> None:
            for column in columns:
                np.add(product, column, out=product)
            write(product)

        with rows_in_place():
            return convolve(operands[0], operands[1], finish, **params)

    def placed(self, b: Any, z_ndim: int) -> Any:
        return channel_column(b, z_ndim)


def channel_column(b: Any, z_ndim: int) -> Any:
    """A bias of shape (outputs,) beside the spatial axes; others as they are."""
    return np.reshape(b, (*np.shape(b), *[1] * (z_ndim - 2))) if np.ndim(b) == 1 else b


conv_bias_act = _ConvBiasAct("conv_bias_act")

_BROAD: dict[str, Any] = {"stride": (2, 1), "pad": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": 2}
_PLAIN: dict[str, Any] = {"stride": (1,), "pad": ((0, 0),), "dilation": (1,), "groups": 1}
for _act in (tanh, activations.sigmoid, activations.identity):
    cases(conv_bias_act, normal(4, 2, 2, 3), normal(2, 4, 5, 6), normal(4), act=_act, **_BROAD)
cases(conv_bias_act, normal(3, 2, 3), normal(2, 2, 7), act=tanh, **_PLAIN, because="no bias")
cases(
    conv_bias_act,
    away_from(0.0, 2, 1, 1),
    away_from(0.0, 2, 1, 3),
    act=activations.relu,
    **_PLAIN,
    because="products of numbers away from 0 are away from the kink",
)
