"""act(z + b): a bias and an activation over what a layer has computed, in the one array it is computed in.

`ActivatedLayer` is what dense_bias_act, conv_bias_act and bias_act have in common: a product z of the operands, a bias
that is added to it where it stands, an activation written over it.

Reference: `act(product(operands) + b)` in primitives; every test runs on both. Saved for the pullback: the operands and
the output, nothing else, so it is for activations whose derivative can be written from the output; `pullback.nn`
composes the others and keeps the one array they need beside it. Overwritten: the product, which is the rule's own
temporary; in a pullback that is called once also the output, by the cotangent of the product, where the tape proves
that nothing else refers to it (`pullback.core.ownership`). Orders and modes: any; push and pull are written in
differentiable operations.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from pullback.core.cases import away_from, cases, normal
from pullback.core.kinds import Bilinear, Scalar, behind_batch, unbroadcast
from pullback.core.primitive import Primitive
from pullback.core.types import ArrayType, Shape
from pullback.rules import activations, trigonometric
from pullback.rules.activations import identity, in_pieces

Params = dict[str, Any]


class ActivatedLayer(Primitive):
    """Parameters: act, a Scalar whose derivative reads its output only; constants, the numbers that shape it."""

    overwrites_result = True
    factors = 2
    """The number of operands before the bias."""

    @abstractmethod
    def product(self, operands: Sequence[Any], params: Params) -> np.ndarray[Any, Any]:
        """Give z in an array of its own."""

    @abstractmethod
    def product_type(self, types: Sequence[ArrayType], params: Params) -> ArrayType:
        """Type of z."""

    @abstractmethod
    def pull_product(
        self, needed: Sequence[bool], z_bar: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """Cotangents of the operands of the product."""

    @abstractmethod
    def push_product(self, tangents: Sequence[Any], operands: Sequence[Any], params: Params) -> Any:
        """Tangent of z, None where no operand moves."""

    @abstractmethod
    def batch_product(self, operands: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        """Give z for operands of which those flagged have one more, leading axis; there may be none."""

    def placed(self, b: Any, z_ndim: int) -> Any:
        """The bias in a shape that broadcasts to z."""
        return b

    def evaluate(self, *operands: Any, act: Scalar, constants: tuple[float, ...] = (), **params: Any) -> Any:
        """One array: the product, then the bias, then the activation."""
        z = self.product(operands[: self.factors], params)
        if not issubclass(type(z), np.ndarray):  # a single output unit on a single input
            return act.evaluate(z + operands[self.factors] if operands[self.factors :] else z, *constants)
        if operands[self.factors :]:
            b = self.placed(operands[self.factors], z.ndim)
            z = np.add(z, b, out=z) if np.result_type(z, b) == z.dtype else z + b
        return _activate(act, constants, z)

    def infer(self, *types: ArrayType, **params: Any) -> tuple[ArrayType, ...]:
        """Type of the activation of the product."""
        act, constants, rest = _split(params)
        z = self.product_type(types[: self.factors], rest)
        for b in types[self.factors :]:
            self.check_bias(b.shape, z.shape)
            z = ArrayType(z.shape, np.result_type(z.dtype, b.dtype))
        result: tuple[ArrayType, ...] = act.infer(z, *(ArrayType((), np.dtype(float), weak=True) for _ in constants))
        return result

    def check_bias(self, shape: tuple[int, ...], z_shape: tuple[int, ...]) -> None:
        """Refuse a bias that does not broadcast to the product."""
        placed = self.placed(np.broadcast_to(0, shape), len(z_shape))
        try:
            fits = np.broadcast_shapes(z_shape, placed.shape) == z_shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{self.name}: a bias of shape {shape} does not fit an output of shape {z_shape}")

    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """Pull back through the activation, from the output, then through the product and the bias."""
        act, constants, rest = _split(params)
        z_bar = y_bar if act is identity else in_pieces(act.maps[0])(y_bar, None, *constants, y)
        return self._pull_activated(needed, z_bar, operands, rest)

    def pull_once(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """Pull back with the cotangent of the product written over y."""
        act, constants, rest = _split(params)
        z_bar = y_bar if act is identity else in_pieces(act.maps[0]).into(y, y_bar, None, *constants, y)
        return self._pull_activated(needed, z_bar, operands, rest)

    def _pull_activated(
        self, needed: Sequence[bool], z_bar: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        cotangents = list(self.pull_product(needed[: self.factors], z_bar, operands[: self.factors], params))
        for b in operands[self.factors :]:
            shape = _placed_shape(self, np.shape(b), np.ndim(z_bar))
            wanted = needed[self.factors]
            cotangents.append(np.reshape(unbroadcast(z_bar, shape, b.dtype), np.shape(b)) if wanted else None)
        return cotangents

    def batch(self, operands: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        """Product, bias and activation as rules of their own, which know batches."""
        act, constants, rest = _split(params)
        factors, flags = operands[: self.factors], batched[: self.factors]
        z = self.batch_product(factors, flags, rest)
        rank = np.ndim(z) - any(flags)
        for b, own in zip(operands[self.factors :], batched[self.factors :], strict=True):
            shape = np.shape(self.placed(np.broadcast_to(0, np.shape(b)[own:]), rank))
            placed = np.reshape(b, (*np.shape(b)[:own], *shape))
            z = z + (behind_batch(placed, rank) if own else placed)
        return z if act is identity else act(z, *constants)

    def lower(self, *operands: Any, **params: Any) -> Any:
        """The reference: the same steps, each with memory of the plan's; liveness puts them into one array."""
        return self.batch(operands, [False] * len(operands), params)

    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], params: Params) -> Any:
        """The tangent of the product and of the bias, through the activation."""
        act, constants, rest = _split(params)
        dz = self.push_product(tangents[: self.factors], operands[: self.factors], rest)
        for db in tangents[self.factors :]:
            if db is not None:
                moved = self.placed(db, np.ndim(y))
                dz = np.broadcast_to(moved, np.shape(y)) if dz is None else dz + moved
        return dz if act is identity or dz is None else in_pieces(act.maps[0])(dz, None, *constants, y)


