"""Functions that can be differentiated, found in a repository by reading its files: nothing of it is imported or run."""

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

ENGINES: Mapping[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "jax": ("jax",),
    "torch": ("torch",),
    "autograd": ("autograd",),
    "mygrad": ("mygrad",),
}
"""Engines, and the packages by whose imports they are recognized."""

SKIPPED_FOLDERS = frozenset(
    [
        "test",
        "tests",
        "testing",
        "doc",
        "docs",
        "example",
        "examples",
        "bench",
        "benchmark",
        "benchmarks",
        "script",
        "scripts",
        "tool",
        "tools",
        "build",
        "dist",
        "notebooks",
        "node_modules",
        "site-packages",
    ]
)
_MOST_FILES, _MOST_BYTES = 2000, 1 << 20

_BUILTINS = frozenset(
    ["abs", "enumerate", "float", "int", "len", "list", "max", "min", "pow", "range", "reversed", "sum", "tuple", "zip"]
)
_METHODS = frozenset(
    [
        "clip",
        "conj",
        "copy",
        "cumsum",
        "diagonal",
        "dot",
        "exp",
        "flatten",
        "item",
        "log",
        "matmul",
        "max",
        "mean",
        "min",
        "norm",
        "permute",
        "pow",
        "prod",
        "ravel",
        "reshape",
        "sigmoid",
        "sin",
        "cos",
        "sqrt",
        "square",
        "squeeze",
        "std",
        "sum",
        "t",
        "tanh",
        "trace",
        "transpose",
        "unsqueeze",
        "var",
        "view",
    ]
)
"""Methods of arrays and tensors; any other may be a method of anything."""

_REDUCTIONS = frozenset(
    [
        "det",
        "dot",
        "inner",
        "logsumexp",
        "max",
        "mean",
        "mean_squared_error",
        "min",
        "mse_loss",
        "norm",
        "prod",
        "sum",
        "trace",
        "vdot",
    ]
)
_OF_MATRICES = frozenset(
    ["det", "inv", "solve", "cholesky", "slogdet", "eigh", "eigvalsh", "svd", "trace", "matmul", "dot"]
)
_FORBIDDEN = (
    *(ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.With, ast.Try),
    *(ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Delete, ast.NamedExpr),
)
_GRADIENTS = re.compile(r"(_vjp|_grad)$|gradient|^grad_|^value_and_grad")
"""Names of functions that look as if they returned a gradient."""
_LOSSES = re.compile(r"loss|objective|energy|cost|likelihood|log_?p|potential|residual|error|penalty")


@dataclass(frozen=True)
class Argument:
    """An argument that has to be given: an array of this rank, or a whole number."""

    name: str
    rank: int
    is_whole: bool = False


@dataclass(frozen=True)
class PlainFunction:
    """A function at the top of a module that computes by one engine from arrays and numbers, and does nothing else."""

    module: str
    name: str
    engine: str
    arguments: tuple[Argument, ...]
    is_number: bool
    """True if it returns a number by the look of it."""
    place: str
    """File and line, for people."""

    @property
    def differentiable(self) -> tuple[Argument, ...]:
        """The arguments that may be arrays."""
        return tuple(each for each in self.arguments if not each.is_whole)

    def of_matrices(self) -> Iterator["PlainFunction"]:
        """The same with matrices where vectors were assumed, if there are any."""
        arguments = tuple(replace(each, rank=2) if each.rank == 1 else each for each in self.arguments)
        if arguments != self.arguments:
            yield replace(self, arguments=arguments)


def python_files(folder: Path) -> Iterator[Path]:
    """Python files of a source folder, shallow ones first, without tests, documents and environments."""
    results = [
        path
        for path in folder.rglob("*.py")
        if not any(
            _is_skipped(folder.joinpath(*path.relative_to(folder).parts[:depth])) for depth in _depths(folder, path)
        )
        and not path.name.startswith(("test_", "conftest", "setup", "noxfile", "_version"))
        and path.is_file()
        and path.stat().st_size < _MOST_BYTES
    ]
    yield from sorted(results, key=lambda path: (len(path.parts), path))[:_MOST_FILES]


