"""Values in registers: one number, or as many as a register holds, of one dtype.

    lanes = Lanes(function, np.dtype("f4"), 8)
    y = lanes.fma(x, x, lanes.constant(1.0))

Arithmetic on floats is flagged `contract`, so that a product and a sum may become one instruction; nothing else is
promised away: NaN, infinities and signed zeros are what IEEE 754 says. A bool is an i1 in a register and a byte in memory.
"""

import struct
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function, Index
from pullback.dataclass import dataclass

#: The dtypes that native programs compute with.
DTYPES = tuple(np.dtype(name) for name in ("f4", "f8", "i4", "i8", "?"))

_REGISTER = {"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "b1": "i1"}
_MEMORY = {**_REGISTER, "b1": "i8", "c8": "float", "c16": "double"}
_COMPARISONS = {"==": ("oeq", "eq"), "!=": ("une", "ne"), "<": ("olt", "slt"), "<=": ("ole", "sle")}
_COMPARISONS |= {">": ("ogt", "sgt"), ">=": ("oge", "sge")}


def has_form(dtype: np.dtype[Any]) -> bool:
    """True if LLVM has a type for an element."""
    return dtype.str[1:] in _MEMORY


def memory_type(dtype: np.dtype[Any]) -> str:
    """LLVM's type of one element in memory; of one part of a complex number."""
    return _MEMORY[dtype.str[1:]]


def number(value: Any, dtype: np.dtype[Any]) -> str:
    """A number as LLVM writes it in a register of this dtype."""
    if dtype.kind == "f":
        exact = float(np.asarray(value, dtype))  # floats are written as doubles that are exactly floats
        return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
    if dtype.kind == "b":
        return "true" if value else "false"
    return str(int(value))


@dataclass(frozen=True, slots=True)
class Lanes:
    """Instructions on values of one dtype and one width; a width of 1 is one number."""

    function: Function
    dtype: np.dtype[Any]
    width: int
    contracts: bool = True

    # --- types ------------------------------------------------------------------------------------------------------
    @property
    def element(self) -> str:
        """LLVM's type of one lane in a register."""
        return _REGISTER[self.dtype.str[1:]]

    @property
    def type(self) -> str:
        """LLVM's type of a value."""
        return self._of(self.element)

    @property
    def is_float(self) -> bool:
        """True if these are floats."""
        return self.dtype.kind == "f"

    @property
    def bits_type(self) -> str:
        """The integers of the same size."""
        return self._of(f"i{self.dtype.itemsize * 8}")

    @property
    def mask_type(self) -> str:
        """LLVM's type of the result of a comparison."""
        return self._of("i1")

    def _of(self, element: str) -> str:
        return element if self.width == 1 else f"<{self.width} x {element}>"

    def _suffix(self, element: str) -> str:
        name = {"float": "f32", "double": "f64"}.get(element, element)
        return name if self.width == 1 else f"v{self.width}{name}"

    @property
    def suffix(self) -> str:
        """The suffix of intrinsics for this type."""
        return self._suffix(self.element)

    def as_dtype(self, dtype: np.dtype[Any] | str) -> "Lanes":
        """The same number of lanes of another dtype."""
        return Lanes(self.function, np.dtype(dtype), self.width)

    def narrowed(self) -> "Lanes":
        """One lane of the same dtype."""
        return Lanes(self.function, self.dtype, 1)

    def rounding_each(self) -> "Lanes":
        """The same, but every sum and product is rounded: for errors that are computed and taken off again."""
        return Lanes(self.function, self.dtype, self.width, contracts=False)

    # --- constants --------------------------------------------------------------------------------------------------
    def constant(self, value: Any) -> str:
        """A number in every lane."""
        return self._spread(self.element, number(value, self.dtype))

    def bits_constant(self, value: int) -> str:
        """A pattern of bits in every lane of `bits_type`."""
        return self._spread(f"i{self.dtype.itemsize * 8}", str(value))

    def known(self, value: str) -> Any | None:
        """The number that a value from `constant` is; None for what is computed when the program runs."""
        lanes = {lane.strip() for lane in value.removeprefix("<").removesuffix(">").split(",")}
        text = lanes.pop().rpartition(" ")[2]
        if lanes or (not text[:1].isdigit() and text[:1] != "-" and text not in ("true", "false")):
            return None
        if self.is_float:
            return struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
        return text == "true" if self.dtype.kind == "b" else int(text)

    def _spread(self, element: str, text: str) -> str:
        return text if self.width == 1 else f"<{', '.join([f'{element} {text}'] * self.width)}>"

    def splat(self, one: str) -> str:
        """A number in every lane."""
        if self.width == 1:
            return one
        first = self.function.value(f"insertelement {self.type} poison, {self.element} {one}, i64 0")
        order = f"<{self.width} x i32> zeroinitializer"
        return self.function.value(f"shufflevector {self.type} {first}, {self.type} poison, {order}")

    # --- arithmetic -------------------------------------------------------------------------------------------------
    def _two(self, of_floats: str, of_integers: str, a: str, b: str) -> str:
        operation = f"{of_floats}{' contract' if self.contracts else ''}" if self.is_float else of_integers
        return self.function.value(f"{operation} {self.type} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        """Sum."""
        return self._two("fadd", "add", a, b)

    def sub(self, a: str, b: str) -> str:
        """Difference."""
        return self._two("fsub", "sub", a, b)

    def mul(self, a: str, b: str) -> str:
        """Product."""
        return self._two("fmul", "mul", a, b)

    def div(self, a: str, b: str) -> str:
        """Quotient of floats."""
        return self.function.value(f"fdiv contract {self.type} {a}, {b}")

    def neg(self, a: str) -> str:
        """Negative."""
        if self.is_float:
            return self.function.value(f"fneg {self.type} {a}")
        return self.function.value(f"sub {self.type} {self.constant(0)}, {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """The sum a * b + c, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def mul_add(self, a: str, b: str, c: str) -> str:
        """The sum a * b + c, rounded once where that is one instruction, else twice."""
        return self.intrinsic("fmuladd", a, b, c)

    def absolute(self, a: str) -> str:
        """Magnitude."""
        return self.intrinsic("fabs", a)

    def sqrt(self, a: str) -> str:
        """Square root, correctly rounded."""
        return self.intrinsic("sqrt", a)

    def copysign(self, a: str, sign: str) -> str:
        """Magnitude of one float with the sign of another."""
        return self.intrinsic("copysign", a, sign)

    def intrinsic(self, name: str, *operands: str) -> str:
        """An intrinsic of LLVM's whose operands and result are all of this type."""
        function = f"llvm.{name}.{self._suffix(self.element)}"
        self.function.module.declare(function, self.type, *([self.type] * len(operands)))
        return self.function.call(self.type, f"@{function}", *((self.type, operand) for operand in operands))

    # --- comparing --------------------------------------------------------------------------------------------------
    def compare(self, relation: str, a: str, b: str) -> str:
        """A mask where a relation ("==", "<", …) holds; of NaN none does but "!="."""
        if self.dtype.kind == "b":
            as_bytes = self.as_dtype("i4")
            a, b = (self.convert(operand, as_bytes) for operand in (a, b))
            return as_bytes.compare(relation, a, b)
        of_floats, of_integers = _COMPARISONS[relation]
        predicate = f"fcmp {of_floats}" if self.is_float else f"icmp {of_integers}"
        return self.function.value(f"{predicate} {self.type} {a}, {b}")

    def is_nan(self, a: str) -> str:
        """A mask where a float is not a number."""
        return self.function.value(f"fcmp uno {self.type} {a}, {a}")

    def select(self, mask: str, a: str, b: str) -> str:
        """One value where a mask is true, the other elsewhere."""
        return self.function.value(f"select {self.mask_type} {mask}, {self.type} {a}, {self.type} {b}")

    # --- bits and conversions ---------------------------------------------------------------------------------------
    def bits(self, a: str) -> str:
        """The bits of floats as integers."""
        return self.function.value(f"bitcast {self.type} {a} to {self.bits_type}")

    def from_bits(self, a: str) -> str:
        """Floats of given bits."""
        return self.function.value(f"bitcast {self.bits_type} {a} to {self.type}")

    def on_bits(self, operation: str, a: str, b: str) -> str:
        """An integer instruction (add, sub, shl, lshr, ashr, and, or, xor) on `bits_type`."""
        return self.function.value(f"{operation} {self.bits_type} {a}, {b}")

    def convert(self, a: str, to: "Lanes") -> str:  # noqa: PLR0911 - one return for each pair of kinds
        """The same numbers in another dtype, as C converts them; a float that no integer of the dtype is near gives its least."""
        if to.dtype == self.dtype:
            return a
        kinds = (self.dtype.kind, to.dtype.kind)
        if to.dtype.kind == "b":
            return self.compare("!=", a, self.constant(0))
        if kinds == ("f", "f"):
            return self._cast("fpext" if to.dtype.itemsize > self.dtype.itemsize else "fptrunc", a, to)
        if kinds == ("f", "i"):
            return self._to_integer(a, to)
        if self.dtype.kind == "b":
            return self._cast("uitofp" if to.is_float else "zext", a, to)
        if kinds == ("i", "f"):
            return self._cast("sitofp", a, to)
        return self._cast("sext" if to.dtype.itemsize > self.dtype.itemsize else "trunc", a, to)

    def _cast(self, operation: str, a: str, to: "Lanes") -> str:
        return self.function.value(f"{operation} {self.type} {a} to {to.type}")

    def _to_integer(self, a: str, to: "Lanes") -> str:
        # fptosi of what does not fit is poison; the processor's own conversion, which NumPy uses, gives the least integer.
        least = -(2 ** (8 * to.dtype.itemsize - 1))
        fits = self.function.value(
            f"and {self.mask_type} {self.compare('>=', a, self.constant(least))}, {self.compare('<', a, self.constant(-least))}"
        )
        inside = self.select(fits, a, self.constant(0))
        return to.select(fits, self._cast("fptosi", inside, to), to.constant(least))

    # --- memory -----------------------------------------------------------------------------------------------------
    def load(self, pointer: str, index: Index = 0, *, stride: Index = 1, active: int | None = None) -> str:
        """Load a number for each lane, `stride` elements apart; only the first `active` ones, 0 in the others."""
        memory = _MEMORY[self.dtype.str[1:]]
        start = self.function.element(pointer, index, memory)
        whole = active is None or active >= self.width
        if self.width == 1:
            loaded = self.function.load(memory, start, align=self.dtype.itemsize)
        elif stride == 0:
            return self.splat(self.narrowed().load(start))
        elif stride == 1:
            loaded = self._load_row(memory, start) if whole else self._load_masked(memory, start, active)
        else:
            loaded = self._load_strided(memory, start, stride, self.width if active is None else active)
        if self.dtype.kind != "b":
            return loaded
        return self.function.value(f"icmp ne {self._of('i8')} {loaded}, {self._spread('i8', '0')}")

    def _load_row(self, memory: str, start: str) -> str:
        return self.function.load(self._of(memory), start, align=self.dtype.itemsize)

    def _load_masked(self, memory: str, start: str, active: int | None) -> str:
        if active and active.bit_count() == 1:
            piece = f"<{active} x {memory}>"
            loaded = self.function.load(piece, start, align=self.dtype.itemsize)
            order = ", ".join(f"i32 {min(lane, active)}" for lane in range(self.width))  # lane `active` is a zero
            shuffle = f"shufflevector {piece} {loaded}, {piece} zeroinitializer, <{self.width} x i32> <{order}>"
            return self.function.value(shuffle)
        type_, name = self._of(memory), f"llvm.masked.load.{self._suffix(memory)}.p0"
        self.function.module.declare(name, type_, "ptr", "i32", self._of("i1"), type_)
        return self.function.call(
            type_,
            f"@{name}",
            ("ptr", start),
            ("i32", self.dtype.itemsize),
            (self._of("i1"), self.first(active or 0)),
            (type_, "zeroinitializer"),
        )

    def _load_strided(self, memory: str, start: str, stride: Index, active: int) -> str:
        type_, gathered = self._of(memory), "zeroinitializer"
        for lane in range(min(active, self.width)):
            place = self.function.element(start, self.function.mul(lane, stride), memory)
            one = self.function.load(memory, place, align=self.dtype.itemsize)
            gathered = self.function.value(f"insertelement {type_} {gathered}, {memory} {one}, i64 {lane}")
        return gathered

    def store(
        self, value: str, pointer: str, index: Index = 0, *, stride: Index = 1, active: int | None = None
    ) -> None:
        """Write the lanes, or the first `active` of them, `stride` elements apart."""
        memory = _MEMORY[self.dtype.str[1:]]
        start = self.function.element(pointer, index, memory)
        if self.dtype.kind == "b":
            value = self.function.value(f"zext {self.type} {value} to {self._of('i8')}")
        type_ = self._of(memory)
        if self.width == 1 or (stride == 1 and (active is None or active >= self.width)):
            self.function.store(type_, value, start, align=self.dtype.itemsize)
        elif stride == 1 and (self.function.module.vector_bits < 512 or (active or 0).bit_count() <= 2):
            self._store_pieces(value, start, active or 0)
        elif stride == 1:
            name = f"llvm.masked.store.{self._suffix(memory)}.p0"
            self.function.module.declare(name, "void", type_, "ptr", "i32", self._of("i1"))
            mask = (self._of("i1"), self.first(active or 0))
            self.function.call("void", f"@{name}", (type_, value), ("ptr", start), ("i32", self.dtype.itemsize), mask)
        else:
            for lane in range(self.width if active is None else min(active, self.width)):
                one = self.function.value(f"extractelement {type_} {value}, i64 {lane}")
                place = self.function.element(start, self.function.mul(lane, stride), memory)
                self.function.store(memory, one, place, align=self.dtype.itemsize)

    def _store_pieces(self, value: str, start: str, active: int) -> None:
        """Write the first lanes by powers of two of them.

        A masked store of AVX2 takes 20 cycles on AMD's processors; one of AVX-512 is as fast as two stores.
        """
        memory, done = _MEMORY[self.dtype.str[1:]], 0
        while done < active:
            count = 1 << (active - done).bit_length() - 1
            places = ", ".join(f"i32 {done + lane}" for lane in range(count))
            type_, order = self._of(memory), f"<{count} x i32> <{places}>"
            piece = self.function.value(f"shufflevector {type_} {value}, {type_} poison, {order}")
            place = self.function.element(start, done, memory)
            self.function.store(f"<{count} x {memory}>", piece, place, align=self.dtype.itemsize)
            done += count

    def first(self, active: int) -> str:
        """A mask of the first lanes."""
        if self.width == 1:
            return "true" if active else "false"
        return f"<{', '.join('i1 true' if lane < active else 'i1 false' for lane in range(self.width))}>"

    # --- across lanes -----------------------------------------------------------------------------------------------
    def lane(self, a: str, lane: int) -> str:
        """One of the lanes."""
        return a if self.width == 1 else self.function.value(f"extractelement {self.type} {a}, i64 {lane}")

    def sum_lanes(self, a: str) -> str:
        """Sum of the lanes, in an order that suits the machine."""
        if self.width == 1:
            return a
        if not self.is_float:
            return reduce_lanes(self, "add", a)
        name = f"llvm.vector.reduce.fadd.{self._suffix(self.element)}"
        self.function.module.declare(name, self.element, self.element, self.type)
        start = number(-0.0, self.dtype)
        return self.function.value(f"call reassoc {self.element} @{name}({self.element} {start}, {self.type} {a})")

    def largest_lane(self, a: str) -> str:
        """Largest of the lanes; NaN if one is."""
        return a if self.width == 1 else reduce_lanes(self, "fmaximum" if self.is_float else "smax", a)

    def smallest_lane(self, a: str) -> str:
        """Smallest of the lanes; NaN if one is."""
        return a if self.width == 1 else reduce_lanes(self, "fminimum" if self.is_float else "smin", a)

    def all_lanes(self, mask: str) -> str:
        """True if a mask is true in every lane."""
        return mask if self.width == 1 else reduce_lanes(self.as_dtype("?"), "and", mask)

    def any_lane(self, mask: str) -> str:
        """True if a mask is true in some lane."""
        return mask if self.width == 1 else reduce_lanes(self.as_dtype("?"), "or", mask)


def reduce_lanes(lanes: Lanes, operation: str, a: str) -> str:
    """Reduce all lanes to one number, by one of LLVM's reductions that need no first number."""
    name = f"llvm.vector.reduce.{operation}.{lanes.suffix}"
    lanes.function.module.declare(name, lanes.element, lanes.type)
    return lanes.function.call(lanes.element, f"@{name}", (lanes.type, a))