@lru_cache(maxsize=1024)
def _placed_shape(layer: ActivatedLayer, shape: Shape, z_ndim: int) -> Shape:
    """The shape a bias of this shape has beside the product."""
    return np.shape(layer.placed(np.broadcast_to(0, shape), z_ndim))


def _split(params: Params) -> tuple[Scalar, tuple[float, ...], Params]:
    rest = dict(params)
    return rest.pop("act"), rest.pop("constants", ()), rest


def _activate(act: Scalar, constants: tuple[float, ...], z: np.ndarray[Any, Any]) -> Any:
    """The activation written over the array it is given, or in one of its own where its result is of another type."""
    write = activating(act, constants, z.dtype)
    return act.evaluate(z, *constants) if write is None else write(z)


def activating(
    act: Scalar, constants: tuple[float, ...], dtype: np.dtype[Any]
) -> Callable[[np.ndarray[Any, Any]], Any] | None:
    """A function that writes an activation over an array and returns it; None if the result is of another dtype."""
    if act is identity:
        return lambda z: z
    numbers = (ArrayType((), np.dtype(float), weak=True) for _ in constants)
    if act.infer(ArrayType((1,), dtype), *numbers)[0].dtype != dtype:
        return None
    if isinstance(act.ufunc, np.ufunc):
        ufunc = act.ufunc
        return lambda z: ufunc(z, out=z)
    into = act.into
    if into is not None:
        return lambda z: into(z, z, *constants)

    def write(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        z[...] = act.evaluate(z, *constants)
        return z

    return write


class BilinearLayer(ActivatedLayer):
    """A layer whose product is a bilinear rule, of the parameters of that rule."""

    rule: ClassVar[Bilinear]

    def product(self, operands: Sequence[Any], params: Params) -> np.ndarray[Any, Any]:
        """The value of the rule."""
        product: np.ndarray[Any, Any] = self.rule.evaluate(*operands, **params)
        return product

    def product_type(self, types: Sequence[ArrayType], params: Params) -> ArrayType:
        """As the rule has it."""
        return self.rule.infer(*types, **params)[0]

    def pull_product(
        self, needed: Sequence[bool], z_bar: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        """As the rule has them."""
        return self.rule.pull(needed, z_bar, None, operands, params)

    def push_product(self, tangents: Sequence[Any], operands: Sequence[Any], params: Params) -> Any:
        """As the rule has it."""
        return None if all(dx is None for dx in tangents) else self.rule.push(tangents, None, operands, params)

    def batch_product(self, operands: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        """As the rule has it."""
        return self.rule.batch(operands, batched, params) if any(batched) else self.rule(*operands, **params)

    def flops(self, types: Sequence[ArrayType], result: ArrayType) -> int:
        """Those of the rule, and two for each element of the result."""
        return self.rule.flops(types[:2], result) + 2 * result.size


class _BiasAct(ActivatedLayer):
    """The layer without a product: x is the caller's, so the sum is made in an array of its own."""

    factors = 1

    def product(self, operands: Sequence[Any], params: Params) -> np.ndarray[Any, Any]:
        return np.array(operands[0])

    def evaluate(self, *operands: Any, act: Scalar, constants: tuple[float, ...] = (), **params: Any) -> Any:
        if len(operands) == 1:
            return act.evaluate(operands[0], *constants)
        z = np.add(*operands)
        return _activate(act, constants, z) if issubclass(type(z), np.ndarray) else act.evaluate(z, *constants)

    def product_type(self, types: Sequence[ArrayType], params: Params) -> ArrayType:
        return types[0]

    def pull_product(
        self, needed: Sequence[bool], z_bar: Any, operands: Sequence[Any], params: Params
    ) -> Sequence[Any]:
        (x,) = operands
        return (unbroadcast(z_bar, np.shape(x), x.dtype) if needed[0] else None,)

    def push_product(self, tangents: Sequence[Any], operands: Sequence[Any], params: Params) -> Any:
        return tangents[0]

    def batch_product(self, operands: Sequence[Any], batched: Sequence[bool], params: Params) -> Any:
        return operands[0]


bias_act = _BiasAct("bias_act")

for _act in (trigonometric.tanh, activations.sigmoid, activations.softplus, activations.identity):
    cases(bias_act, normal(3, 4), normal(3, 1), act=_act)
cases(bias_act, normal(3, 4), act=trigonometric.tanh, because="no bias is a case of its own")
cases(
    bias_act, away_from(0.0, 3, 4), normal(3, 4), act=activations.elu, constants=(1.0,), because="elu is smooth at 1.0"
)
