"""Complex values as pairs of real ones, for programs that become machine code.

    s = rfft x                      r, i = rfft_parts x
    t = mul s k                ->   t_re = r * k_re - i * k_im;  t_im = r * k_im + i * k_re
    y = irfft t                     y = irfft_parts t_re t_im

A value that is complex in the graph is two values from here on, inside loops and branches too, so that everything that
native programs do with real numbers they do with its parts: nests, views, joins, stores, loops. Transforms take and give parts.
What the graph is given lies as NumPy has it: its parts are views (`real`, `imag`). What it returns, and what a rule without a form on
this page reads (`eig` of a complex matrix), is put together (`complex_of`).

Every form computes what NumPy computes, in its order, also for infinities and NaN: a real number beside a complex one has an
imaginary part of 0.0, which is multiplied and added like any other. Products of matrices alone leave it out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.control.checkpoint_rule import checkpointed
from pullback.control.scan_rule import Layout, scan
from pullback.control.switch_rule import switch
from pullback.control.while_rule import while_
from pullback.core.primitive import Primitive, TracedValue, tracing
from pullback.core.types import ArrayType, dtype_of, type_of
from pullback.dataclass import dataclass
from pullback.ir.graph import Atom, Capture, Graph, Literal, Node, with_guards_of, with_guards_returned
from pullback.rules import (
    complex_numbers,
    diagonals,
    elementwise,
    fourier,
    gathering,
    joining,
    logic,
    reductions,
    shapes,
)
from pullback.rules.complex_parts import complex_of, fft_parts, irfft_parts, rfft_parts
from pullback.rules.constants import stop
from pullback.rules.contractions import matmul
from pullback.rules.cumulative import cumsum
from pullback.rules.exponential import exp
from pullback.rules.indexing import index, scatter
from pullback.rules.inplace import copy
from pullback.rules.storing import STORES
from pullback.rules.trigonometric import cos, hypot, sin
from pullback.traces.recorder import GraphTracer, Recorder

#: Bytes of the largest complex number that native programs take apart.
_LARGEST = 16


@dataclass(frozen=True, slots=True)
class Pair:
    """The parts of a complex value: traced values, or Python's numbers for parts that are one number everywhere."""

    re: Any
    im: Any
    is_imaginary: bool = False
    """True if the real part is zero wherever the imaginary part is finite, and NaN elsewhere."""
    whole: Any = None
    """The complex value itself, where it is there."""


class _CannotSplitError(Exception):
    """Raised for a graph that is left as it is, or a loop: it returns or carries complex Python numbers, or has others than it can split."""


def split_complex(graph: Graph) -> Graph:
    """Write a graph with the parts of its complex values; what it is given and returns stays complex."""
    if not has_complex(graph):
        return graph
    whole = with_guards_returned(graph)
    try:
        with tracing(Recorder()) as recorder:
            walk = _Walk(recorder)
            inputs = tuple(recorder.new_var(var.type) for var in whole.inputs)
            captures = tuple(Capture(recorder.new_var(one.var.type), one.value) for one in whole.captures)
            olds = (*whole.inputs, *(capture.var for capture in whole.captures))
            news = (*inputs, *(capture.var for capture in captures))
            for old, new in zip(olds, news, strict=True):
                walk.values[old] = walk.given(GraphTracer(recorder, new))
            walk.run(whole.nodes)
            outputs = tuple(walk.returned(atom) for atom in whole.outputs)
    except _CannotSplitError:
        return graph
    split = Graph(inputs, captures + tuple(recorder.captures), tuple(recorder.nodes), outputs)
    return with_guards_of(split, graph)


def split_body(graph: Graph) -> Graph:
    """A graph with two inputs and outputs for each that is complex."""
    with tracing(Recorder()) as recorder:
        walk = _Walk(recorder)
        inputs: list[Any] = []
        for var in graph.inputs:
            parts = [recorder.new_var(type_) for type_ in _types_of_parts(var.type)]
            inputs += parts
            tracers = [GraphTracer(recorder, part) for part in parts]
            walk.values[var] = Pair(tracers[0], tracers[1]) if len(tracers) > 1 else tracers[0]
        walk.run(graph.nodes)
        outputs = [recorder.atom_of(part) for atom in graph.outputs for part in walk.parts(walk.read(atom), atom.type)]
    split = Graph(tuple(inputs), (), tuple(recorder.nodes), tuple(outputs))
    if recorder.captures or has_complex(split):
        raise _CannotSplitError
    return split


