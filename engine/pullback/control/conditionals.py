"""`pb.cond` and `pb.switch`: one of several functions, chosen by a value."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback import trees
from pullback.control import switch_rule
from pullback.control.body import Body, keeps_form, record_body
from pullback.control.leaves import as_type, in_words, joined, leaf_type
from pullback.control.loops import integer, require_number, truth
from pullback.core.types import ArrayType
from pullback.errors import ControlFlowError
from pullback.ir.graph import Graph, Var
from pullback.numpy_api.tracer import Tracer

Branch = Callable[..., Any]


def cond(pred: Any, true_fun: Branch, false_fun: Branch, *operands: Any) -> Any:
    """`true_fun(*operands)` if pred is true, else `false_fun(*operands)`; the other is not run.

    >>> pb.grad(lambda x: pb.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x))(4.0)
    0.25
    """
    require_number(pred, "cond: pred")
    if isinstance(pred, Tracer) and keeps_form():
        taken = pred if pred.dtype.kind == "b" else pred != 0
        return _as_one_node("cond", taken, {"false_fun": false_fun, "true_fun": true_fun}, operands)
    return (true_fun if truth(pred, "cond: pred") else false_fun)(*operands)


def switch(index: Any, branches: Sequence[Branch], *operands: Any) -> Any:
    """`branches[index](*operands)`; the others are not run. An index out of range is an error, negative ones too.

    >>> pb.grad(lambda x: pb.switch(1, [np.sin, np.square], x))(3.0)
    6.0
    """
    if isinstance(index, Tracer) and keeps_form() and index.dtype.kind in "iu" and not index.shape:
        named = {f"branch {number}": branch for number, branch in enumerate(branches)}
        return _as_one_node("switch", index, named, operands)
    return branches[checked_index(index, len(branches))](*operands)


def checked_index(index: Any, count: int) -> int:
    """The index as an integer, if there is such a branch."""
    if np.shape(index) != ():
        raise ControlFlowError(f"switch: index is an array of shape {np.shape(index)}, not one integer")
    try:
        position = integer(index)
    except TypeError:
        raise ControlFlowError(f"switch: index is a {type(index).__name__}; it is the number of a branch") from None
    if not 0 <= position < count:
        raise ControlFlowError(f"switch: index is {position}, there are {count} branches, numbered from 0")
    return position


def _as_one_node(name: str, index: Any, branches: dict[str, Branch], operands: tuple[Any, ...]) -> Any:
    """The branches as graphs, of one primitive, whose first operand selects one."""
    leaves, rebuild = trees.flatten(operands)
    types = [leaf_type(leaf, "an operand", name) for leaf in leaves]
    bodies = [_recorded(branch, rebuild, types, None) for branch in branches.values()]
    results = [atom.type for atom in bodies[0].graph.outputs]
    structure, _ = bodies[0].rest
    first = next(iter(branches))
    for other, body in zip(branches, bodies, strict=True):
        if body.rest[0] != structure:
            raise ControlFlowError(
                f"{name}: {first} and {other} return different structures; both must return the same"
            )
        for number, atom in enumerate(body.graph.outputs):
            type_ = joined(results[number], atom.type)
            if type_ is None:
                raise ControlFlowError(
                    f"{name}: {first} returns {in_words(results[number])}, {other} returns {in_words(atom.type)}; "
                    "all branches must return the same types"
                )
            results[number] = type_
    bodies = [_recorded(branch, rebuild, types, results) for branch in branches.values()]
    values = switch_rule.switch(
        index, *(value for body in bodies for value in body.consts), *leaves, branches=_with_all_consts(bodies)
    )
    _, rebuild_result = bodies[0].rest
    return rebuild_result(iter(values))


def _recorded(
    branch: Branch, rebuild: trees.Rebuild, types: Sequence[ArrayType], results: Sequence[ArrayType] | None
) -> Body:
    def values_of(*values: Any) -> tuple[list[Any], Any]:
        result = branch(*rebuild(iter(values)))
        leaves, rebuild_result = trees.flatten(result)
        if results is not None:
            leaves = [as_type(leaf, type_) for leaf, type_ in zip(leaves, results, strict=True)]
        return leaves, (trees.structure(result), rebuild_result)

    return record_body(values_of, types, keeps_all=True)


def _with_all_consts(bodies: Sequence[Body]) -> tuple[Graph, ...]:
    """The branches with one list of operands: what any of them closes over, then the operands."""
    consts = [body.graph.inputs[: len(body.consts)] for body in bodies]
    return tuple(
        replace(
            body.graph,
            inputs=(
                *(var if own is other else Var(-1, var.type) for other in consts for var in other),
                *body.graph.inputs[len(body.consts) :],
            ),
        )
        for own, body in zip(consts, bodies, strict=True)
    )
