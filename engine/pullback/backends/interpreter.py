"""The interpreter backend: a schedule as a straight line of NumPy calls.

The line is written out as the source of one Python function, a statement a step, and compiled once: no dispatch on
operations at run time, and a text that can be read (`plan.explain()`) and kept in golden files.

    def program(in0, in1):
        b0 = matmul(in0, in1)     # fresh: NumPy allocates
        tanh(b0, out=b0)          # in place
        n0 = sum(b0, axes=(0, 1), keepdims=False)  # a number
        return (n0, b0)

A program that keeps its memory gets it as its first argument. Numbers then are arrays of shape (), also those that are
written in the text: to a ufunc a Python number is a new array each time.

    def program(state, in0, in1):
        b0, b1 = state
        matmul(in0, in1, out=b0)
        tanh(b0, out=b0)
        write_sum(b1, b0, axes=(0, 1), keepdims=False)
        return (b1[()], b0)
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import Any

import numpy as np

from pullback.backends.poison import check_own, poison
from pullback.backends.state import State
from pullback.core.kinds import Scalar, promotable
from pullback.core.primitive import Effect, Primitive
from pullback.core.types import type_of
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Graph, Literal, Node, Var
from pullback.planning.arena import lay_out
from pullback.planning.schedule import WRITTEN, Placement, Schedule, Step, plan_memory
from pullback.rules import shapes
from pullback.rules.contractions import matmul
from pullback.rules.gathering import gather, scatter_add
from pullback.rules.indexing import index
from pullback.rules.inplace import restore
from pullback.rules.reductions import sum_
from pullback.rules.storing import STORES, add_at

Program = Callable[..., Any]

_WRITTEN_AS_TEXT = (bool, int, str, type(None))
_CONSTANT = re.compile(r"\bc\d+\b")
_KEPT = re.compile(r"\b[bs]\d+\b")
#: Names that the text has for its own, which functions of users may have as well.
_OWN = re.compile(
    r"(b|c|captured|in|n|p|s|v)\d+|state|program|overwritten|undo|copyto|poison|check_own|GuardFailure|bool|int|float|BaseException"
)
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "power": "**"}


def _numpy_answers(node: Node) -> bool:
    """True if an operator gives what NumPy's function does: Python's complex numbers take NumPy's floats for their own.

    The power of truth values by 2 is int8 by the operator, and int64 by the function, which a plan contains.
    """
    if node.primitive.name == "power" and node.inputs[0].type.dtype.kind == "b":
        return False
    is_complex = (isinstance(atom, Literal) and isinstance(atom.value, complex) for atom in node.inputs)
    return not node.outputs[0].type.weak and (bool(node.outputs[0].type.shape) or not any(is_complex))


class _Writer:
    """Names of values, and the namespace the text runs in."""

    def __init__(self, schedule: Schedule, *, keeps: bool, poisons: bool) -> None:
        self.schedule = schedule
        self.keeps = keeps
        self.poisons = poisons
        self.namespace: dict[str, Any] = {"array": np.array}
        self.constants: dict[str, str] = {}
        self.names: dict[Var, str] = {}
        self.lines: list[str] = []
        self.bodies_nbytes = 0
        self.bodies: list[str] = []  # the texts of the bodies of loops and branches
        self.numbers = 0
        self.slots: list[np.dtype[Any]] = []  # kept arrays of shape () that hold numbers for ufuncs
        self.slot_of: dict[tuple[Var, np.dtype[Any]], str] = {}
        # NumPy's ufuncs, sums and products give numbers, not arrays of shape (); so does an index that selects one element.
        self.numbers_made = {
            node.outputs[0]
            for node in schedule.graph.nodes
            if isinstance(getattr(node.primitive, "ufunc", None), np.ufunc) or node.primitive in (sum_, matmul, index)
        }
        self.made: set[int | None] = {*schedule.kept, *range(len(schedule.owned))}  # buffers that are there
        self.writes = any(step.node.primitive.effect.writes for step in schedule.steps)
        self.last_step = {
            buffer: position
            for position, step in enumerate(schedule.steps)
            for buffer in (*step.scratch, *(place.buffer for place in step.places))
            if buffer is not None and buffer >= len(schedule.owned)
        }
        self.living_in: dict[Atom, int] = {}
        self.views: defaultdict[int, list[str]] = defaultdict(list)  # names of what lives in a buffer beside its own

    def write(self) -> str:
        graph = self.schedule.graph
        parameters = []
        for position, var in enumerate(graph.inputs):
            self.names[var] = f"in{position}"
            parameters.append(f"in{position}")
        for position, capture in enumerate(graph.captures):
            self.names[capture.var] = f"captured{position}"
            parameters.append(f"captured{position}")
        for buffer, position in enumerate(self.schedule.owned):
            self.lines.append(f"b{buffer} = in{position}")
        self.poison(sorted(self.schedule.kept))
        guards = graph.guards_after()
        self.check(guards.get(-1, ()))
        for position, step in enumerate(self.schedule.steps):
            primitive, operands = step.node.primitive, [self.operand(atom) for atom in step.node.inputs]
            self.make_scratch(step)
            if primitive.effect is Effect.OVERWRITES:
                self.lines.append(f"overwritten.append(({operands[0]}, {operands[-1]}))")
            self.lines.append(self.statement(step))
            if primitive.effect is Effect.RESTORES:
                self.lines.append("overwritten.pop()")
            self.poison_after(step)
            self.let_go(position, step)
            self.check(guards.get(position, ()))
        outputs = [
            self.returned(atom, copied=copied, buffer=buffer)
            for atom, copied, buffer in zip(
                graph.outputs, self.schedule.copied_outputs, self.schedule.output_buffers, strict=True
            )
        ]
        returned = f"return ({', '.join(outputs)}{',' if len(outputs) == 1 else ''})"
        code = "\n".join(line for line in [*self.lines, returned] if not line.startswith("#"))
        unpacked = self.unpacked(code)
        used = set(_CONSTANT.findall(code))
        constants = ", ".join(f"{name} = {shown}" for name, shown in self.constants.items() if name in used)
        if constants:
            unpacked.insert(0, f"# {constants}")
        if self.keeps:
            parameters.insert(0, "state")
        head = "".join(f"{line}\n" for line in (f"def program({', '.join(parameters)}):", *_indented(unpacked, 1)))
        if not self.writes:
            return head + "".join(f"{line}\n" for line in _indented([*self.lines, returned], 1))
        self.namespace["undo"] = _undo
        body = "".join(f"{line}\n" for line in _indented([*self.lines, returned], 2))
        return f"{head}    overwritten = []\n    try:\n{body}    except BaseException:\n        undo(overwritten)\n        raise\n"

    def make_scratch(self, step: Step) -> None:
        """Allocate the scratch buffers of a step that do not exist yet, for programs that do not keep their memory."""
        for buffer in step.scratch:
            if buffer not in self.made:
                type_ = self.schedule.buffers[buffer]
                self.lines.append(
                    f"b{buffer} = {self.bound('empty', np.empty)}({type_.shape}, {self.parameter(type_.dtype)})"
                )
        self.made.update(step.scratch, (place.buffer for place in step.places))

    def let_go(self, position: int, step: Step) -> None:
        """Release the memory of dead values that NumPy allocates on each call.

        Without this every array of a program would live until it ends: a network's gradients twice as many bytes.
        """
        if self.keeps:
            return
        for result, place in zip(step.node.outputs, step.places, strict=True):
            source = step.node.inputs[0] if step.node.inputs else None
            if place.buffer is not None:
                self.living_in[result] = place.buffer
            elif place.placement is Placement.VIEW and source in self.living_in:
                self.living_in[result] = self.living_in[source]
                if result in self.names:  # a view that is not read has no name, and keeps nothing alive
                    self.views[self.living_in[source]].append(self.names[result])
        dead = [buffer for buffer in step.freed if self.last_step.get(buffer, position + 1) <= position]
        names = [name for buffer in dict.fromkeys(dead) for name in (f"b{buffer}", *self.views.pop(buffer, ()))]
        if names:
            self.lines.append(f"del {', '.join(names)}")

    def poison(self, buffers: Iterable[int]) -> None:
        """Write statements that poison dead buffers, if the program `poisons`."""
        if self.poisons:
            self.namespace["poison"] = poison
            self.lines.extend(f"poison(b{buffer})" for buffer in buffers)

    def poison_after(self, step: Step) -> None:
        """Poison the buffers that a step frees, and check that a fresh result is an array of its own."""
        if self.poisons and step.placement is Placement.FRESH:
            self.namespace["check_own"] = check_own
            operands = "".join(f"{self.operand(atom)}, " for atom in step.node.inputs)
            for place in step.places:
                self.lines.append(f"check_own({step.node.primitive.name!r}, b{place.buffer}, ({operands}))")
        self.poison(step.freed)

    def check(self, numbers: Iterable[int]) -> None:
        """Leave the program where a guarded value looks otherwise than it did while recording."""
        for number in numbers:
            guard = self.schedule.graph.guards[number]
            if isinstance(guard.atom, Literal):
                continue
            self.namespace["GuardFailure"] = GuardFailure
            value = f"{type(guard.seen).__name__}({self.operand(guard.atom)})"
            is_seen = (
                ("" if guard.seen else "not ") + value if isinstance(guard.seen, bool) else f"{value} == {guard.seen}"
            )
            undone = "undo(overwritten); " if self.writes else ""
            self.lines.append(f"if not ({is_seen}): {undone}return GuardFailure({number}, {value})")

    def statement(self, step: Step) -> str:
        node = step.node
        if node.primitive is restore:
            return self.call(node, [self.operand(atom) for atom in node.inputs])
        if node.bodies() and any(place.placement in WRITTEN for place in step.places):
            return self.loop_statement(step)
        if any(place.placement in WRITTEN for place in step.places):
            operands = self.array_operands(node)
            for result, place in zip(node.outputs, step.places, strict=True):
                self.names[result] = f"b{place.buffer}"
            return self.call_into(step, operands)
        views = step.placement is Placement.VIEW
        operands = self.array_operands(node) if views else [self.operand(atom) for atom in node.inputs]
        results = []
        for result, place in zip(node.outputs, step.places, strict=True):
            if place.placement is Placement.FRESH:
                name = f"b{place.buffer}"
            else:
                name = f"{'v' if views else 'n'}{self.numbers}"
                self.numbers += 1
            self.names[result] = name
            results.append(name)
        is_tuple_of_one = len(results) == 1 < node.primitive.results
        return f"{', '.join(results)}{',' if is_tuple_of_one else ''} = {self.call(node, operands)}"

    def returned(self, atom: Atom, *, copied: bool, buffer: int | None) -> str:
        """The returned form of an output; a number is never an array that other code may hold."""
        if copied and buffer is not None:
            self.namespace["copyto"] = np.copyto
            self.lines.append(f"copyto(b{buffer}, {self.operand(atom)})")
            return f"b{buffer}"
        if copied:
            return f"array({self.operand(atom)})"
        may_be_array = isinstance(atom, Var) and atom.type.shape == () and not atom.type.weak
        is_buffer = isinstance(atom, Var) and not self.may_be_number(atom)
        if may_be_array and (is_buffer or atom not in self.numbers_made):  # of a number [()] would make an array
            return f"{self.operand(atom)}[()]"
        return self.operand(atom)

    def array_operands(self, node: Node) -> list[str]:
        """Operands of a step that must not make arrays: where memory is kept, numbers are arrays that are there."""
        if not self.keeps:
            return [self.operand(atom) for atom in node.inputs]
        dtypes = _loop_dtypes(node)
        return [
            self.operand(atom) if dtype is None else self.number(atom, dtype)
            for atom, dtype in zip(node.inputs, dtypes, strict=True)
        ]

    def number(self, atom: Atom, dtype: np.dtype[Any]) -> str:
        """A number as an array of shape () and of the dtype that the ufunc would convert it to."""
        if isinstance(atom, Literal):
            try:
                value = np.array(atom.value, dtype)
            except OverflowError:  # a comparison with an integer that no value of the dtype reaches
                return self.constant(atom)
            value.flags.writeable = False
            return self.named_number(value)
        if not self.may_be_number(atom):
            return self.operand(atom)
        slot = self.slot_of.get((atom, dtype))
        if slot is None:
            slot = self.slot_of[atom, dtype] = f"s{len(self.slots)}"
            self.slots.append(dtype)
            self.lines.append(f"{slot}.fill({self.operand(atom)})")
        return slot

    def may_be_number(self, var: Var) -> bool:
        """True if the name of a value of shape () may stand for a number, and not for a kept array."""
        return not self.names[var].startswith("b")

    def operand(self, atom: Atom) -> str:
        if isinstance(atom, Var):
            return self.names[atom]
        return self.constant(atom)

    def constant(self, literal: Literal) -> str:
        value = literal.value
        if literal.type.weak and not isinstance(value, complex) and (isinstance(value, int) or np.isfinite(value)):
            return f"({value!r})" if repr(value).startswith("-") else repr(value)  # (-2) ** x is not -2 ** x
        return self.named_number(value)

    def named_number(self, value: Any) -> str:
        """A name for a number that is not written into the text; a comment shows its value."""
        name = f"c{len(self.namespace)}"
        self.namespace[name] = value
        self.constants[name] = f"{type_of(value).dtype.str[1:]}({value})"
        return name

    def bound(self, name: str, value: Any) -> str:
        """A name for a function in the text; a name stands for one function, also where users name two alike."""
        name = name if name.isidentifier() and not iskeyword(name) else "function"
        name = f"{name}_" if _OWN.fullmatch(name) else name
        while self.namespace.setdefault(name, value) != value:
            name += "_"
        return name

    def function_of(self, node: Node) -> str:
        """NumPy's function for an elementwise node or a product; Python's where the result is a Python number."""
        primitive = node.primitive
        if node.bodies():
            return self.with_bodies(node)
        if not isinstance(primitive, Scalar):
            return self.bound("matmul", np.matmul)
        if node.outputs[0].type.weak:
            return self.bound(f"python_{primitive.name}", primitive.evaluate)
        return self.bound(getattr(primitive.ufunc, "__name__", primitive.name), primitive.ufunc)

    def call(self, node: Node, operands: list[str]) -> str:
        """An expression that computes the result in memory of NumPy's choosing."""
        primitive, params = node.primitive, dict(node.params)
        if primitive.name in _OPERATORS and isinstance(primitive, Scalar) and _numpy_answers(node):
            return f"{operands[0]} {_OPERATORS[primitive.name]} {operands[1]}"
        if isinstance(primitive, Scalar) or primitive is matmul or node.bodies():
            return f"{self.function_of(node)}({', '.join(operands)})"
        if primitive is shapes.transpose:
            return f"{operands[0]}.transpose({params['axes']})"
        if primitive is shapes.reshape:
            return f"{self.bound('reshape', np.reshape)}({operands[0]}, {params['shape']})"
        if primitive is index:
            return f"{operands[0]}[{_key_text(params['key'])}]"
        return f"{self.bound(primitive.name, primitive.evaluate)}({', '.join(operands + self.keywords(node))})"

    def with_bodies(self, node: Node) -> str:
        """A name for a loop or branch, whose bodies are programs of their own."""
        name = f"{node.primitive.name}{len(self.bodies)}"
        programs = {title: self.body(body, f"{title} of {name}", node.primitive) for title, body in node.bodies()}
        return self.bound(name, node.primitive.compiled(programs, dict(node.params)))

    def body(self, graph: Graph, title: str, primitive: Primitive) -> Callable[[], Program]:
        """An expression that gives, at the start of a loop or branch, the program of a body.

        The steps of a loop share their memory; it is kept from call to call where the plan keeps its own.
        """
        keeps = self.keeps or primitive.repeats
        schedule = plan_memory(graph, kept=keeps)
        emitted = emit(schedule, keeps=keeps, poisons=self.poisons)
        self.bodies.append(f"# {title}\n{emitted.text}")
        if not keeps:
            return lambda: emitted.program
        if self.keeps:
            state = State(schedule.kept_types, lay_out(schedule), emitted.slots)
            self.bodies_nbytes += state.nbytes + emitted.bodies_nbytes
            kept = _in_frames(emitted.program, state)
            return lambda: kept
        arena = lay_out(schedule)
        return lambda: _in_frames(emitted.program, State(schedule.kept_types, arena, emitted.slots))

    def loop_statement(self, step: Step) -> str:
        """A loop or branch whose results go, but for Python numbers, into arrays that are there."""
        names, outs = [], []
        operands = [self.operand(atom) for atom in step.node.inputs]
        for result, place in zip(step.node.outputs, step.places, strict=True):
            if place.buffer is None:
                names.append(f"n{self.numbers}")
                self.numbers += 1
            else:
                names.append(f"b{place.buffer}")
            outs.append("None" if place.placement not in WRITTEN else names[-1])
            self.names[result] = names[-1]
        function = self.with_bodies(step.node)
        return f"{', '.join(names)}, = {function}({''.join(f'{name}, ' for name in operands)}out=({', '.join(outs)},))"

    def call_into(self, step: Step, operands: list[str]) -> str:
        """A statement that computes the results into buffers."""
        node, primitive = step.node, step.node.primitive
        outs = [f"b{place.buffer}" for place in step.places]
        if primitive in STORES and step.placement is Placement.IN_PLACE and len(operands) == 2:
            place = f"{outs[0]}[{_key_text(dict(node.params)['key'])}]"
            if primitive is add_at:
                return f"{place} += {self.added(node.inputs[1], operands[1])}"
            return f"{place} = {operands[1]}"
        ufunc = np.matmul if primitive is matmul else getattr(primitive, "ufunc", None)
        if isinstance(ufunc, np.ufunc):
            return f"{self.bound(ufunc.__name__, ufunc)}({', '.join(operands)}, out={outs[0]})"
        if self.keeps and primitive.in_state is not None:
            return self.call_in_state(primitive.name, primitive.in_state, operands, outs)
        function = self.bound(f"write_{primitive.name}", primitive.into)
        target = outs[0] if len(outs) == 1 else f"({', '.join(outs)})"
        keywords = self.keywords(node)
        if step.scratch:
            keywords.append(f"scratch=({''.join(f'b{buffer}, ' for buffer in step.scratch)})")
        return f"{function}({', '.join([target, *operands, *keywords])})"

    def call_in_state(
        self, name: str, in_state: Callable[[Mapping[int, int]], Program], operands: list[str], outs: list[str]
    ) -> str:
        """A call with the list of what is kept: to hand arrays over one by one, Python puts more than 30 through three lists."""
        places = {kept: place for place, kept in enumerate(self.kept_names())}
        arrays = [*operands, *outs]
        listed = {number: places[array] for number, array in enumerate(arrays) if array in places}
        self.lines.append(f"# {', '.join(outs)} of {', '.join(operands)}")
        others = [array for array in arrays if array not in places]
        return f"{self.bound(name, in_state(listed))}({', '.join([*(['state'] if listed else ()), *others])})"

    def unpacked(self, code: str) -> list[str]:
        """Statements that name what is kept; what native programs alone read has no name."""
        names = self.kept_names()
        read = set(_KEPT.findall(code))
        if not read.issuperset(names):
            return [f"{name} = state[{place}]" for place, name in enumerate(names) if name in read]
        return [f"{', '.join(names)}{',' if len(names) == 1 else ''} = state"] if names else []

    def kept_names(self) -> list[str]:
        """The names of the arrays that are kept, in the order of the state."""
        return [f"b{buffer}" for buffer in sorted(self.schedule.kept)] + [f"s{k}" for k in range(len(self.slots))]

    def added(self, atom: Atom, operand: str) -> str:
        """The operand to add at a key; a number if of shape (), since number plus array of shape () makes an array."""
        if atom.type.shape:
            return operand
        if isinstance(atom, Var) and not self.may_be_number(atom):
            return f"{operand}[()]"
        return self.operand(atom)

    def keywords(self, node: Node) -> list[str]:
        return [f"{name}={self.parameter(value)}" for name, value in node.params]

    def parameter(self, value: Any) -> str:
        if isinstance(value, Primitive):
            return self.bound(f"rule_{value.name}", value)
        if isinstance(value, np.dtype):
            return self.bound(f"dtype_{value.name}", value)
        if all(type(part) in _WRITTEN_AS_TEXT for part in (value if type(value) is tuple else (value,))):
            return repr(value)
        name = f"p{len(self.namespace)}"
        self.namespace[name] = value
        return name


