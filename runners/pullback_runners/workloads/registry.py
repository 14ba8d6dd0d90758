"""The registry: a workload is declared by decorators and found by its name."""

import difflib
import importlib
import importlib.util
import inspect
import itertools
import pkgutil
import re
import runpy
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from pullback_runners.errors import UsageError
from pullback_runners.suites import SUITES
from pullback_runners.workloads.case import CPU, Case, Parameter
from pullback_runners.workloads.error_location import place_in

Inputs = dict[str, Any]
"""Arguments by name, in the order of the function to differentiate."""

ValueAndGradients = tuple[Any, dict[str, Any]]
"""A value and its gradients by the name of the argument, or its other derivatives by the names that they were given."""

Compose = Callable[..., Callable[..., tuple[Any, tuple[Any, ...]]]]
"""`compose(pb, function, **params)`: from the arguments to the value and its derivatives, by the engine `pb`."""

Prepare = Callable[..., Callable[[], Any]]
"""`prepare(**inputs, **params)`: the call that computes the value and its gradients from these arguments."""

Grid = list[dict[str, Parameter]]

_LONGEST_NAME = 200
_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?")
"""Names that the service accepts."""

TIERS = ("unfused", "fused", "stateful", "native")
"""Every tier that the product knows; an engine says in `pullback.TIERS` which of them it can run."""

UNFUSED = TIERS[0]
"""The tier that is the baseline where a workload has a NumPy form and names no other."""


def grid(**axes: Sequence[Parameter]) -> Grid:
    """All combinations of the axes, the last one fastest; `dtype` is one of them and defaults to f8."""
    names = list(axes)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*axes.values())]


