"""Emission of LU and Cholesky factors, of the pullback of the latter, and of adjugates, the derivatives of determinants."""

from collections.abc import Sequence

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.native.emission import Emission, Site, StoredArray, emits
from pullback.backends.native.kernels.data_movement import copy_into
from pullback.backends.native.kernels.linear import cholesky_pullback, small_matrices
from pullback.backends.native.kernels.linear.lapack import Lapack, Matrix, one_thread
from pullback.backends.native.kernels.linear.matrices import (
    SMALL,
    decline_unless,
    in_lines,
    matrix_bytes,
    position,
    rows_of,
    why_not,
)
from pullback.backends.native.kernels.linear.stacks import Place, StackGroups
from pullback.ir.graph import Node
from pullback.rules.determinants import MOST_COFACTORS, adjugate
from pullback.rules.factorizations import cholesky, cholesky_pull
from pullback.rules.lu_factors import lu


@emits(lu, supports=why_not)
def _emit_lu(emission: Emission, _node: Node, site: Site) -> None:
    (a,), (factors, order, parity) = site.operands, site.results
    size, stack = a.shape[-1], a.shape[:-2]
    pointers = [stored.pointer for stored in (a, factors, order, parity)]
    key = ("lu", a.layout, factors.layout, order.layout, parity.layout)

    def build_small(function: Function, arguments: Sequence[str]) -> None:
        grouping = StackGroups.of(stack, emission.lanes_of(a.dtype))
        lanes = Lanes(function, a.dtype, grouping.width)

        def write(places: Sequence[Place]) -> None:
            matrix, transposed, rows_at, parity_at = places
            rows = rows_of(lanes, matrix, size)
            rows_in_order, sign = small_matrices.eliminate(lanes, rows)
            for i in range(size):
                for j in range(size):
                    transposed.store(lanes, rows[i][j], j, i)
                rows_at.store(lanes.as_dtype("i4"), rows_in_order[i], i)
            parity_at.store(lanes, sign)

        owned = zip(arguments, (a, factors, order, parity), (2, 2, 1, 0), strict=True)
        grouping.each(function, list(owned), write)

    def build(function: Function, arguments: Sequence[str]) -> None:
        one, places = Lanes(function, a.dtype, 1), Lanes(function, np.dtype(np.int32), 1)
        swaps, sign = function.slot("i32", count=size), function.slot(one.type)

        def write(at: Sequence[Place]) -> None:
            transposed, rows_at, parity_at = at
            Lapack(function, a.dtype).getrf(Matrix(transposed.pointer, size), size, swaps)
            with function.loop(0, size) as row:
                places.store(function.value(f"trunc i64 {row} to i32"), rows_at.pointer, row)
            function.store(one.type, one.constant(1), sign)
            with function.loop(0, size) as row:
                other = function.sub(position(function, places.load(swaps, row)), 1)
                with function.when(function.value(f"icmp ne i64 {row}, {other}")):
                    mine, its = places.load(rows_at.pointer, row), places.load(rows_at.pointer, other)
                    places.store(its, rows_at.pointer, row)
                    places.store(mine, rows_at.pointer, other)
                    function.store(one.type, one.neg(function.load(one.type, sign)), sign)
            one.store(function.load(one.type, sign), parity_at.pointer)

        owned = list(zip(arguments, (factors, order, parity), (2, 1, 0), strict=True))
        with one_thread(function):
            StackGroups.of(stack, 1).each(function, owned, write)

    if size <= SMALL:
        emission.kernel(key, f"lu_{size}", pointers, build_small)
        return
    *outer, row, column = factors.strides
    copy_into(emission, a, StoredArray(factors.pointer, factors.shape, (*outer, column, row), factors.dtype))
    emission.kernel((*key, "lapack"), f"lu_{size}", pointers[1:], build, can_fail=True)


