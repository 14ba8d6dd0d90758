"""Kernels that go along an axis element by element: running sums and products, linear recurrences, positions of extrema."""

from collections.abc import Sequence

from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.lanes import Lanes, memory_type
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.index_loops import each
from pullback.ir.graph import Node
from pullback.rules.cumulative import cumprod, cumsum, linear_recurrence
from pullback.rules.ordering import argmax, argmin, running_argmax, running_argmin


@emits(cumsum, cumprod)
def _emit_running(emission: Emission, node: Node, site: Site) -> None:
    (x,), (result,), axis, is_sum = site.operands, site.results, dict(node.params)["axis"], node.primitive is cumsum

    def build(function: Function, pointers: Sequence[str]) -> None:
        given, lanes = Lanes(function, x.dtype, 1), Lanes(function, result.dtype, 1)

        def line(_places: Sequence[Index], at: Index, to: Index) -> None:
            total = function.slot(lanes.type)
            first = given.convert(given.load(pointers[0], at), lanes)
            function.store(lanes.type, first, total)
            lanes.store(first, pointers[1], to)
            if x.shape[axis] == 1:
                return
            with function.loop(1, x.shape[axis]) as place:
                value = given.load(pointers[0], function.offset((at, 1), (place, x.strides[axis])))
                before, value = function.load(lanes.type, total), given.convert(value, lanes)
                after = lanes.add(before, value) if is_sum else lanes.mul(before, value)
                function.store(lanes.type, after, total)
                lanes.store(after, pointers[1], function.offset((to, 1), (place, result.strides[axis])))

        each(function, [other for other in range(len(x.shape)) if other != axis], (x, result), line)

    name = node.primitive.name
    key = (name, axis, x.layout, result.dtype.str)
    emission.kernel(key, name, [x.pointer, result.pointer], build)


def _why_no_recurrence(node: Node) -> str | None:
    a, b = (atom.type.shape for atom in node.inputs)
    return None if a == b else f"{node.primitive.name} with factors that are broadcast"


@emits(linear_recurrence, supports=_why_no_recurrence)
def _emit_recurrence(emission: Emission, node: Node, site: Site) -> None:
    (a, b), (result,), params = site.operands, site.results, dict(node.params)
    axis, reverse = params["axis"], params["reverse"]
    length = b.shape[axis]

    def build(function: Function, pointers: Sequence[str]) -> None:
        lanes = Lanes(function, result.dtype, 1)
        factors, terms = (Lanes(function, stored.dtype, 1) for stored in (a, b))

        def line(_places: Sequence[Index], *starts: Index) -> None:
            state = function.slot(lanes.type)

            def at(number: int, stored: StoredArray, step: Index) -> Index:
                place = function.sub(length - 1, step) if reverse else step
                return function.offset((starts[number], 1), (place, stored.strides[axis]))

            first = terms.convert(terms.load(pointers[1], at(1, b, 0)), lanes)
            function.store(lanes.type, first, state)
            lanes.store(first, pointers[2], at(2, result, 0))
            if length == 1:
                return
            with function.loop(1, length) as step:
                factor = factors.convert(factors.load(pointers[0], at(0, a, step)), lanes)
                term = terms.convert(terms.load(pointers[1], at(1, b, step)), lanes)
                after = lanes.add(lanes.mul(factor, function.load(lanes.type, state)), term)
                function.store(lanes.type, after, state)
                lanes.store(after, pointers[2], at(2, result, step))

        each(function, [other for other in range(len(b.shape)) if other != axis], (a, b, result), line)

    key = ("linear_recurrence", axis, reverse, a.layout, b.layout, result.dtype.str)
    emission.kernel(key, "linear_recurrence", [a.pointer, b.pointer, result.pointer], build)


def _why_no_position(node: Node) -> str | None:
    dtype = node.inputs[0].type.dtype
    return f"{node.primitive.name} of {dtype}" if dtype.kind == "b" else None


@emits(argmax, argmin, running_argmax, running_argmin, supports=_why_no_position)
def _emit_position(emission: Emission, node: Node, site: Site) -> None:
    """The first of the largest elements, or of the smallest, of all or up to each; NaN goes before all of them."""
    (x,), (result,), params = site.operands, site.results, dict(node.params)
    axis, is_largest = params["axis"], node.primitive in (argmax, running_argmax)
    is_running = node.primitive in (running_argmax, running_argmin)
    step = result.strides[axis] if is_running else 0  # from the position up to one element to that up to the next
    kept = list(result.strides)
    if len(kept) < len(x.shape):
        kept.insert(axis, 0)
    stretched = StoredArray(result.pointer, x.shape, tuple(kept), result.dtype)

    def build(function: Function, pointers: Sequence[str]) -> None:
        lanes = Lanes(function, x.dtype, 1)

        def line(_places: Sequence[Index], at: Index, to: Index) -> None:
            best, where = function.slot(lanes.type), function.slot("i64", 0)
            function.store(lanes.type, lanes.load(pointers[0], at), best)
            memory = memory_type(result.dtype)
            if is_running:
                function.store("i64", "0", function.element(pointers[1], to, memory), align=8)
            if x.shape[axis] > 1:
                with function.loop(1, x.shape[axis]) as place:
                    value = lanes.load(pointers[0], function.offset((at, 1), (place, x.strides[axis])))
                    before = function.load(lanes.type, best)
                    better = _is_better(function, lanes, value, before, is_largest=is_largest)
                    function.store(lanes.type, lanes.select(better, value, before), best)
                    chosen = function.value(f"select i1 {better}, i64 {place}, i64 {function.load('i64', where)}")
                    function.store("i64", chosen, where)
                    if is_running:
                        behind = function.offset((to, 1), (place, step))
                        function.store("i64", chosen, function.element(pointers[1], behind, memory), align=8)
            if not is_running:
                function.store("i64", function.load("i64", where), function.element(pointers[1], to, memory), align=8)

        each(function, [other for other in range(len(x.shape)) if other != axis], (x, stretched), line)

    key = ("position", is_largest, is_running, axis, x.layout, stretched.layout)
    emission.kernel(key, "position", [x.pointer, result.pointer], build)


def _is_better(function: Function, lanes: Lanes, value: str, before: str, *, is_largest: bool) -> str:
    if not lanes.is_float:
        return lanes.compare(">" if is_largest else "<", value, before)
    ahead = function.value(f"fcmp {'ugt' if is_largest else 'ult'} {lanes.type} {value}, {before}")
    is_number = function.value(f"fcmp ord {lanes.type} {before}, {before}")
    return function.value(f"and i1 {ahead}, {is_number}")