def imported_engines(folder: Path) -> dict[str, Path]:
    """Engines other than NumPy that files of a folder import, each with the first file that does."""
    results: dict[str, Path] = {}
    for path in python_files(folder):
        for name in _imports(parsed(path)).values():
            engine = _engine_of(name)
            if engine not in {None, "numpy"}:
                results.setdefault(str(engine), path)
    return results


def imported_by(folder: Path) -> Counter[str]:
    """The number of files of a folder that import each module or package at their top."""
    return Counter(
        top
        for path in python_files(folder)
        for top in {name.partition(".")[0] for name in _imports(parsed(path)).values()} - {path.stem}
    )


def plain_functions(folder: Path, top: Path) -> list[PlainFunction]:
    """Functions of the modules in a source folder that can be tried without harm, the likeliest objectives first."""
    results: list[PlainFunction] = []
    for path in python_files(folder):
        with contextlib.suppress(RecursionError):  # by an expression of a thousand terms, as programs write them
            results += _functions_of(path, folder, top)
    return sorted(results, key=_rank)


def gradient_functions(folder: Path) -> list[str]:
    """Public functions of the modules in a source folder that have names as of gradients, with their modules."""
    return [
        f"{'.'.join(parts)}.{node.name}"
        for path in python_files(folder)
        if (parts := _module_parts(path, folder))
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef) and _GRADIENTS.search(node.name) and not node.name.startswith("_")
    ]


def _rank(function: PlainFunction) -> tuple[bool, bool, int]:
    return (not _LOSSES.search(function.name.lower()), not function.is_number, len(function.arguments))


def _depths(folder: Path, path: Path) -> range:
    return range(1, len(path.relative_to(folder).parts))


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()