def inside_loops(graph: Graph) -> Graph:
    """A graph as it would be written inside a loop; the graph itself where it would not."""
    try:
        return split_body(graph) if has_complex(graph) else graph
    except _CannotSplitError:
        return graph


def has_complex(graph: Graph) -> bool:
    """True if a value of a graph is complex, inside loops and branches too."""
    return any(map(_is_complex, (*graph.inputs, *graph.outputs))) or any(map(_concerns, graph.nodes))


def _concerns(node: Node) -> bool:
    return any(map(_is_complex, (*node.inputs, *node.outputs))) or any(has_complex(body) for _, body in node.bodies())


def _is_complex(atom: Atom) -> bool:
    return atom.type.dtype.kind == "c"


def _part_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind == "c" and dtype.itemsize > _LARGEST:
        raise _CannotSplitError
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _types_of_parts(type_: ArrayType) -> list[ArrayType]:
    if type_.dtype.kind != "c":
        return [type_]
    if type_.weak:
        raise _CannotSplitError
    return [ArrayType(type_.shape, _part_dtype(type_.dtype))] * 2


class _Walk:
    """The values of a graph in the graph that is recorded, and its nodes one by one."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.values: dict[Any, Any] = {}

    def run(self, nodes: Sequence[Node]) -> None:
        """Write nodes."""
        for node in nodes:
            self.recorder.source = node.source
            operands = [self.read(atom) for atom in node.inputs]
            results = self._applied(node, operands) if _concerns(node) else self._plain(node, operands)
            self.values.update(zip(node.outputs, results, strict=True))

    def read(self, atom: Atom) -> Any:
        """The value of an atom; a complex number is a pair of numbers."""
        if not isinstance(atom, Literal):
            return self.values[atom]
        return _pair_of_number(atom.value) if _is_complex(atom) else atom.value

    def given(self, value: Any) -> Any:
        """A value that is in memory, with its parts if it is complex."""
        if _part_dtype(own := dtype_of_operand(value)) == own:
            return value
        return Pair(complex_numbers.real(value), complex_numbers.imag(value), whole=value)

    def returned(self, atom: Atom) -> Atom:
        """The value that the graph returns for one of its outputs."""
        if isinstance(atom, Literal) or not _is_complex(atom):
            return atom if isinstance(atom, Literal) else self.recorder.atom_of(self.values[atom])
        pair = self.values[atom]
        if pair.whole is not None and not any(pair.whole.variable in node.outputs for node in self.recorder.nodes):
            pair = Pair(pair.re, pair.im)  # an operand of the graph: what is returned is a copy
        return self.recorder.atom_of(self.joined(pair, atom.type))

    def joined(self, value: Any, type_: ArrayType) -> Any:
        """The complex value of a pair."""
        if not isinstance(value, Pair):
            return value
        if value.whole is not None:
            return value.whole
        if type_.weak:
            raise _CannotSplitError
        return complex_of(*self.parts(value, type_))

    def parts(self, value: Any, type_: ArrayType) -> list[Any]:
        """The parts of a value as arrays of their types; a real value as it is."""
        types = _types_of_parts(type_)
        if len(types) == 1:
            return [value]
        pair = _as_pair(value)
        return [self.exact(pair.re, types[0]), self.exact(pair.im, types[1])]

    def exact(self, part: Any, type_: ArrayType) -> Any:
        """A part in exactly this type."""
        if not isinstance(part, TracedValue):
            number = type_.dtype.type(part)
            return self._apply(shapes.broadcast_to, number, shape=type_.shape) if type_.shape else number
        own = self.recorder.atom_of(part).type
        if own.dtype != type_.dtype or own.weak:
            part = shapes.astype(part, dtype=type_.dtype)
        return part if own.shape == type_.shape else shapes.broadcast_to(part, shape=type_.shape)

    def _apply(self, primitive: Primitive, *operands: Any, **params: Any) -> Any:
        return self.recorder.apply(primitive, operands, params)

    def _plain(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        result = self._apply(node.primitive, *operands, **dict(node.params))
        return result if node.primitive.results > 1 else (result,)

    def _applied(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        if node.primitive in _WITH_BODIES:
            return self._with_bodies(node, operands)
        form = _FORMS.get(node.primitive)
        position = len(self.recorder.nodes)
        result = None if form is None else form(self, node, operands)
        if result is not None:
            return (self._typed(result, node.outputs[0].type),)
        del self.recorder.nodes[position:]
        return self._left(node, operands)

    def _left(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        """A node as it is, of complex values that are put together for it."""
        wholes = [
            atom.value if isinstance(atom, Literal) else self.joined(value, atom.type)
            for value, atom in zip(operands, node.inputs, strict=True)
        ]
        return [self.given(value) for value in self._plain(node, wholes)]

    def _typed(self, result: Any, type_: ArrayType) -> Any:
        """A result whose parts have the types they should: the real part an array of its shape, the other one or a number."""
        if not isinstance(result, Pair):
            return result if type_.weak else self.exact(result, type_)
        if type_.weak:
            return result
        part = ArrayType(type_.shape, _part_dtype(type_.dtype))
        im = self.exact(result.im, part) if isinstance(result.im, TracedValue) else result.im
        return Pair(self.exact(result.re, part), im, result.is_imaginary, result.whole)

    def _with_bodies(self, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
        """A loop or a branch over parts; as it is where a complex value is left in a step, which NumPy would compute from parts."""
        try:
            params = _WITH_BODIES[node.primitive](dict(node.params))
        except _CannotSplitError:
            return self._left(node, operands)
        flat = [
            part for value, atom in zip(operands, node.inputs, strict=True) for part in self.parts(value, atom.type)
        ]
        results = iter(self.recorder.apply(node.primitive, flat, params))
        return [Pair(next(results), next(results)) if _is_complex(var) else next(results) for var in node.outputs]


def dtype_of_operand(value: Any) -> np.dtype[Any]:
    """The dtype of a traced value, weak ones too, or of a number."""
    return value.variable.type.dtype if isinstance(value, GraphTracer) else dtype_of(value)


def _pair_of_number(value: Any) -> Pair:
    kind: Any = _part_dtype(type_of(value).dtype).type if isinstance(value, np.generic) else float
    return Pair(kind(value.real), kind(value.imag), is_imaginary=bool(value.real == 0))


def _as_pair(value: Any) -> Pair:
    return value if isinstance(value, Pair) else Pair(value, 0.0)


# --- loops and branches --------------------------------------------------------------------------------------------------
def _count(atoms: Sequence[Atom]) -> int:
    return sum(1 + _is_complex(atom) for atom in atoms)


def _split_scan(params: dict[str, Any]) -> dict[str, Any]:
    layout = Layout(params)
    inputs = layout.body.inputs
    counts = {
        "consts": _count([inputs[number] for number in layout.const_inputs]),
        "carries": _count([inputs[number] for number in layout.carry_inputs]),
    }
    return {**params, **counts, "body": split_body(layout.body)}


def _split_while(params: dict[str, Any]) -> dict[str, Any]:
    consts = _count(params["body"].inputs[: params["consts"]])
    bodies = {name: split_body(params[name]) for name in ("condition", "body")}
    return {**params, **bodies, "consts": consts}


def _split_switch(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "branches": tuple(map(split_body, params["branches"]))}


def _split_checkpointed(params: dict[str, Any]) -> dict[str, Any]:
    return {"body": split_body(params["body"])}


_WITH_BODIES: Mapping[Primitive, Callable[[dict[str, Any]], dict[str, Any]]] = {
    scan: _split_scan,
    while_: _split_while,
    switch: _split_switch,
    checkpointed: _split_checkpointed,
}


# --- arithmetic ------------------------------------------------------------------------------------------------------------
Form: TypeAlias = Callable[[_Walk, Node, Sequence[Any]], Any]
"""The result of a node from its operands; None where it has to be left to NumPy."""


def _in_one_dtype(node: Node, operands: Sequence[Any]) -> list[Pair]:
    """The operands as pairs of one dtype: that of the result, or of what is compared."""
    strong = [atom.type.dtype for atom in (*node.inputs, *node.outputs) if not atom.type.weak]
    dtype = _part_dtype(np.result_type(*strong)) if strong else None

    def converted(part: Any) -> Any:
        if not isinstance(part, GraphTracer) or part.variable.type.weak or part.variable.type.dtype == dtype:
            return part
        return shapes.astype(part, dtype=dtype)

    pairs = map(_as_pair, operands)
    return [Pair(converted(pair.re), converted(pair.im), pair.is_imaginary) for pair in pairs]


def _elementwise(form: Callable[..., Any]) -> Form:
    return lambda _, node, operands: form(*_in_one_dtype(node, operands))


def _is_real(a: Pair) -> bool:
    return not isinstance(a.im, TracedValue) and a.im == 0


def _add(a: Pair, b: Pair) -> Pair:
    return Pair(a.re + b.re, a.im + b.im, a.is_imaginary and b.is_imaginary)


def _sub(a: Pair, b: Pair) -> Pair:
    return Pair(a.re - b.re, a.im - b.im, a.is_imaginary and b.is_imaginary)


def _mul(a: Pair, b: Pair) -> Pair:
    is_imaginary = (a.is_imaginary and _is_real(b)) or (b.is_imaginary and _is_real(a))
    return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re, is_imaginary)


def _div(a: Pair, b: Pair) -> Pair | None:
    """Divide by Smith's algorithm, as NumPy does."""
    if _is_real(b):
        return _div_by_real(a, b.re)
    if not isinstance(b.re, TracedValue) and not isinstance(b.im, TracedValue):
        return _div_by_number(a, b)
    size_re, size_im = elementwise.absolute(b.re), elementwise.absolute(b.im)
    steep = size_re >= size_im
    large, small = elementwise.where(steep, b.re, b.im), elementwise.where(steep, b.im, b.re)
    ratio = small / large
    scale = 1.0 / (large + small * ratio)
    is_zero = elementwise.absolute(large) == 0
    re = elementwise.where(steep, a.re + a.im * ratio, a.re * ratio + a.im) * scale
    im = elementwise.where(steep, a.im - a.re * ratio, a.im * ratio - a.re) * scale
    is_zero = logic.logical_and(is_zero, steep)
    return Pair(elementwise.where(is_zero, a.re / size_re, re), elementwise.where(is_zero, a.im / size_re, im))


