"""`pb.primitive`: a function that the engine does not look into, and the derivative its author gives it.

    @pb.primitive
    def softclip(x, limit):
        return limit * np.tanh(x / limit)

    softclip.pulls(
        x=lambda y_bar, y, x, limit: y_bar * (1 - (y / limit) ** 2),
        limit=lambda y_bar, y, x, limit: np.sum(y_bar * (y / limit - x / limit * (1 - (y / limit) ** 2))),
    )

docs/custom-rules.md has the whole story, with examples that run.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from pullback import trees
from pullback.core.primitive import Trace, TracedValue, innermost_recorder
from pullback.core.types import is_array_like
from pullback.custom.derivative import Derivative
from pullback.custom.function_primitive import Call, FunctionPrimitive
from pullback.errors import NoRuleError, TracingError
from pullback.traces.recorder import Recorder
from pullback.traces.tangents import ForwardTrace
from pullback.traces.tape import Tape

_F = TypeVar("_F", bound=Callable[..., Any])


class CustomPrimitive:
    """A function with a derivative of its own. Call it like the function; register the derivative with its methods.

    Operands are the positional arguments: arrays, numbers, or trees of them. Keyword-only arguments are options: constant,
    and of a kind that can be hashed.
    """

    def __init__(self, function: Callable[..., Any], results: int) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "the function")
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._signature = _signature_of(function)
        self._names = _positional_names(self._signature)
        self._derivative = Derivative(self.__name__, self._names)
        self._applied = FunctionPrimitive(self.__name__, function, self._derivative, results)

    def __repr__(self) -> str:
        return f"<primitive {self.__name__}>"

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions that plans trace, to watch their captured variables. The function itself is called as it is."""
        return self._derivative.functions

    def pulls(self, *maps: Callable[..., Any] | None, **by_name: Callable[..., Any] | None) -> None:
        """Reverse mode, an operand at a time: `map(y_bar, y, *operands)` gives the cotangent of its operand.

        Only what is needed is called. None means that the derivative is zero everywhere it exists.

            softclip.pulls(x=lambda y_bar, y, x, limit: y_bar * (1 - (y / limit) ** 2), limit=None)
        """
        self._derivative.set_maps(self._derivative.pulls, maps, by_name)

    def pushes(self, *maps: Callable[..., Any] | None, **by_name: Callable[..., Any] | None) -> None:
        """Forward mode, an operand at a time: `map(dx, y, *operands)` gives what its tangent adds to that of the result.

        softclip.pushes(x=lambda dx, y, x, limit: dx * (1 - (y / limit) ** 2), limit=None)
        """
        self._derivative.set_maps(self._derivative.pushes, maps, by_name)

    def pull(self, function: _F) -> _F:
        """Reverse mode for all operands at once: `pull(needed, y_bar, y, *operands)` gives a tuple of cotangents.

        `needed` has a truth value per operand; the cotangent of what is not needed may be None.
        """
        self._derivative.joint_pull = function
        return function

    def push(self, function: _F) -> _F:
        """Forward mode for all operands at once: `push(tangents, y, *operands)` gives the tangent of the result.

        A tangent is None for an operand that does not move.
        """
        self._derivative.joint_push = function
        return function

    def infer(self, function: _F) -> _F:
        """Type of the result: `infer(*types)` gives a type, or a pair (shape, dtype).

        Without it a plan finds the type by running the function once, on the values it is being made for.
        """
        self._applied.user_infer = function
        return function

    def batch(self, function: _F) -> _F:
        """Many examples at once, for vmap: `batch(batched, *operands)`, where what is batched has a leading axis more.

        Without it the function runs once for each example.
        """
        self._applied.user_batch = function
        return function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The value; transformations use the derivative given here."""
        operands, options = self._bind(args, keywords)
        leaves, rebuild = trees.flatten(operands)
        counts = tuple(len(trees.flatten(operand)[0]) for operand in operands)
        for leaf in [*leaves, *filter(trees.is_constant, operands)]:
            if not isinstance(leaf, TracedValue) and not is_array_like(leaf):
                raise TracingError(
                    f"{self.__name__}: an operand holds a {type(leaf).__name__}, not an array or a number; "
                    "make it a keyword-only argument, which is an option and constant"
                )
        for name, option in options.items():
            if isinstance(option, TracedValue) or not _is_hashable(option):
                raise TracingError(
                    f"{self.__name__}: the option {name} is a {type(option).__name__}, which may change or be "
                    "differentiated; make it a positional argument"
                )
        trace = max(
            (leaf.traced_by for leaf in leaves if isinstance(leaf, TracedValue)),
            key=lambda own: own.level,
            default=None,
        )
        if trace is None:
            trace = innermost_recorder()
        call = Call(rebuild, trees.structure(operands), counts, options)
        if isinstance(trace, Tape | ForwardTrace):
            self._require_derivative(trace, operands)
        elif isinstance(trace, Recorder) and self._applied.user_infer is None:
            call = self._applied.observed(call, leaves, trace)
        return self._applied(*leaves, call=call)

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Operands by position, options by keyword."""
        if self._signature is None or (not keywords and len(args) == len(self._names)):
            return args, keywords
        bound = self._signature.bind(*args, **keywords)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _require_derivative(self, trace: Trace, operands: Sequence[Any]) -> None:
        """Refuse a function without a derivative where it is called, not later where the derivative is taken."""
        for place, operand in enumerate(operands):
            moves = any(isinstance(leaf, TracedValue) and leaf.traced_by is trace for leaf in trees.flatten(operand)[0])
            if moves and not self._derivative.covers(place):
                raise NoRuleError(self._derivative.missing(place))


@overload
def primitive(function: Callable[..., Any], /) -> CustomPrimitive: ...
@overload
def primitive(function: None = None, /, *, results: int = 1) -> Callable[[Callable[..., Any]], CustomPrimitive]: ...
def primitive(
    function: Callable[..., Any] | None = None, /, *, results: int = 1
) -> CustomPrimitive | Callable[[Callable[..., Any]], CustomPrimitive]:
    """Make a function one that the engine does not look into: its derivative is what you give it.

    Positional arguments are operands, keyword-only ones are options. `.pulls` gives a map per operand for reverse mode,
    `.pushes` for forward mode, `.pull` and `.push` one for all. With `results` the function returns a tuple of that many
    arrays, and a rule gets a tuple of cotangents.

    >>> @pb.primitive
    ... def cube(x):
    ...     return x**3
    >>> _ = cube.pulls(x=lambda y_bar, y, x: y_bar * 3 * x**2)
    >>> pb.grad(cube)(2.0)
    12.0
    """
    if function is not None:
        return CustomPrimitive(function, results)
    return lambda function: CustomPrimitive(function, results)


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some functions written in C do not tell


def _positional_names(signature: inspect.Signature | None) -> tuple[str, ...]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [] if signature is None else signature.parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind in positional)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