@emits(cholesky, supports=why_not)
def _emit_cholesky(emission: Emission, _node: Node, site: Site) -> None:
    (a,), (factor,) = site.operands, site.results
    size, stack = a.shape[-1], a.shape[:-2]
    width = emission.lanes_of(a.dtype)

    def build_small(function: Function, arguments: Sequence[str]) -> None:
        grouping = StackGroups.of(stack, width)
        lanes = Lanes(function, a.dtype, grouping.width)

        def write(places: Sequence[Place]) -> None:
            matrix, result = places
            rows = rows_of(lanes, matrix, size, lower=True)
            good = small_matrices.factor_cholesky(lanes, rows)
            decline_unless(lanes, good, matrix.active)
            for i in range(size):
                for j in range(size):
                    result.store(lanes, rows[i][j] if j <= i else lanes.constant(0), i, j)

        grouping.each(function, list(zip(arguments, (a, factor), (2, 2), strict=True)), write)

    def build(function: Function, arguments: Sequence[str]) -> None:
        one = Lanes(function, a.dtype, 1)

        with one_thread(function) as declined:

            def write(places: Sequence[Place]) -> None:
                matrix = Matrix(places[0].pointer, size)
                good = Lapack(function, a.dtype).potrf(matrix, size)
                with function.when(function.value(f"xor i1 {good}, true")):
                    function.store("i1", "true", declined)
                with function.loop(0, size - 1) as row, function.loop(function.add(row, 1), size) as column:
                    one.store(one.constant(0), matrix.pointer, function.offset((row, size), (column, 1)))

            StackGroups.of(stack, 1).each(function, [(arguments[0], factor, 2)], write)

    if size <= SMALL:
        key = ("cholesky", a.layout, factor.layout)
        emission.kernel(key, f"cholesky_{size}", [a.pointer, factor.pointer], build_small, can_fail=True)
        return
    copy_into(emission, a, factor)
    emission.kernel(("cholesky", factor.layout), f"cholesky_{size}", [factor.pointer], build, can_fail=True)


@emits(cholesky_pull, supports=why_not, scratch=matrix_bytes)
def _emit_cholesky_pull(emission: Emission, _node: Node, site: Site) -> None:
    (factor, v), (result,) = site.operands, site.results
    size, stack = factor.shape[-1], factor.shape[:-2]
    width = emission.lanes_of(factor.dtype)

    def build_small(function: Function, arguments: Sequence[str]) -> None:
        grouping = StackGroups.of(stack, width)
        lanes = Lanes(function, factor.dtype, grouping.width)

        def write(places: Sequence[Place]) -> None:
            rows = rows_of(lanes, places[1], size, lower=True)
            small_matrices.pull_cholesky(lanes, rows_of(lanes, places[0], size, lower=True), rows)
            for i in range(size):
                places[2].store(lanes, rows[i][i], i, i)
                for j in range(i):
                    half = lanes.mul(lanes.constant(0.5), rows[i][j])
                    places[2].store(lanes, half, i, j)
                    places[2].store(lanes, half, j, i)

        grouping.each(function, list(zip(arguments, (factor, v, result), (2, 2, 2), strict=True)), write)

    def build(function: Function, arguments: Sequence[str]) -> None:
        one = Lanes(function, factor.dtype, 1)

        def write(places: Sequence[Place]) -> None:
            known, own = places
            matrix = in_lines(one, known, arguments[2], size)
            target = Matrix(own.pointer, size)
            cholesky_pullback.pull_cholesky(Lapack(function, factor.dtype), size, matrix, target, width)
            with function.loop(1, size) as i, function.loop(0, i, at_least_once=True) as j:
                half = one.mul(one.constant(0.5), one.load(target.pointer, function.offset((i, size), (j, 1))))
                one.store(half, target.pointer, function.offset((i, size), (j, 1)))
                one.store(half, target.pointer, function.offset((j, size), (i, 1)))

        owned = list(zip(arguments[:2], (factor, result), (2, 2), strict=True))
        with one_thread(function):
            StackGroups.of(stack, 1).each(function, owned, write)

    if size <= SMALL:
        key = ("cholesky_pull", factor.layout, v.layout, result.layout)
        pointers = [factor.pointer, v.pointer, result.pointer]
        emission.kernel(key, f"cholesky_pull_{size}", pointers, build_small)
        return
    copy_into(emission, v, result)
    pointers = [factor.pointer, result.pointer, site.scratch]
    in_blocks = ("cholesky_pull", factor.layout, result.layout)
    emission.kernel(in_blocks, f"cholesky_pull_{size}", pointers, build, can_fail=True)


def _why_no_adjugate(node: Node) -> str | None:
    size = node.inputs[0].type.shape[-1]
    return why_not(node) if size <= MOST_COFACTORS else f"adjugate of {size} x {size} has no native form"


@emits(adjugate, supports=_why_no_adjugate)
def _emit_adjugate(emission: Emission, _node: Node, site: Site) -> None:
    (a,), (result,) = site.operands, site.results
    size, stack = a.shape[-1], a.shape[:-2]

    def build(function: Function, arguments: Sequence[str]) -> None:
        grouping = StackGroups.of(stack, emission.lanes_of(a.dtype))
        lanes = Lanes(function, a.dtype, grouping.width)

        def write(places: Sequence[Place]) -> None:
            found = small_matrices.adjugate(lanes, rows_of(lanes, places[0], size))
            for i in range(size):
                for j in range(size):
                    places[1].store(lanes, found[i][j], i, j)

        grouping.each(function, list(zip(arguments, (a, result), (2, 2), strict=True)), write)

    key = ("adjugate", a.layout, result.layout)
    emission.kernel(key, f"adjugate_{size}", [a.pointer, result.pointer], build)
