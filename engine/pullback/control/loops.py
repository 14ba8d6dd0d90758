"""`pb.fori_loop` and `pb.while_loop`: loops that carry something and collect nothing."""

from collections.abc import Callable
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np

from pullback import trees
from pullback.control import while_rule
from pullback.control.body import Body, keeps_form, record_body
from pullback.control.carry import Carry
from pullback.control.leaves import leaf_type
from pullback.control.scans import scan
from pullback.core.primitive import TracedValue
from pullback.errors import ControlFlowError
from pullback.ir.graph import Var
from pullback.numpy_api.concrete_tracer import ConcreteTracer


def fori_loop(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Run `carry = body(i, carry)` for i from lower up to, but not including, upper; give the last carry.

    >>> root = lambda a: pb.fori_loop(0, 10, lambda i, x: 0.5 * (x + a / x), 1.0)
    >>> round(float(root(4.0)), 6), round(pb.grad(root)(4.0), 6)
    (2.0, 0.25)
    """
    if keeps_form():
        if all(issubclass(type(bound), int | np.integer) for bound in (lower, upper)):
            return _counted(int(lower), int(upper), body, init)
        return while_loop(
            lambda state: state[0] < upper, lambda state: (state[0] + 1, body(state[0], state[1])), (lower, init)
        )[1]
    first, end = (_bound(value, name) for value, name in ((lower, "lower"), (upper, "upper")))
    carry = Carry("fori_loop", init)
    values = init
    for step in range(first, end):
        values = carry.rebuild(iter(carry.leaves_of(body(step, values), f"in step {step}")))
    return values


def _counted(lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """The loop as a scan that counts for itself, so that the body sees a Python number."""
    carry = Carry("fori_loop", init)

    def step(state: Any, _: None) -> tuple[Any, None]:
        position, values = state
        after = carry.leaves_of(body(position, values), "in the body")
        return (position + 1, carry.rebuild(iter(after))), None

    return scan(step, (lower, init), None, max(upper - lower, 0))[0][1]


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Run `carry = body(carry)` as long as `condition(carry)` is true; give the last carry.

    >>> root = lambda a: pb.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0)
    >>> round(float(root(4.0)), 6), round(pb.grad(root)(4.0), 6)
    (2.0, 0.25)
    """
    if keeps_form():
        carry = Carry("while_loop", init)
        test, step_once = _recorded(condition, body, carry)
        if any(isinstance(value, TracedValue) for value in (*test.consts, *step_once.consts, *trees.flatten(init)[0])):
            return _as_one_node(test, step_once, carry, init)
    carry = Carry("while_loop", init)
    values, step = init, 0
    while truth(condition(values), "while_loop: the condition"):
        values = carry.rebuild(iter(carry.leaves_of(body(values), f"in step {step}")))
        step += 1
    return values


def _recorded(condition: Callable[[Any], Any], body: Callable[[Any], Any], carry: Carry) -> tuple[Body, Body]:
    """Condition and body at the types of the carry."""

    def step(*values: Any) -> tuple[list[Any], None]:
        after = carry.leaves_of(body(carry.rebuild(iter(values))), "in the body")
        return carry.cast(after), None

    def test(*values: Any) -> tuple[list[Any], None]:
        goes_on = condition(carry.rebuild(iter(values)))
        require_number(goes_on, "while_loop: the condition")
        return [goes_on if leaf_type(goes_on, "the condition", "while_loop").dtype.kind == "b" else goes_on != 0], None

    # There may be no step: nothing is computed, and warns or raises, for one before the loop.
    recorded = carry.settled(lambda: record_body(step, carry.types, keeps_all=True))
    return record_body(test, carry.types), recorded


def _as_one_node(test: Body, step: Body, carry: Carry, init: Any) -> Any:
    """The loop as a primitive: condition and body take what either of them closes over."""
    of_test, of_step = len(test.consts), len(step.consts)
    condition = replace(
        test.graph,
        inputs=(
            *test.graph.inputs[:of_test],
            *(Var(-1, var.type) for var in step.graph.inputs[:of_step]),
            *test.graph.inputs[of_test:],
        ),
    )
    body = replace(step.graph, inputs=(*(Var(-1, var.type) for var in test.graph.inputs[:of_test]), *step.graph.inputs))
    results = while_rule.while_(
        *test.consts,
        *step.consts,
        *carry.cast(trees.flatten(init)[0]),
        condition=condition,
        body=body,
        consts=of_test + of_step,
    )
    return carry.rebuild(iter(results))


def truth(value: Any, what: str) -> bool:
    """One truth value."""
    require_number(value, what)
    return bool(value)


def require_number(value: Any, what: str) -> None:
    """Refuse an array where one truth value is needed."""
    if np.shape(value) != ():
        raise ControlFlowError(
            f"{what} is an array of shape {np.shape(value)}, not one truth value; "
            "reduce it (np.all, np.any), or choose by element with np.where"
        )


def integer(value: Any) -> int:
    """An integer, also a traced one; TypeError for anything else."""
    return int(value) if isinstance(value, ConcreteTracer) and value.dtype.kind in "iu" else index(value)


def _bound(value: Any, name: str) -> int:
    try:
        return integer(value)
    except TypeError:
        raise ControlFlowError(f"fori_loop: {name} is {value!r}; bounds are integers") from None
