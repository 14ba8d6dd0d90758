"""Nodes that native programs compute."""

from pullback.backends.llvm.builder.lanes import DTYPES
from pullback.backends.native.emission import EMITTERS
from pullback.backends.nests.fusion import space_of, why_not_fused
from pullback.backends.nests.views import is_view
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Node, Var
from pullback.rules.complex_numbers import imag, real
from pullback.rules.complex_parts import COMPLEX_OF, complex_of

#: The nodes that read or write complex arrays, part by part.
_OF_COMPLEX = frozenset({real, imag, complex_of})


def _why_not_of(node: Node, type_: ArrayType) -> str | None:
    """The kind of value that native programs do not compute with; None if they do."""
    if node.primitive in _OF_COMPLEX and type_.dtype in COMPLEX_OF.values():
        if not type_.shape:
            return "a complex number that is no array"
    elif type_.dtype not in DTYPES:
        return str(type_.dtype)
    return None if type_.size else "an array without elements"


def is_returned(atom: Atom) -> bool:
    """True if a whole native program can return a value: numbers written into it are of the dtypes that it computes with."""
    return atom.type.dtype in DTYPES or (isinstance(atom, Var) and atom.type.dtype in COMPLEX_OF.values())


def why_not(node: Node) -> str | None:
    """The reason why a node cannot be native; None if it can."""
    if node.primitive.effect.writes:
        return f"{node.primitive.name} writes to memory of the caller"
    for atom in (*node.inputs, *node.outputs):
        reason = _why_not_of(node, atom.type)
        if reason is not None:
            return f"{node.primitive.name} of {reason}"
    if is_view(node):
        return None
    if space_of(node) is not None:
        return why_not_fused(node)
    emitter = EMITTERS.find(node.primitive)
    return f"{node.primitive.name} has no native form" if emitter is None else emitter.supports(node)
