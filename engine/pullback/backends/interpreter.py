"""The interpreter backend: a schedule as a straight line of NumPy calls.

The line is written out as the source of one Python function, a statement a step, and compiled once: no dispatch on
operations at run time, and a text that can be read (`plan.explain()`) and kept in golden files.

    def program(in0, in1):
        b0 = matmul(in0, in1)     # fresh: NumPy allocates
        tanh(b0, out=b0)          # in place
        n0 = sum(b0, axes=(0, 1), keepdims=False)  # a number
        return (n0, b0)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.ir.graph import Atom, Literal, Node, Var
from pullback.kinds import Scalar
from pullback.planning.schedule import Placement, Schedule, Step
from pullback.primitive import Effect, Primitive
from pullback.rules import shapes
from pullback.rules.contractions import matmul
from pullback.rules.indexing import add_at, index
from pullback.rules.inplace import restore
from pullback.rules.reductions import sum_

Program = Callable[..., tuple[Any, ...]]

_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "power": "**"}


class _Writer:
    """Names of values, and the namespace the text runs in."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.namespace: dict[str, Any] = {"array": np.array}
        self.names: dict[Var, str] = {}
        self.lines: list[str] = []
        self.numbers = 0
        # NumPy's ufuncs, sums and products give numbers, not arrays of shape (); so does an index that selects one element.
        self.numbers_made = {
            node.outputs[0]
            for node in schedule.graph.nodes
            if isinstance(getattr(node.primitive, "ufunc", None), np.ufunc) or node.primitive in (sum_, matmul, index)
        }
        self.writes = any(step.node.primitive.effect.writes for step in schedule.steps)

    def write(self) -> str:
        graph = self.schedule.graph
        parameters = []
        for position, var in enumerate(graph.inputs):
            self.names[var] = f"in{position}"
            parameters.append(f"in{position}")
        for position, capture in enumerate(graph.captures):
            self.names[capture.var] = f"captured{position}"
            parameters.append(f"captured{position}")
        for step in self.schedule.steps:
            primitive, operands = step.node.primitive, [self.operand(atom) for atom in step.node.inputs]
            if primitive.effect is Effect.OVERWRITES:
                self.lines.append(f"overwritten.append(({operands[0]}, {operands[-1]}))")
            self.lines.append(self.statement(step))
            if primitive.effect is Effect.RESTORES:
                self.lines.append("overwritten.pop()")
        outputs = [
            f"array({self.operand(atom)})" if copied else self.result(atom)
            for atom, copied in zip(graph.outputs, self.schedule.copied_outputs, strict=True)
        ]
        returned = f"({', '.join(outputs)}{',' if len(outputs) == 1 else ''})"
        head = f"def program({', '.join(parameters)}):\n"
        if not self.writes:
            return head + "".join(f"    {line}\n" for line in [*self.lines, f"return {returned}"])
        self.namespace["undo"] = _undo
        body = "".join(f"        {line}\n" for line in [*self.lines, f"return {returned}"])
        return f"{head}    overwritten = []\n    try:\n{body}    except BaseException:\n        undo(overwritten)\n        raise\n"

    def statement(self, step: Step) -> str:
        node = step.node
        operands = [self.operand(atom) for atom in node.inputs]
        match step.placement:
            case Placement.FRESH:
                self.names[node.outputs[0]] = f"b{step.buffer}"
                return f"b{step.buffer} = {self.call(node, operands)}"
            case Placement.REUSED | Placement.IN_PLACE:
                self.names[node.outputs[0]] = f"b{step.buffer}"
                return self.call_into(node, f"b{step.buffer}", operands)
            case _ if node.primitive is restore:
                return self.call(node, operands)
            case _:
                name = f"{'v' if step.placement is Placement.VIEW else 'n'}{self.numbers}"
                self.numbers += 1
                self.names[node.outputs[0]] = name
                return f"{name} = {self.call(node, operands)}"

    def result(self, atom: Atom) -> str:
        """What is returned for an output; a number is never an array that somebody else may hold."""
        may_be_array = (
            isinstance(atom, Var) and atom.type.shape == () and not atom.type.weak and atom not in self.numbers_made
        )
        return f"{self.operand(atom)}[()]" if may_be_array else self.operand(atom)

    def operand(self, atom: Atom) -> str:
        if isinstance(atom, Var):
            return self.names[atom]
        return self.constant(atom)

    def constant(self, literal: Literal) -> str:
        value = literal.value
        if literal.type.weak and (isinstance(value, int) or np.isfinite(value)):
            return f"({value!r})" if repr(value).startswith("-") else repr(value)  # (-2) ** x is not -2 ** x
        name = f"c{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def bound(self, name: str, value: Any) -> str:
        """A name for a function in the text; a name stands for one function."""
        assert self.namespace.setdefault(name, value) == value, name  # noqa: S101 - an invariant of ours
        return name

    def function_of(self, node: Node) -> str:
        """NumPy's function for an elementwise node or a product; Python's where the result is a Python number."""
        primitive = node.primitive
        if not isinstance(primitive, Scalar):
            return self.bound("matmul", np.matmul)
        if node.outputs[0].type.weak:
            return self.bound(f"python_{primitive.name}", primitive.evaluate)
        return self.bound(getattr(primitive.ufunc, "__name__", primitive.name), primitive.ufunc)

    def call(self, node: Node, operands: list[str]) -> str:
        """An expression that computes the result in memory of NumPy's choosing."""
        primitive, params = node.primitive, dict(node.params)
        first = operands[0]
        if primitive.name in _OPERATORS and isinstance(primitive, Scalar) and not node.outputs[0].type.weak:
            return f"{operands[0]} {_OPERATORS[primitive.name]} {operands[1]}"
        if isinstance(primitive, Scalar) or primitive is matmul:
            return f"{self.function_of(node)}({', '.join(operands)})"
        if primitive is shapes.transpose:
            return f"{first}.transpose({params['axes']})"
        if primitive is shapes.reshape:
            return f"{self.bound('reshape', np.reshape)}({first}, {params['shape']})"
        if primitive is index:
            return f"{first}[{_key_text(params['key'])}]"
        return f"{self.bound(primitive.name, primitive.evaluate)}({', '.join(operands + self.keywords(node))})"

    def call_into(self, node: Node, out: str, operands: list[str]) -> str:
        """A statement that computes the result into a buffer."""
        primitive = node.primitive
        if primitive is add_at:
            return f"{out}[{_key_text(dict(node.params)['key'])}] += {operands[1]}"
        ufunc = np.matmul if primitive is matmul else getattr(primitive, "ufunc", None)
        if isinstance(ufunc, np.ufunc):
            return f"{self.bound(ufunc.__name__, ufunc)}({', '.join(operands)}, out={out})"
        function = self.bound(f"write_{primitive.name}", primitive.into)
        return f"{function}({', '.join([out, *operands, *self.keywords(node)])})"

    def keywords(self, node: Node) -> list[str]:
        return [f"{name}={self.parameter(value)}" for name, value in node.params]

    def parameter(self, value: Any) -> str:
        if isinstance(value, Primitive):
            return self.bound(f"rule_{value.name}", value)
        if isinstance(value, np.dtype):
            return self.bound(f"dtype_{value.str[1:]}", value)
        return repr(value)


def emit(schedule: Schedule) -> tuple[Program, str]:
    """The program of a schedule, and its text."""
    writer = _Writer(schedule)
    text = writer.write()
    code = compile(text, "<pullback program>", "exec")
    exec(code, writer.namespace)  # noqa: S102 (our own text, made of names and numbers above)
    program: Program = writer.namespace["program"]
    return program, text


def _undo(overwritten: list[tuple[Any, Any]]) -> None:
    """Put old contents back, latest first, where a program that overwrote arrays did not come to its end."""
    for target, saved in reversed(overwritten):
        np.copyto(target, saved)


def _key_text(key: Any) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    text = ", ".join(_part_text(part) for part in parts)
    return f"{text}," if isinstance(key, tuple) and len(parts) == 1 else text or "()"


def _part_text(part: Any) -> str:
    if isinstance(part, slice):
        ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
        return ":".join(ends) + ("" if part.step is None else f":{part.step}")
    return "..." if part is Ellipsis else repr(part)