@dataclass
class Workload:
    """A function to differentiate, and all that is needed to check and measure its gradient.

    Calling it with size parameters gives the plain NumPy function at that size, if it has one. The decorators `inputs`,
    `oracle`, `variant` and `peer` complete the declaration; a workload without inputs is refused when it is first used.
    What is differentiated is a number, by reverse mode; `derivative` declares what else is asked of a workload.
    """

    name: str
    function: Callable[..., Callable[..., Any]]
    wrt: tuple[str, ...]
    grids: Mapping[str, Grid]
    _inputs: Callable[..., Inputs] | None = None
    _oracle: Callable[..., ValueAndGradients] | None = None
    has_numpy: bool = True
    """True if its function gives a NumPy function, which the tiers differentiate."""
    named_baseline: str | None = None
    variants: dict[str, Prepare] = field(default_factory=dict)
    """Forms that the workload declares beside its NumPy form, by name."""
    _declared_in: dict[str, Callable[..., Any]] = field(default_factory=dict)
    _compose: Compose | None = None
    derivatives: tuple[str, ...] = ()
    """Names of what is computed beside the value; `wrt` unless `derivative` declares others."""

    def __post_init__(self) -> None:
        self.derivatives = self.derivatives or self.wrt

    @property
    def sentence(self) -> str:
        """The description of the workload in one line."""
        return next(iter((self.__doc__ or "").strip().splitlines()), "(its function has no docstring)")

    @property
    def mathematics(self) -> str:
        """The mathematics of the workload: its module's docstring, or else its own."""
        return (self.function.__globals__.get("__doc__") or self.__doc__ or self.sentence).strip()

    @property
    def is_foreign(self) -> bool:
        """True if the workload is a user's own and not of this package."""
        return not _is_own(self.function)

    @property
    def file(self) -> str:
        """The file that declares it."""
        return self.function.__code__.co_filename

    def place_of(self, error: BaseException, top: str | None = None) -> str:
        """The places in its file, and in the repository at `top`, where an error was raised, in parentheses; empty if it was elsewhere."""
        declared = {"inputs": self._inputs, "oracle": self._oracle, "derivative": self._compose}
        declared |= {f"variant {name}": function for name, function in self._declared_in.items()}
        codes = {role: getattr(function, "__code__", None) for role, function in declared.items()}
        roles = {code: f"the {role} of {self.name}" for role, code in codes.items() if code is not None}
        return place_in((self.file,), error, roles, top)

    def __call__(self, **params: Parameter) -> Callable[..., Any]:
        """Return the plain NumPy function to differentiate at these sizes."""
        return self.function(**params)

    def inputs(self, make: Callable[..., Inputs]) -> Callable[..., Inputs]:
        """Declare how arguments are drawn: `make(rng, dtype, **params)`."""
        self._inputs = make
        return make

    def oracle(self, closed_form: Callable[..., ValueAndGradients]) -> Callable[..., ValueAndGradients]:
        """Declare the closed form: `closed_form(**inputs, **params)` in double precision, by hand, no engine of ours."""
        self._oracle = closed_form
        return closed_form

    def derivative(self, *names: str) -> Callable[[Compose], Compose]:
        """Declare derivatives that are no gradients of a number: Jacobians, second and nested ones, forward mode."""

        def declare(compose: Compose) -> Compose:
            self._compose, self.derivatives = compose, names
            return compose

        return declare

    def differentiated(self, pb: Any, **params: Parameter) -> Callable[..., Any]:
        """Return the function, differentiated by the engine `pb`: a value, and derivatives in the order of their names."""
        function = self(**params)
        if self._compose is None:
            return pb.value_and_grad(function, wrt=self.wrt)  # type: ignore[no-any-return] # a transform's own
        return self._compose(pb, function, **params)

    def variant(self, name: str) -> Callable[[Prepare], Prepare]:
        """Declare another way to value and gradients: `prepare(**inputs, **params)` runs once and returns what is timed."""
        self._refuse_unfit(name)

        def declare(prepare: Prepare) -> Prepare:
            self.variants[name] = self._declared_in[name] = prepare
            return prepare

        return declare

    def peer(self, name: str) -> Callable[[Callable[..., ValueAndGradients]], Callable[..., ValueAndGradients]]:
        """Declare a variant that needs no preparation: `run(**inputs, **params)` is what is timed."""
        self._refuse_unfit(name)

        def declare(run: Callable[..., ValueAndGradients]) -> Callable[..., ValueAndGradients]:
            self.variants[name] = lambda **arguments: partial(run, **arguments)
            self._declared_in[name] = run
            return run

        return declare

    def _refuse_unfit(self, name: Any) -> None:
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
            raise UsageError(
                f"workload {self.name} declares a variant {name!r:.50}; give it a name of one line and at most {_LONGEST_NAME} characters"
            )
        if name in TIERS:
            raise UsageError(
                f"workload {self.name} declares a variant {name!r}, which is a tier of Pullback's engine; give it another name"
            )

    @property
    def baseline(self) -> str | None:
        """The variant that ratios are against; None where there is nothing to be compared with."""
        if self.named_baseline is not None or self.has_numpy:
            return self.named_baseline or UNFUSED
        return next(iter(self.variants)) if len(self.variants) > 1 else None

    @property
    def has_oracle(self) -> bool:
        """True if gradients are checked against a closed form; derivatives of other kinds have to be."""
        return self._oracle is not None or self._compose is not None

    def draw_inputs(self, case: Case) -> Inputs:
        """Arguments of a case; the same in every process, since the seed is derived from the case's name."""
        if self._inputs is None:
            raise UsageError(f"workload {self.name} declares no inputs; decorate a function with @{self.name}.inputs")
        on_cpu = replace(case, device=CPU)  # the same arguments on every device
        rng = np.random.default_rng(zlib.crc32(on_cpu.name.encode()))
        return self._inputs(rng, np.dtype(case.dtype), **dict(case.params))

    def closed_form(self, case: Case, inputs: Inputs) -> ValueAndGradients:
        """Value and gradients of a case by the oracle, in double precision."""
        if self._oracle is None:
            raise UsageError(f"workload {self.name} has no oracle; decorate its closed form with @{self.name}.oracle")
        double = {name: in_double_precision(value) for name, value in inputs.items()}
        return self._oracle(**double, **dict(case.params))

    def cases(self, suite: str, device: str = CPU) -> list[Case]:
        """The cases of this workload in a suite, to be computed on a device."""
        named = suite if suite in self.grids or suite not in SUITES else SUITES[suite].sizes or suite
        return [
            Case(
                workload=self.name,
                params=tuple((name, value) for name, value in size.items() if name != "dtype"),
                dtype=str(size.get("dtype", "f8")),
                device=device,
            )
            for size in self.grids.get(named, [])
        ]