def parsed(path: Path) -> ast.Module:
    """The module in a file; an empty one where it cannot be read."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # A file for another Python, none at all, or an expression of thousands of terms: nothing is found in it.
        return ast.Module([], [])


def _imports(tree: ast.Module) -> dict[str, str]:
    """Names that a module's imports give, with what they stand for."""
    names: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for each in node.names:
                names[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
    return names


def _engine_of(name: str) -> str | None:
    package = name.partition(".")[0]
    return next((engine for engine, packages in ENGINES.items() if package in packages), None)


def _module_parts(path: Path, folder: Path) -> tuple[str, ...]:
    """The parts of the name that a file is imported by; none where it is not."""
    parts = path.relative_to(folder).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return parts if parts and parts[-1] != "__main__" and all(part.isidentifier() for part in parts) else ()


def _functions_of(path: Path, folder: Path, top: Path) -> Iterator[PlainFunction]:
    parts = _module_parts(path, folder)
    if not parts:
        return
    tree = parsed(path)
    reader = _Reader(tree)
    for name, node in reader.functions.items():
        engines = reader.engines_of(node) if not name.startswith("_") else None
        if engines is None:
            continue
        engine = (engines or reader.default_engines()) - ({"numpy"} if len(engines) > 1 else set())
        arguments = _arguments(node)
        if len(engine) == 1 and arguments and any(not each.is_whole for each in arguments):
            place = f"{path.relative_to(top)}, line {node.lineno}"
            yield PlainFunction(".".join(parts), name, engine.pop(), arguments, _returns_number(node), place)


class _Reader:
    """A module, read for functions that do nothing but compute."""

    def __init__(self, tree: ast.Module) -> None:
        self.imports = _imports(tree)
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self._engines: dict[str, set[str] | None] = {}

    def default_engines(self) -> set[str]:
        """The engine of a function that calls none: the one that its module imports, if it is one."""
        return {engine for name in self.imports.values() if (engine := _engine_of(name))}

    def engines_of(self, node: ast.FunctionDef) -> set[str] | None:
        """The engines that a function calls; None if it may do anything else than compute."""
        if node.name not in self._engines:
            self._engines[node.name] = None  # one that calls itself is left alone
            self._engines[node.name] = self._read(node)
        return self._engines[node.name]

    def _read(self, node: ast.FunctionDef) -> set[str] | None:
        engines: set[str] = set()
        for each in node.decorator_list:
            if self._called(each) != "jax":  # which compiles what it decorates; any other may change what is called
                return None
            engines.add("jax")
        known = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        returns = False
        for part in (inner for statement in node.body for inner in ast.walk(statement)):
            if isinstance(part, _FORBIDDEN):
                return None
            returns |= isinstance(part, ast.Return) and part.value is not None
            if isinstance(part, ast.Call):
                said = self._engines_called(part.func, known)
                if said is None:
                    return None
                engines |= said
        return engines if returns else None

    def _engines_called(self, called: ast.expr, arguments: set[str]) -> set[str] | None:
        """Engines that one call asks; None for a call of something unknown."""
        if isinstance(called, ast.Name):
            if called.id in self.functions:
                return self.engines_of(self.functions[called.id])
            if called.id in _BUILTINS and called.id not in self.imports:
                return set()
        if (engine := self._called(called)) is not None:
            return {engine}
        root = _root(called)
        is_method = isinstance(called, ast.Attribute) and called.attr in _METHODS
        return set() if is_method and not (root in self.imports and root not in arguments) else None

    def _called(self, expression: ast.expr) -> str | None:
        root = _root(expression)
        name = self.imports.get(root or "")
        if name is None or ".random" in f"{name}.{ast.unparse(expression)}":
            return None
        return _engine_of(name)


def _root(expression: ast.expr) -> str | None:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def _arguments(node: ast.FunctionDef) -> tuple[Argument, ...] | None:
    """The arguments without defaults; None if one of them cannot be drawn."""
    arguments = node.args
    missing = any(each is None for each in arguments.kw_defaults)
    if arguments.vararg or arguments.kwarg or missing:
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    given = positional[: len(positional) - len(arguments.defaults)]
    results = []
    for each in given:
        annotation = ast.unparse(each.annotation) if each.annotation else ""
        if each.arg in {"self", "cls"} or re.search(r"str|bool|Callable|[dD]ict|[lL]ist|Any\b", annotation):
            return None
        is_whole = annotation == "int" or _is_count(node, each.arg)
        rank = 0 if annotation == "float" else 2 if _is_matrix(node, each.arg) else 1
        results.append(Argument(each.arg, rank, is_whole))
    return tuple(results)


def _is_count(node: ast.FunctionDef, name: str) -> bool:
    """True if an argument is given to `range`."""
    return any(
        isinstance(part, ast.Call) and ast.unparse(part.func) == "range" and name in {ast.unparse(a) for a in part.args}
        for part in ast.walk(node)
    )


def _is_matrix(node: ast.FunctionDef, name: str) -> bool:
    """True if an argument is used as only a matrix is."""
    for part in ast.walk(node):
        match part:
            case ast.BinOp(left=ast.Name(id=left), op=ast.MatMult()) if left == name:
                return True
            case ast.Attribute(value=ast.Name(id=owner), attr="T") if owner == name:
                return True
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Tuple()) if owner == name:
                return True
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=owner), attr="shape"), slice=ast.Constant(value=1)
            ):
                if owner == name:
                    return True
            case ast.Call(func=ast.Attribute(attr=function), args=[ast.Name(id=first), *_]):
                if first == name and function in _OF_MATRICES:
                    return True
    return False


def _returns_number(node: ast.FunctionDef) -> bool:
    values = {
        ast.unparse(target): part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Assign)
        for target in part.targets
    }
    returned = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None]
    return all(_is_number(value, values) for value in returned)


def _is_number(value: ast.expr, assigned: Mapping[str, ast.expr], depth: int = 4) -> bool:
    """True if an expression is a number by its outermost operations: a reduction over everything, or made of such."""
    match value:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand, assigned, depth)
        case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
            return _is_number(left, assigned, depth) and _is_number(right, assigned, depth)
        case ast.Call(func=ast.Attribute(attr=function) | ast.Name(id=function), keywords=keywords):
            return function in _REDUCTIONS and not any(each.arg in {"axis", "dim"} for each in keywords)
        case ast.Name(id=name) if depth and name in assigned:
            return _is_number(assigned[name], assigned, depth - 1)
        case _:
            return False