@dataclass(frozen=True, slots=True)
class GuardFailure:
    """The result of a program whose guard sees something else: the guard's number, what it saw."""

    guard: int
    seen: bool | int


@dataclass(frozen=True, slots=True)
class EmittedProgram:
    """A program, its text, and what of its memory is kept: numbers for ufuncs after the buffers."""

    program: Program
    text: str
    slots: tuple[np.dtype[Any], ...]
    bodies_nbytes: int = 0
    """Bytes that the bodies of loops and branches keep."""


def emit(schedule: Schedule, *, keeps: bool = False, poisons: bool = False) -> EmittedProgram:
    """The program of a schedule; one that keeps its memory takes it as its first argument.

    One that `poisons` makes dead buffers useless (`pullback.backends.poison`).
    """
    writer = _Writer(schedule, keeps=keeps, poisons=poisons)
    text = writer.write()
    code = compile(text, "<pullback program>", "exec")
    exec(code, writer.namespace)  # noqa: S102 (our own text, made of names and numbers above)
    return EmittedProgram(
        writer.namespace["program"], "\n".join([*writer.bodies, text]), tuple(writer.slots), writer.bodies_nbytes
    )


def _in_frames(program: Program, state: State) -> Program:
    """A program that takes its memory from a state, run by run."""

    def run(*operands: Any) -> tuple[Any, ...]:
        frame = state.take()
        try:
            return program(frame.arrays, *operands)  # type: ignore[no-any-return]  # by construction
        finally:
            state.give_back(frame)

    return run