def in_double_precision(value: Any) -> Any:
    """An argument with its single-precision numbers as double ones; everything else as it is."""
    if hasattr(value, "map"):  # a block; the engine is not imported here, a worker chooses which one it will be
        return value.map(in_double_precision)
    if isinstance(value, dict):
        return {name: in_double_precision(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(in_double_precision, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return value


def _is_own(function: Callable[..., Any]) -> bool:
    return function.__module__.startswith("pullback_runners.workloads.")


_workloads: dict[str, Workload] = {}

FIX_IT = "; fix the file"
"""The remedy for a file that cannot be loaded; a file that another commit can load needs none."""
ENTRY_POINTS = "pullback.workloads"
"""Installed packages name modules that declare workloads under this group of entry points."""


def workload(
    *, wrt: str | tuple[str, ...], numpy: bool = True, baseline: str | None = None, **grids: Grid
) -> Callable[[Callable[..., Any]], Workload]:
    """Register a function of the size parameters that returns the function to differentiate.

    `wrt` names the arguments to differentiate with respect to. With `numpy=False` there is no NumPy function, and only
    declared variants are measured. `baseline` is the variant that ratios are against. Each other keyword is a suite with its
    grid of sizes.
    """

    def register(function: Callable[..., Any]) -> Workload:
        name = function.__name__
        unknown = sorted(set(grids) - set(SUITES))
        if unknown:
            raise UsageError(
                f"workload {name} has sizes for {unknown[0]!r}, which is no suite; known: {', '.join(SUITES)}"
            )
        if name in _workloads and not _workloads[name].is_foreign and not _is_own(function):
            raise UsageError(f"workload {name} is one of Pullback's own; give yours another name")
        if numpy:
            _refuse_other_parameters(function, grids)
        names = (wrt,) if isinstance(wrt, str) else wrt
        declared = Workload(name, function, names, grids, has_numpy=numpy, named_baseline=baseline)
        declared.__doc__ = function.__doc__
        _workloads[name] = declared
        return declared

    return register


def _refuse_other_parameters(function: Callable[..., Any], grids: Mapping[str, Grid]) -> None:
    """Refuse a function that cannot be called with its sizes, such as one that takes the arguments of its gradient."""
    name, signature = function.__name__, inspect.signature(function)
    for size in itertools.chain.from_iterable(grids.values()):
        sizes = [parameter for parameter in size if parameter != "dtype"]
        try:
            signature.bind(**dict.fromkeys(sizes))
        except TypeError:
            raise UsageError(
                f"workload {name} takes {signature}, but is called with its sizes, ({', '.join(sizes)}), and returns the function to "
                f"differentiate; write def {name}({', '.join(sizes)}): return lambda x: ..."
            ) from None


def known_workloads() -> list[Workload]:
    """Every registered workload by name: our own, those of installed packages, those of files that were loaded."""
    _load_own()
    broken_packages()
    return [_workloads[name] for name in sorted(_workloads)]


def _load_own() -> None:
    """Load our own workloads, but for those that need what an environment of a project does not hold, such as SciPy."""
    package = importlib.import_module("pullback_runners.workloads")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("pullback"):
                raise


@cache
def broken_packages() -> tuple[str, ...]:
    """Load the workloads of installed packages, once; a sentence for each entry point that cannot be loaded."""
    import importlib.metadata  # noqa: PLC0415 - 3 MB in a timed process, which asks for no packages

    _load_own()
    sentences = []
    for entry_point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry_point.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever another package raises is not ours to end by
            sentences.append(
                f"entry point {entry_point.name} of {ENTRY_POINTS} ({entry_point.value}) cannot be loaded: {error!r}; "
                "fix or uninstall the package"
            )
    return tuple(sentences)


def load_workload_file(path: Path, *, beside_own: bool = True, top: str | None = None) -> list[str]:
    """Register the workloads of a Python file that is not part of this package, and return their names.

    Our own are loaded first, so that none of the file can take a name of theirs. A worker, whose coordinator has done so,
    goes without: they are forty modules with all that those import, half of the time that it takes to start. Errors name the
    innermost line of the repository that is measured, which lies at `top`.
    """
    if not path.is_file():
        raise UsageError(f"no workload file {path}; give the path of a Python file that declares workloads")
    if beside_own:
        _load_own()
    before = dict(_workloads)
    try:
        runpy.run_path(str(path), run_name=f"pullback_workloads_{path.stem}")
    except (Exception, SystemExit) as error:
        _workloads.clear()
        _workloads.update(before)  # what it had declared by then, a worker would not find
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        said = text if isinstance(error, UsageError) else f"{type(error).__name__}{f': {text}' if text else ''}"
        name = path.relative_to(top) if top and path.is_relative_to(top) else path
        place = place_in((str(path),), error, top=top).replace(f"({name}, ", "(")
        is_unreadable = isinstance(error, PermissionError) and error.filename == str(path)
        remedy = "; fix its permissions" if is_unreadable else FIX_IT
        raise UsageError(f"{name} cannot be loaded{place}: {said}{remedy}") from error
    names = [name for name, declared in _workloads.items() if before.get(name) is not declared]
    if not names:
        raise UsageError(f"{path} declares no workload; decorate a function with @workload, as docs/workloads.md shows")
    return names


def own_workload(name: str) -> Workload | None:
    """Our workload of this name, or None; code of others is not imported to look for it."""
    found = _loaded_workload(name)
    return None if found is None or found.is_foreign else found


def _loaded_workload(name: str) -> Workload | None:
    if name not in _workloads and name.isidentifier() and importlib.util.find_spec(f"{__package__}.{name}") is not None:
        importlib.import_module(f"{__package__}.{name}")
    return _workloads.get(name)


def find_workload(name: str) -> Workload:
    """Return the workload of this name.

    Its own file is enough where it has one: an older engine may lack what another workload takes from it when imported.
    """
    if (loaded := _loaded_workload(name)) is not None:
        return loaded
    known = {each.name: each for each in known_workloads()}
    if name not in known:
        raise UsageError(f"no workload {name!r}; {suggestion(name, known)}`pullback workloads` shows them all")
    return known[name]


def suggestion(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, or begins so, as the beginning of a remedy; nothing if none is."""
    names = list(known)
    by_spelling = {each.partition("_")[0]: each for each in names} | {each: each for each in names}
    near = difflib.get_close_matches(name, by_spelling, n=1)
    return f"did you mean {by_spelling[near[0]]}? " if near else ""
