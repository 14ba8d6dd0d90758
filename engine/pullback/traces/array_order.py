"""Values of a graph whose arrays NumPy may lay out otherwise than in C order.

NumPy's results keep the order of their operands: what is computed of a transposed array lies as that array does. Plans lay
everything out in C order, which makes no difference but where a function stores into an array and reads a reshape of it:
NumPy's reshape is a view of an array in C order and a copy of others.
"""

from collections.abc import Iterable

from pullback.ir.graph import Capture, Node, Var
from pullback.rules.contractions import matmul
from pullback.rules.shapes import transpose


def transposed_values(nodes: Iterable[Node], captures: Iterable[Capture]) -> set[Var]:
    """Values that a transpose of more than axes of length one went into, or a captured array that is not in C order."""
    found = {capture.var for capture in captures if not capture.value.flags.c_contiguous}
    for node in nodes:
        if node.primitive is matmul:  # its results are in C order
            continue
        order = dict(node.params)["axes"] if node.primitive is transpose else ()
        moved = [axis for axis in order if node.inputs[0].type.shape[axis] > 1]
        if moved != sorted(moved) or any(atom in found for atom in node.inputs if isinstance(atom, Var)):
            found.update(var for var in node.outputs if sum(size > 1 for size in var.type.shape) > 1)
    return found
