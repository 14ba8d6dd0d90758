"""A module: functions, what they call from outside, and constants."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pullback.backends.llvm.builder.function import Function

Use: TypeAlias = tuple[tuple[str, ...], np.dtype[Any]]
"""Elementary functions that are computed together, and the dtype they are computed in."""


class DeferredKernel:
    """A kernel of pointers that is written when all its calls are known.

    Of a kernel that is called once, pointers into the same memory are one parameter and numbers of bytes, which become parts
    of addresses: a third of the time that LLVM takes for long programs, and of nests of many operands a third of their loads.
    """

    def __init__(self, function: Function, build: Callable[[Function, Sequence[str]], None]) -> None:
        self._function = function
        self._build = build
        self._calls: list[tuple[Function, Callable[..., None], tuple[str, ...]]] = []

    def call(self, caller: Function, pointers: Sequence[str]) -> None:
        """Call it here."""
        self._calls.append((caller, caller.call_later(), tuple(pointers)))

    def write(self) -> None:
        """Write it, and its calls."""
        function, (caller, _, first) = self._function, self._calls[0]
        places = [(str(number), 0) for number in range(len(first))]
        if len(self._calls) == 1:
            places = [caller.place_of(pointer) for pointer in first]
        parameters = {base: f"p{number}" for number, base in enumerate(dict.fromkeys(base for base, _ in places))}
        function.parameters = tuple(("ptr", name) for name in parameters.values())
        for _, say, pointers in self._calls:
            given = parameters if len(self._calls) == 1 else pointers
            say(f"@{function.name}", *(("ptr", pointer) for pointer in given))
        own = {place: function.element(f"%{parameters[place[0]]}", place[1], "i8") for place in places}
        self._build(function, [own[place] for place in places])


class Module:
    """The text of one program; `vector_bits` is how wide a register of the machine it is for is."""

    def __init__(self, vector_bits: int, index_type: str = "i64") -> None:
        self.vector_bits = vector_bits
        self.index_type = index_type
        self._functions: list[Function] = []
        self._declarations: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._names: set[str] = set()
        self.kernels: dict[Hashable, Function] = {}
        self.uses: Counter[Use] = Counter()
        """The number of times that elementary functions are computed, counted before bodies are written."""
        self.later: dict[Hashable, DeferredKernel] = {}
        """Kernels by their keys that are written when all their calls are known."""

    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        *,
        returns: str = "void",
        internal: bool = True,
        inlined: bool = False,
    ) -> Function:
        """A new function with parameters of (type, name); its name is made unique where it is taken."""
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        function = Function(self, unique, parameters, returns=returns, internal=internal, inlined=inlined)
        self._functions.append(function)
        return function

    def declare(self, name: str, returns: str, *parameters: str) -> str:
        """A function from outside, unless the module defines it after all; gives its name with the @."""
        self._declarations[name] = f"declare {returns} @{name}({', '.join(parameters)})"
        return f"@{name}"

    def is_declared(self, name: str) -> bool:
        """True if a function of this name is called from outside."""
        return name in self._declarations and name not in self._names

    def constant(self, type_: str, value: str, *, align: int = 64) -> str:
        """A pointer to constant data; the same data is there once."""
        text = f"internal unnamed_addr constant {type_} {value}, align {align}"
        return self._constants.setdefault(text, f"@constant{len(self._constants)}")

    def text(self) -> str:
        """The text of the module."""
        for kernel in self.later.values():
            kernel.write()
        self.later.clear()
        constants = [f"{name} = {text}" for text, name in self._constants.items()]
        functions = [function.text() for function in self._functions]
        declarations = sorted(text for name, text in self._declarations.items() if name not in self._names)
        return "\n".join([*constants, *declarations, "", *functions])
