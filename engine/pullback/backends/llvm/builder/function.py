"""A function being written: names of values, memory, integer arithmetic on indices, loops.

An index is an integer of the module's `index_type`, either a number known now or the name of a value; arithmetic on known numbers is done here. Variables
that change live in *slots* (allocas), which SROA turns into registers, so no phi is ever written.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pullback.backends.llvm.builder.llvm_module import Module

Index: TypeAlias = int | str
_BYTES = {"i8": 1, "i32": 4, "i64": 8, "float": 4, "double": 8, "ptr": 8}
T = TypeVar("T")


class Function:
    """One function; statements are appended to the block that is open."""

    def __init__(
        self,
        module: "Module",
        name: str,
        parameters: Sequence[tuple[str, str]],
        *,
        returns: str,
        internal: bool,
        inlined: bool = False,
    ) -> None:
        self.module = module
        self.index_type = module.index_type
        self.name = name
        self.returns = returns
        self.internal = internal
        self.inlined = inlined
        self.parameters = tuple(parameters)
        self._places: dict[str, tuple[str, int]] = {}
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._known: list[dict[Hashable, Any]] = [{}]
        self._count = 0
        self._ended = False

    def _next(self) -> int:
        self._count += 1
        return self._count

    # --- statements -------------------------------------------------------------------------------------------------
    def value(self, text: str) -> str:
        """An instruction with a result; gives its name."""
        name = f"%v{self._next()}"
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {text}")

    def note(self, text: str) -> None:
        """A comment in the text."""
        self._lines.append(f"  ; {text}")

    def call(self, returns: str, name: str, *arguments: tuple[str, Index]) -> str:
        """Call a function of the module or one it declares; gives the result, or "" of void."""
        text = _call_of(returns, name, arguments)
        if returns == "void":
            self.do(text)
            return ""
        return self.value(text)

    def call_later(self) -> Callable[..., None]:
        """A call of a function that gives nothing, here; which one and of what is said later, by the name and arguments."""
        line = len(self._lines)
        self.do("")

        def say(name: str, *arguments: tuple[str, Index]) -> None:
            self._lines[line] = f"  {_call_of('void', name, arguments)}"

        return say

    def give(self, value: Index | None = None) -> None:
        """Return from the function here; without it a void function returns at its end."""
        self.do("ret void" if value is None else f"ret {self.returns} {value}")
        self._ended = True

    # --- indices ----------------------------------------------------------------------------------------------------
    def add(self, a: Index, b: Index) -> Index:
        """Sum of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.value(f"add nsw {self.index_type} {a}, {b}")

    def sub(self, a: Index, b: Index) -> Index:
        """Difference of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.value(f"sub nsw {self.index_type} {a}, {b}")

    def mul(self, a: Index, b: Index) -> Index:
        """Product of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.value(f"mul nsw {self.index_type} {a}, {b}")

    def divide(self, a: Index, b: int) -> tuple[Index, Index]:
        """Quotient and remainder of an index that is not negative."""
        if isinstance(a, int):
            return divmod(a, b)
        if b == 1:
            return a, 0
        quotient = self.value(f"udiv {self.index_type} {a}, {b}")
        return quotient, self.sub(a, self.mul(quotient, b))

    def offset(self, *terms: tuple[Index, Index]) -> Index:
        """Sum of products: an offset of indices and their strides."""
        total: Index = 0
        for index, stride in terms:
            total = self.add(total, self.mul(index, stride))
        return total

    # --- memory -----------------------------------------------------------------------------------------------------
    def element(self, pointer: str, index: Index, type_: str) -> str:
        """Pointer to an element of a type, by its index from another one."""
        if index == 0:
            return pointer
        name = self.value(f"getelementptr {type_}, ptr {pointer}, {self.index_type} {index}")
        if isinstance(index, int) and type_ in _BYTES:
            base, offset = self.place_of(pointer)
            self._places[name] = base, offset + index * _BYTES[type_]
        return name

    def place_of(self, pointer: str) -> tuple[str, int]:
        """The base of a pointer, and its offset in bytes, where that is known."""
        return self._places.get(pointer, (pointer, 0))

    def load(self, type_: str, pointer: str, *, align: int | None = None) -> str:
        """Read one value of any type."""
        return self.value(f"load {type_}, ptr {pointer}{f', align {align}' if align else ''}")

    def store(self, type_: str, value: Index, pointer: str, *, align: int | None = None) -> None:
        """Write one value of any type."""
        self.do(f"store {type_} {value}, ptr {pointer}{f', align {align}' if align else ''}")

    def slot(self, type_: str, initial: Index | None = None, *, count: int = 1, align: int | None = None) -> str:
        """A variable: memory of the function's own, written here where there is an initial value.

        With a `count` it is an array, which stays in memory if it is indexed by what is not known now.
        """
        name = f"%s{self._next()}"
        many = f", i64 {count}" if count != 1 else ""
        self._slots.append(f"  {name} = alloca {type_}{many}{f', align {align}' if align else ''}")
        if initial is not None:
            self.store(type_, initial, name)
        return name

    # --- control ----------------------------------------------------------------------------------------------------
    def once(self, key: Hashable, write: Callable[[], T]) -> T:
        """The result of `write`; where it was written before with this key, and has surely run, that is used again.

        The code generator finds what is computed twice within a block only. What is written in a loop or under a
        condition is forgotten behind it.
        """
        for known in self._known:
            if key in known:
                found: T = known[key]
                return found
        self._known[-1][key] = result = write()
        return result

    @contextmanager
    def _block(self, label: str) -> Iterator[None]:
        """A block that may not have run before what follows it."""
        self.open(label)
        self._known.append({})
        yield
        self._known.pop()

    def open(self, label: str) -> None:
        """Begin a block; the one before must have ended with a branch."""
        self._lines.append(f"{label}:")
        self._ended = False

    def new_label(self, hint: str) -> str:
        """A label of its own."""
        return f"{hint}{self._next()}"

    @contextmanager
    def loop(self, start: Index, stop: Index, step: int = 1, *, at_least_once: bool = False) -> Iterator[Index]:
        """A loop of an index over range(start, stop, step); a single turn, if known now, is written without a loop.

        Whether it runs at all is checked first where that is not known now, but for what runs `at_least_once`.
        """
        known = isinstance(start, int) and isinstance(stop, int)
        if isinstance(start, int) and isinstance(stop, int):
            if stop <= start:
                raise ValueError(f"a loop from {start} to {stop} has no turn")
            if stop - start <= step:
                yield start
                return
        type_ = self.index_type
        index = self.slot(type_, start)
        body, after = self.new_label("loop"), self.new_label("after")
        if known or at_least_once:
            self.do(f"br label %{body}")
        else:
            runs = self.value(f"icmp slt {type_} {start}, {stop}")
            self.do(f"br i1 {runs}, label %{body}, label %{after}")
        with self._block(body):
            now = self.load(type_, index)
            yield now
            following = self.value(f"add nsw {type_} {now}, {step}")
            self.store(type_, following, index)
            again = self.value(f"icmp slt {type_} {following}, {stop}")
            self.do(f"br i1 {again}, label %{body}, label %{after}")
        self.open(after)

    @contextmanager
    def loop_while(self, goes_on: Callable[[], str]) -> Iterator[None]:
        """A loop that runs while an i1 is true, which is computed before each turn."""
        head, body, after = self.new_label("while"), self.new_label("loop"), self.new_label("after")
        self.do(f"br label %{head}")
        with self._block(head):
            condition = goes_on()
            self.do(f"br i1 {condition}, label %{body}, label %{after}")
        with self._block(body):
            yield
            self.do(f"br label %{head}")
        self.open(after)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """A block that runs only where an i1 is true."""
        inside, after = self.new_label("when"), self.new_label("after")
        self.do(f"br i1 {condition}, label %{inside}, label %{after}")
        with self._block(inside):
            yield
            if not self._ended:
                self.do(f"br label %{after}")
        self.open(after)

    def text(self) -> str:
        """The function as IR."""
        parameters = ", ".join(f"{type_} %{name}" for type_, name in self.parameters)
        attributes = "alwaysinline nounwind" if self.inlined else "nounwind"
        head = f"define {'internal ' if self.internal else ''}{self.returns} @{self.name}({parameters}) {attributes} {{"
        end = [] if self._ended or self.returns != "void" else ["  ret void"]
        return "\n".join([head, "entry:", *self._slots, *self._lines, *end, "}", ""])


def _call_of(returns: str, name: str, arguments: Sequence[tuple[str, Index]]) -> str:
    return f"call {returns} {name}({', '.join([f'{type_} {value}' for type_, value in arguments])})"