def _div_by_number(a: Pair, b: Pair) -> Pair:
    """The same where the divisor is one number that is not zero: it says which of its parts is larger."""
    if abs(b.re) >= abs(b.im):
        ratio = b.im / b.re
        scale = 1.0 / (b.re + b.im * ratio)
        return Pair((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
    ratio = b.re / b.im
    scale = 1.0 / (b.im + b.re * ratio)
    return Pair((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)


def _div_by_real(a: Pair, b: Any) -> Pair | None:
    """The same where the divisor is real: its ratio is zero."""
    if not isinstance(b, TracedValue):
        if b == 0:
            return None
        scale = type(b)(1.0) / b
        return Pair((a.re + a.im * 0.0) * scale, (a.im - a.re * 0.0) * scale, a.is_imaginary)
    is_zero = logic.equal(b, 0)
    scale = elementwise.where(is_zero, np.inf, elementwise.div(1.0, b))
    re = elementwise.where(is_zero, a.re, a.re + a.im * 0.0) * scale
    im = elementwise.where(is_zero, a.im, a.im - a.re * 0.0) * scale
    return Pair(re, im, a.is_imaginary)


def _reciprocal(a: Pair) -> Pair:
    """The reciprocal as NumPy computes it: by the larger part."""
    wide = elementwise.absolute(a.im) <= elementwise.absolute(a.re)
    large, small = elementwise.where(wide, a.re, a.im), elementwise.where(wide, a.im, a.re)
    ratio = small / large
    divisor = large + small * ratio
    scale, scaled = 1.0 / divisor, ratio / divisor
    return Pair(elementwise.where(wide, scale, scaled), -elementwise.where(wide, scaled, scale))


def _square(a: Pair) -> Pair:
    return Pair(a.re * a.re - a.im * a.im, a.re * a.im + a.im * a.re)


#: Exponents from here on are NumPy's: it takes logarithms.
_LARGEST_POWER = 100


def _power(_walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    """Whole powers by squares, in NumPy's order."""
    exponent = node.inputs[1].value if isinstance(node.inputs[1], Literal) else 0
    if exponent != -1 and exponent not in range(1, _LARGEST_POWER):
        return None
    (a, _) = _in_one_dtype(node, operands)
    if exponent in (1, 2, -1):
        return a if exponent == 1 else _square(a) if exponent == 2 else _reciprocal(a)
    if exponent == 3:
        return _mul(a, _square(a))
    remaining, result = int(exponent), Pair(1.0, 0.0)
    while remaining:
        if remaining % 2:
            result = _mul(result, a)
        remaining //= 2
        a = _square(a) if remaining else a
    return result


def _exp(a: Pair) -> Pair:
    """exp(re) (cos(im) + i sin(im)); half of the exponent before and half behind, so that only results overflow."""
    cosine, sine = cos(a.im), sin(a.im)
    if a.is_imaginary:
        return Pair(cosine, sine)
    half = exp(a.re * 0.5)
    is_endless = logic.logical_and(logic.isinf(a.re), logic.logical_not(logic.isfinite(a.im)))
    re = elementwise.where(is_endless, half, half * cosine * half)
    im = elementwise.where(a.im == 0, a.im, half * sine * half)
    # Beside -inf both parts are zeros, whatever the angle.
    vanishes = logic.logical_and(is_endless, a.re < 0)
    return Pair(re, elementwise.where(vanishes, elementwise.copysign(half, a.im), im))


def _where(_walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    condition, *chosen = operands
    if isinstance(condition, Pair):
        condition = _is_true(condition)
    if not any(_is_complex(atom) for atom in node.inputs[1:]):
        return elementwise.where(condition, *chosen)
    a, b = _in_one_dtype(node, operands)[1:]
    im = 0.0 if _is_real(a) and _is_real(b) else elementwise.where(condition, a.im, b.im)
    return Pair(elementwise.where(condition, a.re, b.re), im)


def _is_true(a: Pair) -> Any:
    return logic.logical_or(a.re != 0, a.im != 0)


def _astype(_walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    pair, dtype = _as_pair(operands[0]), node.outputs[0].type.dtype
    if dtype.kind == "b":
        return _is_true(pair)
    if dtype.kind != "c":
        return shapes.astype(pair.re, dtype=dtype) if isinstance(pair.re, TracedValue) else None
    return Pair(pair.re, pair.im, pair.is_imaginary)  # each part gets its type behind every form


# --- moves -----------------------------------------------------------------------------------------------------------------
def _moved(walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    """Linear functions that move elements of their first operand or add them up: the same of each part."""
    pair, others, params = _as_pair(operands[0]), operands[1:], dict(node.params)
    if isinstance(params.get("dtype"), np.dtype):
        params["dtype"] = _part_dtype(params["dtype"])
    if node.primitive is shapes.broadcast_to and not isinstance(pair.re, TracedValue):
        return Pair(pair.re, pair.im, pair.is_imaginary)
    parts = []
    for part in (pair.re, pair.im):
        if isinstance(part, TracedValue):
            parts.append(node.primitive(part, *others, **params))
        elif part == 0 and parts:
            parts.append(part)
        else:
            type_ = node.inputs[0].type
            full = walk.exact(part, ArrayType(type_.shape, _part_dtype(type_.dtype)))
            parts.append(node.primitive(full, *others, **params))
    return Pair(parts[0], parts[1], pair.is_imaginary)


def _itself(_walk: _Walk, _node: Node, operands: Sequence[Any]) -> Any:
    return Pair(operands[0].re, operands[0].im, operands[0].is_imaginary)


def _joined(walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    pairs = list(map(_as_pair, operands))
    dtype = _part_dtype(node.outputs[0].type.dtype)
    types = [ArrayType(atom.type.shape, dtype) for atom in node.inputs]
    axis = dict(node.params)["axis"]

    def join(parts: Sequence[Any]) -> Any:
        return joining.concatenate(*map(walk.exact, parts, types), axis=axis)

    re = join([pair.re for pair in pairs])
    return Pair(re, 0.0 if all(map(_is_real, pairs)) else join([pair.im for pair in pairs]))


def _stored(walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    """A store into each part; a real array takes the real part of what is stored."""
    array, value, *positions = operands
    params, stored = dict(node.params), _as_pair(value)
    if not isinstance(array, Pair):
        return node.primitive(array, stored.re, *positions, **params)
    type_ = ArrayType(node.inputs[0].type.shape, _part_dtype(node.inputs[0].type.dtype))
    re, im = walk.exact(array.re, type_), walk.exact(array.im, type_)
    return Pair(
        node.primitive(re, stored.re, *positions, **params), node.primitive(im, stored.im, *positions, **params)
    )


def _product(_walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    a, b = _in_one_dtype(node, operands)
    if not all(isinstance(part, TracedValue) for part in (a.re, b.re)):
        return None
    re: Any = matmul(a.re, b.re)
    if isinstance(a.im, TracedValue) and isinstance(b.im, TracedValue):
        return Pair(re - matmul(a.im, b.im), matmul(a.re, b.im) + matmul(a.im, b.re))
    if isinstance(a.im, TracedValue) and _is_real(b):
        return Pair(re, matmul(a.im, b.re))
    if isinstance(b.im, TracedValue) and _is_real(a):
        return Pair(re, matmul(a.re, b.im))
    return Pair(re, 0.0) if _is_real(a) and _is_real(b) else None


# --- transforms --------------------------------------------------------------------------------------------------------------
def _transformed(walk: _Walk, node: Node, operands: Sequence[Any]) -> Any:
    pair, params = _as_pair(operands[0]), dict(node.params)
    if not isinstance(pair.re, TracedValue):
        return None
    type_ = ArrayType(node.inputs[0].type.shape, _part_dtype(node.outputs[0].type.dtype))
    re = walk.exact(pair.re, type_)
    if node.primitive is fourier.rfft:
        return Pair(*rfft_parts(re, **params))
    if node.primitive is fourier.irfft:
        return irfft_parts(re, walk.exact(pair.im, type_), **params)
    return Pair(*(fft_parts(re, **params) if _is_real(pair) else fft_parts(re, walk.exact(pair.im, type_), **params)))


_FORMS: Mapping[Primitive, Form] = {
    elementwise.add: _elementwise(_add),
    elementwise.sub: _elementwise(_sub),
    elementwise.mul: _elementwise(_mul),
    elementwise.div: _elementwise(_div),
    elementwise.neg: _elementwise(lambda a: Pair(-a.re, -a.im, a.is_imaginary)),
    elementwise.square: _elementwise(_square),
    elementwise.reciprocal: _elementwise(_reciprocal),
    elementwise.absolute: _elementwise(lambda a: hypot(a.re, a.im)),
    elementwise.power: _power,
    elementwise.where: _where,
    exp: _elementwise(_exp),
    logic.equal: _elementwise(lambda a, b: logic.logical_and(a.re == b.re, a.im == b.im)),
    logic.not_equal: _elementwise(lambda a, b: logic.logical_or(a.re != b.re, a.im != b.im)),
    logic.isnan: _elementwise(lambda a: logic.logical_or(logic.isnan(a.re), logic.isnan(a.im))),
    logic.isinf: _elementwise(lambda a: logic.logical_or(logic.isinf(a.re), logic.isinf(a.im))),
    logic.isfinite: _elementwise(lambda a: logic.logical_and(logic.isfinite(a.re), logic.isfinite(a.im))),
    complex_numbers.real: _elementwise(lambda a: a.re),
    complex_numbers.imag: _elementwise(lambda a: a.im),
    complex_numbers.conj: _elementwise(lambda a: Pair(a.re, -a.im, a.is_imaginary)),
    shapes.astype: _astype,
    copy: _itself,
    stop: _itself,
    **dict.fromkeys((index, scatter, shapes.reshape, shapes.transpose, shapes.broadcast_to), _moved),
    **dict.fromkeys((reductions.sum_, cumsum, gathering.gather, gathering.scatter_add), _moved),
    **dict.fromkeys((gathering.take_along, gathering.put_along), _moved),
    **dict.fromkeys((diagonals.diagonal, diagonals.on_diagonal, diagonals.lower, diagonals.upper), _moved),
    joining.concatenate: _joined,
    **dict.fromkeys(STORES, _stored),
    matmul: _product,
    **dict.fromkeys((fourier.fft, fourier.rfft, fourier.irfft), _transformed),
}
