"""How `matmul` is emitted: as the product that NumPy's rules make of its operands."""

from collections.abc import Sequence

import numpy as np

from pullback.backends.native.emission import Emission, Stored, emits
from pullback.backends.native.kernels.product import described
from pullback.backends.native.kernels.shared_products import emit_shared_product
from pullback.ir.graph import Node
from pullback.rules.contractions import matmul

_COMPUTED = frozenset(np.dtype(name) for name in ("f4", "f8", "i4", "i8"))


def _supports(node: Node) -> str | None:
    dtype = node.outputs[0].type.dtype
    return None if dtype in _COMPUTED else f"matmul of {dtype} is not one of sums and products"


@emits(matmul, supports=_supports)
def _emit_matmul(
    emission: Emission, _node: Node, operands: Sequence[Stored], results: Sequence[Stored], _scratch: str
) -> None:
    a, b = operands
    (c,) = results
    emit_shared_product(emission, described(a, b, c), (a.pointer, b.pointer, c.pointer))
