"""A module: functions, what they call from outside, and constants."""

from collections.abc import Hashable, Sequence

from pullback.backends.native.writing.function import Function


class Module:
    """The text of one program; `vector_bits` is how wide a register of the machine it is for is."""

    def __init__(self, vector_bits: int) -> None:
        self.vector_bits = vector_bits
        self._functions: list[Function] = []
        self._declarations: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._names: set[str] = set()
        self.kernels: dict[Hashable, Function] = {}

    def function(
        self, name: str, parameters: Sequence[tuple[str, str]], *, returns: str = "void", internal: bool = True
    ) -> Function:
        """A new function with parameters of (type, name); its name is made unique where it is taken."""
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        function = Function(self, unique, parameters, returns=returns, internal=internal)
        self._functions.append(function)
        return function

    def declare(self, name: str, returns: str, *parameters: str) -> str:
        """A function from outside; gives its name with the @."""
        self._declarations[name] = f"declare {returns} @{name}({', '.join(parameters)})"
        return f"@{name}"

    def constant(self, type_: str, value: str, *, align: int = 64) -> str:
        """A pointer to constant data; the same data is there once."""
        text = f"internal unnamed_addr constant {type_} {value}, align {align}"
        return self._constants.setdefault(text, f"@constant{len(self._constants)}")

    def text(self) -> str:
        """All of it."""
        constants = [f"{name} = {text}" for text, name in self._constants.items()]
        functions = [function.text() for function in self._functions]
        return "\n".join([*constants, *sorted(self._declarations.values()), "", *functions])
