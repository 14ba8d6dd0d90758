"""Accumulators of reductions: their starting values, how two are combined, and where they are kept.

Sums of floats are kept in blocks: an accumulator takes at most `BLOCK` (128) numbers one after the other, and is then
added to a second one whose rounding errors are negligible: an f64 for f32, a sum with a compensation (Knuth's TwoSum)
for f64. A block takes a few accumulators side by side, and lanes of each: these are added in a tree at the end. With u
the unit of rounding and S the sum of magnitudes, the error is at most

    (BLOCK + log2(accumulators * lanes) + 2) u S    whatever the number of terms,

where a sum ends in registers or on the stack. One that returns to its result, at most `BLOCK` times, adds as many terms more;
what would return more often is summed in a pass of its own. Reference: Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., sections 4.2 and 4.3.

Maxima and minima are NaN where a term is, as NumPy's. Nothing is multiplied by zero: lanes that do not take part are given
what the reduction starts from.
"""

from typing import Any

import numpy as np

from pullback.backends.llvm.builder.lanes import Lanes, reduce_lanes
from pullback.dataclass import dataclass


def starting_value(kind: str, dtype: np.dtype) -> Any:
    """The result of a reduction of nothing; of sums of floats -0.0, which changes no term, not even -0.0."""
    if kind in ("any", "all"):
        return kind == "all"
    if kind == "sum":
        return -0.0 if dtype.kind == "f" else 0
    if kind == "prod":
        return 1
    if dtype.kind == "f":
        return -np.inf if kind == "max" else np.inf
    if dtype.kind == "b":
        return kind == "min"
    return np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max


@dataclass(frozen=True, slots=True)
class Combiner:
    """A reduction of values of one dtype in lanes."""

    kind: str
    lanes: Lanes

    @property
    def start(self) -> str:
        """The neutral value, in every lane."""
        return self.lanes.constant(starting_value(self.kind, self.lanes.dtype))

    def combine(self, total: str, term: str) -> str:
        """Combine two values of the reduction."""
        lanes = self.lanes
        if lanes.dtype.kind == "b":
            operation = "or" if self.kind in ("any", "max", "sum") else "and"
            return lanes.function.value(f"{operation} {lanes.type} {total}, {term}")
        if self.kind == "sum":
            return lanes.add(total, term)
        if self.kind == "prod":
            return lanes.mul(total, term)
        if self.kind in ("any", "all"):
            return lanes.on_bits("or" if self.kind == "any" else "and", total, term)
        # A comparison with NaN is false: it stays where it is the total, and is taken on purpose where it is the term.
        farther = lanes.select(lanes.compare(">" if self.kind == "max" else "<", term, total), term, total)
        return lanes.select(lanes.is_nan(term), term, farther) if lanes.is_float else farther

    def across(self, a: str) -> str:
        """Reduce all lanes to one."""
        lanes = self.lanes
        if self.kind in ("sum", "prod") and lanes.dtype.kind != "b":
            return a if lanes.width == 1 else lanes.sum_lanes(a) if self.kind == "sum" else self._product_of_lanes(a)
        if lanes.width == 1:
            return a
        if lanes.dtype.kind == "b":
            return lanes.any_lane(a) if self.kind in ("any", "max", "sum") else lanes.all_lanes(a)
        if self.kind in ("any", "all"):
            return reduce_lanes(lanes, "or" if self.kind == "any" else "and", a)
        if not lanes.is_float:
            return lanes.largest_lane(a) if self.kind == "max" else lanes.smallest_lane(a)
        # Half by half: LLVM's own reduction orders zeros by their sign too, which takes it three times as long.
        half = Combiner(self.kind, Lanes(lanes.function, lanes.dtype, lanes.width // 2))
        return half.across(half.combine(self._half(a, 0), self._half(a, half.lanes.width)))

    def _half(self, a: str, first: int) -> str:
        lanes = self.lanes
        if lanes.width == 2:
            return lanes.lane(a, first)
        order = ", ".join(f"i32 {first + place}" for place in range(lanes.width // 2))
        mask = f"<{lanes.width // 2} x i32> <{order}>"
        return lanes.function.value(f"shufflevector {lanes.type} {a}, {lanes.type} poison, {mask}")

    def _product_of_lanes(self, a: str) -> str:
        lanes = self.lanes
        if not lanes.is_float:
            return reduce_lanes(lanes, "mul", a)
        name = f"llvm.vector.reduce.fmul.{lanes.suffix}"
        lanes.function.module.declare(name, lanes.element, lanes.element, lanes.type)
        one = lanes.narrowed().constant(1)
        return lanes.function.value(f"call reassoc {lanes.element} @{name}({lanes.element} {one}, {lanes.type} {a})")

    def tree(self, terms: list[str]) -> str:
        """Combine several values, neighbours first."""
        while len(terms) > 1:
            pairs = [self.combine(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = pairs + terms[len(pairs) * 2 :]
        return terms[0]


def accumulated_dtype(dtype: np.dtype[Any], width: int) -> np.dtype[Any]:
    """The dtype in which lanes are kept: truth values as numbers, since masks in loops are slow on some processors."""
    return np.dtype("i4") if dtype.kind == "b" and width > 1 else dtype


def finer_cells(lanes: Lanes) -> int:
    """The number of f64 that hold a second accumulator of a sum."""
    return 1 if lanes.dtype.itemsize < 8 else 2


def add_finely(lanes: Lanes, term: str, cells: list[str], active: int | None = None) -> None:
    """Add the sum of a block to a second accumulator, which is in f64 at these pointers."""
    wide = lanes.as_dtype("f8")
    total = wide.load(cells[0], active=active)
    if len(cells) == 1:
        wide.store(wide.add(total, lanes.convert(term, wide)), cells[0], active=active)
        return
    raised = wide.add(total, term)
    added = wide.sub(raised, total)
    lost = wide.add(wide.sub(total, wide.sub(raised, added)), wide.sub(term, added))
    wide.store(raised, cells[0], active=active)
    wide.store(wide.add(wide.load(cells[1], active=active), lost), cells[1], active=active)


def finer_total(lanes: Lanes, cells: list[str], active: int | None = None) -> str:
    """The value of a second accumulator, in f64."""
    wide = lanes.as_dtype("f8")
    total = wide.load(cells[0], active=active)
    if len(cells) == 1:
        return total
    lost = wide.load(cells[1], active=active)
    # At an infinite total the rounding error is NaN, and is left out.
    return wide.select(wide.is_nan(lost), total, wide.add(total, lost))
