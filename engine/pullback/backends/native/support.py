"""What native programs can compute."""

from pullback.backends.native.emission import EMITTERS
from pullback.backends.native.fusing import space_of, why_not_fused
from pullback.backends.native.views import is_view
from pullback.backends.native.writing.lanes import DTYPES
from pullback.ir.graph import Node


def why_not(node: Node) -> str | None:
    """Why a node cannot be native, or None."""
    if node.primitive.effect.writes:
        return f"{node.primitive.name} writes to memory of the caller"
    for atom in (*node.inputs, *node.outputs):
        if atom.type.dtype not in DTYPES:
            return f"{node.primitive.name} of {atom.type.dtype}"
        if not atom.type.size:
            return f"{node.primitive.name} of an array without elements"
    if is_view(node):
        return None
    if space_of(node) is not None:
        return why_not_fused(node)
    emitter = EMITTERS.find(node.primitive)
    return f"{node.primitive.name} has no native form" if emitter is None else emitter.supports(node)
