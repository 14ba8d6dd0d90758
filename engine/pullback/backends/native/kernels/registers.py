"""Scalar programs: graphs of a few numbers, every element of every value a register.

A step of an ODE on two numbers is a hundred operations on one or two elements each. As nests it is a hundred loops of one
turn over memory; here it is a hundred instructions. A value is an array of *cells*, names of what is in registers, so views,
joins and parts are done to arrays of names and cost nothing; what is computed twice from the same cells is computed once.

    y = stack [a * y[0], …]      ->   %v1 = fmul double %a, %y0;  y is the array [%v1, %v2]

A cell that is zero because a part was written into zeros adds nothing: x + 0 is x, also where x is -0.0.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm.accumulators import Combiner
from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes, has_form
from pullback.backends.llvm.elementary import scalars
from pullback.backends.native.emission import StoredArray
from pullback.backends.nests.fusion import COPIES, REDUCTIONS, is_elementwise, loop_dtypes, reduced_axes
from pullback.backends.nests.views import is_view
from pullback.core.types import ArrayType
from pullback.ir.graph import Atom, Graph, Literal, Node
from pullback.rules.contractions import matmul
from pullback.rules.storing import STORES, add_at

#: Names in the layout of a value.
Cells: TypeAlias = np.ndarray[Any, Any]

#: The most elements of a value, and the most instructions of a graph, counted roughly.
_MOST_ELEMENTS = 32
_MOST_INSTRUCTIONS = 4000

#: Cycles of a kernel beside its work: the call, and the wait of the next kernel for stored values.
_CYCLES_OF_A_KERNEL = 20


class _Nothing(str):
    """The zero of a place that nothing was written to."""

    __slots__ = ()


# --- which graphs -----------------------------------------------------------------------------------------------------------
def fits(graph: Graph) -> bool:
    """True if a graph that can be native can be in registers."""
    values = {atom for node in graph.nodes for atom in (*node.inputs, *node.outputs)} | {*graph.inputs, *graph.outputs}
    return (
        all(map(_is_known, graph.nodes))
        and all(atom.type.dtype.kind != "c" and has_form(atom.type.dtype) for atom in values)  # unread inputs included
        and all(atom.type.size <= _MOST_ELEMENTS for atom in values)
        and sum(map(_instructions, graph.nodes)) <= _MOST_INSTRUCTIONS
    )


def pays(graph: Graph, vector_bits: int) -> bool:
    """True if a graph that can be native is better off in registers than as nests."""
    if not fits(graph):
        return False
    alone = sum(map(_instructions, graph.nodes))
    in_nests = sum(_cycles_in_nests(node, vector_bits) for node in graph.nodes)
    return alone <= in_nests + _CYCLES_OF_A_KERNEL * _kernels(graph)


def _is_known(node: Node) -> bool:
    if node.primitive in REDUCTIONS:
        return REDUCTIONS[node.primitive] not in ("any", "all") or node.inputs[0].type.dtype.kind == "b"
    if node.primitive in STORES and len(node.inputs) > 2:
        return False  # positions are computed, registers have none
    return is_view(node) or is_elementwise(node) or node.primitive.name in _FORMS


def _instructions(node: Node) -> int:
    if is_elementwise(node):
        return _cost(node) * node.outputs[0].type.size
    if node.primitive in REDUCTIONS:
        return node.inputs[0].type.size
    if node.primitive is matmul:
        return node.inputs[0].type.shape[-1] * node.outputs[0].type.size
    return node.inputs[-1].type.size if node.primitive is add_at else 0


def _cycles_in_nests(node: Node, vector_bits: int) -> int:
    lanes = vector_bits // (8 * node.outputs[0].type.dtype.itemsize)
    return (
        -(-_instructions(node) // max(1, lanes))
        if not is_elementwise(node)
        else _cost(node) * max(1, node.outputs[0].type.size // max(1, lanes))
    )


def _cost(node: Node) -> int:
    return max(1, scalars.cost(node.primitive, node.outputs[0].type.dtype))


def _kernels(graph: Graph) -> int:
    """About how many kernels a graph would be: elementwise nodes of one space that follow each other are one."""
    count, before = 0, None
    for node in graph.nodes:
        if is_view(node):
            continue
        here = node.outputs[0].type.shape if is_elementwise(node) else None
        count += here is None or here != before
        before = here
    return count


# --- emission ---------------------------------------------------------------------------------------------------------------
class Registers:
    """Cells of the values of a graph, in a function that is being written."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._known: dict[Any, str] = {}

    def run(self, graph: Graph, inputs: Sequence[Cells]) -> list[Cells]:
        """The cells of the outputs, from those of the inputs."""
        for node in filter(is_elementwise, graph.nodes):
            size, found = node.outputs[0].type.size, scalars.uses([(node.primitive, loop_dtypes(node))])
            self.function.module.uses.update({use: count * size for use, count in found.items()})
        values: dict[Atom, Cells] = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            operands = [self._cells(atom, values) for atom in node.inputs]
            values[node.outputs[0]] = self._result(node, operands)
        return [self._cells(atom, values) for atom in graph.outputs]

    def load(self, stored: StoredArray) -> Cells:
        """The elements of a value in memory."""
        lanes = Lanes(self.function, stored.dtype, 1)
        cells: Cells = np.empty(stored.shape, object)
        for place in np.ndindex(stored.shape):
            cells[place] = lanes.load(stored.pointer, _offset(place, stored))
        return cells

    def store(self, cells: Cells, stored: StoredArray) -> None:
        """Write a value to memory."""
        lanes = Lanes(self.function, stored.dtype, 1)
        for place in np.ndindex(stored.shape):
            lanes.store(_name(cells, place), stored.pointer, _offset(place, stored))

    def kept(self, cells: Cells, dtype: np.dtype[Any]) -> Cells:
        """Variables that hold a value from here on; names of slots."""
        type_ = Lanes(self.function, dtype, 1).type
        slots: Cells = np.empty(cells.shape, object)
        for place in np.ndindex(cells.shape):
            slots[place] = self.function.slot(type_, _name(cells, place))
        return slots

    def held(self, slots: Cells, dtype: np.dtype[Any]) -> Cells:
        """The current values of variables."""
        type_ = Lanes(self.function, dtype, 1).type
        cells: Cells = np.empty(slots.shape, object)
        for place in np.ndindex(slots.shape):
            cells[place] = self.function.load(type_, _name(slots, place))
        return cells

    def keep(self, cells: Cells, slots: Cells, dtype: np.dtype[Any]) -> None:
        """Give variables another value."""
        type_ = Lanes(self.function, dtype, 1).type
        for place in np.ndindex(slots.shape):
            self.function.store(type_, _name(cells, place), _name(slots, place))

    def _cells(self, atom: Atom, values: Mapping[Atom, Cells]) -> Cells:
        if not isinstance(atom, Literal):
            return values[atom]
        return self._filled((), self._lanes(atom.type).constant(atom.value))

    def _lanes(self, type_: ArrayType) -> Lanes:
        return Lanes(self.function, type_.dtype, 1)

    def _result(self, node: Node, operands: Sequence[Cells]) -> Cells:
        if is_view(node):
            return _as_cells(node.primitive.evaluate(operands[0], **dict(node.params)))
        if node.primitive in REDUCTIONS:
            return self._reduced(node, operands[0])
        if is_elementwise(node):
            return self._elementwise(node, operands)
        return _FORMS[node.primitive.name](self, node, operands)

    def _filled(self, shape: tuple[int, ...], cell: str) -> Cells:
        cells: Cells = np.empty(shape, object)
        cells.fill(cell)
        return cells

    def _elementwise(self, node: Node, operands: Sequence[Cells]) -> Cells:
        result = node.outputs[0].type
        dtypes = (result.dtype,) * len(operands) if node.primitive in COPIES else loop_dtypes(node)
        taken = [
            self._converted(operand, atom.type.dtype, dtype)
            for operand, atom, dtype in zip(operands, node.inputs, dtypes, strict=True)
        ]
        if node.primitive in COPIES:
            return np.broadcast_to(taken[0], result.shape)
        cells: Cells = np.empty(result.shape, object)
        stretched = [np.broadcast_to(operand, result.shape) for operand in taken]
        for place in np.ndindex(result.shape):
            names = tuple(str(_name(operand, place)) for operand in stretched)
            key = (node.primitive, node.params, names, dtypes, result.dtype)
            cells[place] = self._once(
                key,
                scalars.compute,
                *(node.primitive, self.function, 1, names, dtypes, result.dtype, node.params),
            )
        return cells

    def _once(self, key: Any, write: Callable[..., str], *args: Any) -> str:
        if key not in self._known:
            self._known[key] = write(*args)
        return self._known[key]

    def _converted(self, cells: Cells, before: np.dtype[Any], after: np.dtype[Any]) -> Cells:
        if before == after:
            return cells
        source, target = Lanes(self.function, before, 1), Lanes(self.function, after, 1)
        converted: Cells = np.empty(cells.shape, object)
        for place in np.ndindex(cells.shape):
            name = str(_name(cells, place))
            number = source.known(name)
            if number is not None:
                converted[place] = target.constant(number)
            else:
                converted[place] = self._once(("convert", name, before, after), source.convert, name, target)
        return converted

    def _reduced(self, node: Node, operand: Cells) -> Cells:
        result = node.outputs[0].type
        kind = REDUCTIONS[node.primitive]
        combiner = Combiner(kind, self._lanes(result))
        cells = self._converted(operand, node.inputs[0].type.dtype, result.dtype)
        axes = sorted(axis % max(cells.ndim, 1) for axis in reduced_axes(node))
        last = np.moveaxis(cells, axes, range(cells.ndim - len(axes), cells.ndim))
        kept = last.shape[: cells.ndim - len(axes)]
        rows = last.reshape((*kept, -1))
        reduced: Cells = np.empty(kept, object)
        for place in np.ndindex(kept):
            terms = [term for term in rows[place] if kind != "sum" or not isinstance(term, _Nothing)]
            reduced[place] = combiner.tree(terms) if terms else rows[place][0]
        return reduced.reshape(result.shape)

    # --- what is neither a view nor elementwise ----------------------------------------------------------------------
    def _concatenate(self, node: Node, operands: Sequence[Cells]) -> Cells:
        dtype = node.outputs[0].type.dtype
        parts = [
            self._converted(cells, atom.type.dtype, dtype) for cells, atom in zip(operands, node.inputs, strict=True)
        ]
        return np.concatenate(parts, axis=dict(node.params)["axis"])

    def _scatter(self, node: Node, operands: Sequence[Cells]) -> Cells:
        result = node.outputs[0].type
        cells = self._filled(result.shape, _Nothing(self._lanes(result).constant(0)))
        cells[dict(node.params)["key"]] = self._converted(operands[0], node.inputs[0].type.dtype, result.dtype)
        return cells

    def _set_at(self, node: Node, operands: Sequence[Cells]) -> Cells:
        cells = operands[0].copy()
        cells[dict(node.params)["key"]] = self._converted(
            operands[1], node.inputs[1].type.dtype, node.outputs[0].type.dtype
        )
        return cells

    def _add_at(self, node: Node, operands: Sequence[Cells]) -> Cells:
        result, key = node.outputs[0].type, dict(node.params)["key"]
        cells = operands[0].copy()
        part = _as_cells(cells[key])
        added = np.broadcast_to(self._converted(operands[1], node.inputs[1].type.dtype, result.dtype), part.shape)
        total: Cells = np.empty(part.shape, object)
        for place in np.ndindex(part.shape):
            one, other = _name(part, place), _name(added, place)
            if isinstance(one, _Nothing) or isinstance(other, _Nothing):
                total[place] = other if isinstance(one, _Nothing) else one
            else:
                total[place] = self._lanes(result).add(one, other)
        cells[key] = total
        return cells

    def _matmul(self, node: Node, operands: Sequence[Cells]) -> Cells:
        result, lanes = node.outputs[0].type, self._lanes(node.outputs[0].type)
        a, b = (
            self._converted(cells, atom.type.dtype, result.dtype)
            for cells, atom in zip(operands, node.inputs, strict=True)
        )
        rows = a if a.ndim > 1 else a[None]
        columns = np.swapaxes(b, -1, -2) if b.ndim > 1 else b[None]
        batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
        rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:]))
        columns = np.broadcast_to(columns, (*batch, *columns.shape[-2:]))
        cells: Cells = np.empty((*batch, rows.shape[-2], columns.shape[-2]), object)
        for place in np.ndindex(cells.shape):
            *outer, row, column = place
            total = None
            for one, other in zip(rows[*outer, row], columns[*outer, column], strict=True):
                total = lanes.mul(one, other) if total is None else lanes.add(total, lanes.mul(one, other))
            cells[place] = total
        return cells.reshape(result.shape)

    def _python_number(self, node: Node, operands: Sequence[Cells]) -> Cells:
        from pullback.backends.native.kernels.declined_values import decline_large  # noqa: PLC0415 - few programs need it

        number, size = operands
        lanes, sizes = (self._lanes(atom.type) for atom in node.inputs)
        decline_large(lanes, sizes, _name(size, ()))
        return number


_FORMS: dict[str, Callable[[Registers, Node, Sequence[Cells]], Cells]] = {
    "concatenate": Registers._concatenate,  # noqa: SLF001 - a table of its own methods
    "scatter": Registers._scatter,  # noqa: SLF001
    "add_at": Registers._add_at,  # noqa: SLF001
    "set_at": Registers._set_at,  # noqa: SLF001
    "matmul": Registers._matmul,  # noqa: SLF001
    "python_number": Registers._python_number,  # noqa: SLF001
}


def _offset(place: tuple[int, ...], stored: StoredArray) -> int:
    return sum(index * stride for index, stride in zip(place, stored.strides, strict=True))


def _name(cells: Cells, place: tuple[int, ...]) -> str:
    name: str = cells.item(*place)
    return name


def _as_cells(found: Any) -> Cells:
    """Cells, also where NumPy gives the one element itself."""
    if isinstance(found, np.ndarray):
        return found
    cells: Cells = np.empty((), object)
    cells[()] = found
    return cells
