"""`pb.scan`: a loop over the leading axis of arrays, with something carried from step to step."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback import trees
from pullback.control import scan_rule
from pullback.control.body import record_body
from pullback.control.carry import Carry, common_length, places, stacked
from pullback.control.checkpoints import checkpoint
from pullback.control.leaves import leaf_type
from pullback.core.primitive import innermost_recorder
from pullback.core.types import ArrayType
from pullback.errors import ControlFlowError, TracingError

StepFunction = Callable[[Any, Any], tuple[Any, Any]]


def scan(
    f: StepFunction,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """Run `carry, y = f(carry, x)` for every x along the leading axis of xs; give the last carry and all y, stacked.

    init, xs and y are arrays, numbers or nested tuples, lists, dicts and dataclasses of them. Without xs, `length` says
    how many steps there are. With `reverse` the steps go from the last x to the first, and every y keeps the place of its x.

    With `checkpoint_every=k` the derivative keeps the carry of every k-th step only and computes the k steps between
    two of them again in its backward pass: memory for T/k + k steps instead of T, least at k = sqrt(T), for one more
    run forward.

    >>> last, sums = pb.scan(lambda total, x: (total + x, total + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> print(last, sums)
    6.0 [1. 3. 6.]
    """
    leaves, steps = common_length(xs, length)
    _, rebuild_x = trees.flatten(xs)
    if checkpoint_every is not None:
        return _in_segments(f, init, leaves, rebuild_x, steps, _segment_length(checkpoint_every), reverse=reverse)
    if innermost_recorder() is not None:
        return _as_one_node(f, init, leaves, rebuild_x, steps, reverse=reverse)
    return _step_by_step(f, init, leaves, rebuild_x, steps, reverse=reverse)


def _in_segments(
    f: StepFunction, init: Any, leaves: list[Any], rebuild_x: trees.Rebuild, steps: int, size: int, *, reverse: bool
) -> tuple[Any, Any]:
    """A loop over checkpointed loops of equal length, and one over the steps that are left at the end."""
    full = steps // size
    end = full * size

    def segment(carry: Any, xs: Any, length: int) -> tuple[Any, Any]:
        result: tuple[Any, Any] = checkpoint(partial(scan, f, reverse=reverse))(carry, xs, length)
        return result

    def segments(carry: Any) -> tuple[Any, Any]:
        cut = [np.reshape(leaf if end == steps else leaf[:end], (full, size, *np.shape(leaf)[1:])) for leaf in leaves]
        carry, ys = scan(lambda carry, xs: segment(carry, xs, size), carry, rebuild_x(iter(cut)), full, reverse=reverse)
        y_leaves, rebuild_y = trees.flatten(ys)
        return carry, rebuild_y(iter([np.reshape(leaf, (end, *np.shape(leaf)[2:])) for leaf in y_leaves]))

    def remainder(carry: Any) -> tuple[Any, Any]:
        return segment(carry, rebuild_x(iter([leaf[end:] for leaf in leaves])), steps - end)

    if end in (0, steps):
        return (segments if full else remainder)(init)
    carry, first = (remainder if reverse else segments)(init)
    carry, second = (segments if reverse else remainder)(carry)
    parts = [trees.flatten(part) for part in ((second, first) if reverse else (first, second))]
    joined = [np.concatenate(pair) for pair in zip(parts[0][0], parts[1][0], strict=True)]
    return carry, parts[0][1](iter(joined))


def _segment_length(size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ControlFlowError(f"scan: checkpoint_every is {size!r}; it is a number of steps, an integer of at least 1")
    return int(size)


def _as_one_node(
    f: StepFunction, init: Any, leaves: list[Any], rebuild_x: trees.Rebuild, steps: int, *, reverse: bool
) -> tuple[Any, Any]:
    """The loop as a primitive whose body is recorded once."""
    carry = Carry("scan", init)

    def step(*values: Any) -> tuple[list[Any], trees.Rebuild]:
        rest = iter(values)
        held = carry.rebuild(rest)
        after, y = carry_and_result(f(held, rebuild_x(rest)))
        y_leaves, rebuild_y = trees.flatten(y)
        return [*carry.cast(carry.leaves_of(after, "in the body")), *y_leaves], rebuild_y

    x_types = [element_type(leaf, "xs") for leaf in leaves]
    # Values before the loop have no derivative either where there are no steps.
    body = carry.settled(lambda: record_body(step, [*carry.types, *x_types], keeps_all=not steps))
    results = scan_rule.scan(
        *body.consts,
        *carry.cast(trees.flatten(init)[0]),
        *leaves,
        body=body.graph,
        consts=len(body.consts),
        carries=len(carry.types),
        length=steps,
        reverse=reverse,
    )
    rest = iter(results)
    last = carry.rebuild(rest)
    return last, body.rest(rest)


def _step_by_step(
    f: StepFunction, init: Any, leaves: list[Any], rebuild_x: trees.Rebuild, steps: int, *, reverse: bool
) -> tuple[Any, Any]:
    """The loop as Python's own."""
    carry = Carry("scan", init)
    if not steps:
        return init, _no_results(f, carry, leaves, rebuild_x)
    values = init
    results: list[list[Any]] = []
    structure, rebuild_y, names = None, None, []
    for step in reversed(range(steps)) if reverse else range(steps):
        values, y = carry_and_result(f(values, rebuild_x(iter([leaf[step] for leaf in leaves]))))
        values = carry.rebuild(iter(carry.leaves_of(values, f"in step {step}")))
        if rebuild_y is None:
            structure, names = trees.structure(y), places(y, "y")
        elif trees.structure(y) != structure:
            raise ControlFlowError(f"scan: y has another structure in step {step} than in the steps before")
        y_leaves, rebuild_y = trees.flatten(y)
        results.append(y_leaves)
    if reverse:
        results.reverse()
    assert rebuild_y is not None  # noqa: S101 - there was a step
    return values, rebuild_y(iter(stacked(results, "scan", names)))


def carry_and_result(returned: Any) -> tuple[Any, Any]:
    """The result of a step, if it is a pair."""
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ControlFlowError(
            f"scan: a step returns (carry, y), got {type(returned).__name__}; return (carry, None) where there is no y"
        )
    return returned


def element_type(leaf: Any, name: str) -> ArrayType:
    """Type of one entry along the leading axis."""
    type_ = leaf_type(leaf, name, "scan")
    return ArrayType(type_.shape[1:], type_.dtype)


def _no_results(f: StepFunction, carry: Carry, leaves: list[Any], rebuild_x: trees.Rebuild) -> Any:
    """Results of no step at all: no rows, of the type that a step would give."""

    def step(*values: Any) -> tuple[list[Any], trees.Rebuild]:
        rest = iter(values)
        held = carry.rebuild(rest)
        after, y = carry_and_result(f(held, rebuild_x(rest)))
        carry.leaves_of(after, "in the body")
        return trees.flatten(y)

    types = [*carry.types, *(element_type(leaf, "xs") for leaf in leaves)]
    try:
        body = record_body(step, types)
    except TracingError as error:
        raise ControlFlowError(f"scan: without steps the type of y is unknown, because {error}") from error
    empty = [np.zeros((0, *atom.type.shape), atom.type.dtype) for atom in body.graph.outputs]
    result: Any = body.rest(iter(empty))
    return result