_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Ranks of the kinds of dtypes; a dtype cannot hold numbers of one of a higher rank."""


def _loop_dtypes(node: Node) -> list[np.dtype[Any] | None]:
    """The dtype in which a step reads each operand that may be a number; None for arrays."""
    result = node.outputs[0].type
    ufunc = getattr(node.primitive, "ufunc", None)
    types = [atom.type for atom in node.inputs]
    if node.primitive.keeps_dtypes:
        return [type_.dtype if type_.shape == () else None for type_ in types]
    loop: Sequence[np.dtype[Any]] = [
        result.dtype if type_.weak and _KINDS[type_.dtype.kind] <= _KINDS[result.dtype.kind] else type_.dtype
        for type_ in types
    ]
    if node.primitive in (gather, scatter_add):  # positions are no values: they stay whole numbers
        loop = [loop[0], *(type_.dtype for type_ in types[1:])]
    if node.primitive in STORES:
        loop = [*loop[:2], *(type_.dtype for type_ in types[2:])]
    if isinstance(ufunc, np.ufunc):
        loop = ufunc.resolve_dtypes((*map(promotable, types), *([None] * ufunc.nout)))
    return [dtype if type_.shape == () else None for dtype, type_ in zip(loop, types, strict=False)]


def _indented(lines: Iterable[str], levels: int) -> Iterator[str]:
    return (f"{'    ' * levels}{line}" for line in lines)


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
