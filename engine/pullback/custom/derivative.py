"""The derivative that an author gave a function: pulls, pushes, or either made from the other.

Both are the same linear map, so one determines the other: to push a tangent, the pull is transposed, which reverse mode
does (it is linear in y_bar, and its derivative by y_bar is its transpose). That the map is linear is checked in
passing, because a rule may do other things to a cotangent (clip it, say), and then there is nothing to transpose.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.kinds import unbroadcast
from pullback.core.primitive import TracedValue
from pullback.core.types import dtype_of, shape_of
from pullback.errors import DifferentiationError, NoRuleError, TracingError
from pullback.transforms.linearization import vjp, zero_like

Maps = dict[int, Callable[..., Any] | None]


class Derivative:
    """The derivatives that are registered for one function."""

    def __init__(self, name: str, operands: Sequence[str]) -> None:
        self.name = name
        self.operands = operands
        self.pulls: Maps = {}
        self.pushes: Maps = {}
        self.joint_pull: Callable[..., Any] | None = None
        self.joint_push: Callable[..., Any] | None = None

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """All functions that are registered."""
        every = (*self.pulls.values(), *self.pushes.values(), self.joint_pull, self.joint_push)
        return tuple(function for function in every if function is not None)

    @property
    def has_pull(self) -> bool:
        """True if reverse mode is given."""
        return self.joint_pull is not None or bool(self.pulls)

    @property
    def has_push(self) -> bool:
        """True if forward mode is given."""
        return self.joint_push is not None or bool(self.pushes)

    def set_maps(
        self, table: Maps, maps: Sequence[Callable[..., Any] | None], by_name: dict[str, Callable[..., Any] | None]
    ) -> None:
        """Register maps by position and by name."""
        if len(maps) > len(self.operands) > 0:
            raise TypeError(f"{self.name} has {len(self.operands)} operands, got {len(maps)} maps")
        given = dict(enumerate(maps))
        for name, map_ in by_name.items():
            if name not in self.operands:
                raise TypeError(f"{self.name} has no operand {name!r}; it has {', '.join(self.operands) or 'none'}")
            given[self.operands.index(name)] = map_
        for place, given_map in given.items():
            if given_map is not None and self.operands:
                self._require_fitting(given_map, self.operands[place])
        table.update(given)

    def _require_fitting(self, map_: Callable[..., Any], operand: str) -> None:
        """Refuse a map with too few or too many parameters now, and not when a derivative is first needed."""
        try:
            parameters = inspect.signature(map_).parameters.values()
        except (TypeError, ValueError):  # a function in C that does not tell
            return
        positional = [
            parameter for parameter in parameters if parameter.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD
        ]
        required = sum(parameter.default is inspect.Parameter.empty for parameter in positional)
        takes_any = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
        expected = 2 + len(self.operands)
        if required > expected or (len(positional) < expected and not takes_any):
            raise TypeError(
                f"{self.name}: the map by {operand} takes {expected} values by position, the cotangent or tangent, the "
                f"result and the operands ({', '.join(self.operands)}); this one takes {len(positional)}"
            )

    def covers(self, place: int) -> bool:
        """True if there is anything to differentiate by an operand with."""
        joint = self.joint_pull is not None or self.joint_push is not None
        return joint or place in self.pulls or place in self.pushes

    def missing(self, place: int) -> str:
        """The message where there is none."""
        operand = self.operands[place] if place < len(self.operands) else f"operand {place}"
        return (
            f"{self.name} has no derivative by {operand}; give it one, {self.name}.pulls({operand}=lambda y_bar, y, …: …), "
            f"or {self.name}.pulls({operand}=None) if it is zero"
        )

    # --- reverse --------------------------------------------------------------------------------------------------------
    def pull(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], options: dict[str, Any]
    ) -> list[Any]:
        """A cotangent per operand; None where it is not needed, or zero."""
        if self.joint_pull is not None:
            cotangents = self.joint_pull(tuple(needed), y_bar, y, *operands, **options)
            if not isinstance(cotangents, tuple | list) or len(cotangents) != len(operands):
                raise DifferentiationError(
                    f"{self.name}.pull must return a tuple of {len(operands)} cotangents, one per operand; "
                    "those that are not needed may be None"
                )
            return [
                self._asked_for(place, cotangent) if need else None
                for place, (need, cotangent) in enumerate(zip(needed, cotangents, strict=True))
            ]
        return [self._mapped(place, y_bar, y, operands, options) if need else None for place, need in enumerate(needed)]

    def _mapped(self, place: int, y_bar: Any, y: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
        if place not in self.pulls:
            raise NoRuleError(self.missing(place))
        map_ = self.pulls[place]
        return None if map_ is None else self._asked_for(place, map_(y_bar, y, *operands, **options))

    def _asked_for(self, place: int, cotangent: Any) -> Any:
        if cotangent is None:
            operand = self.operands[place] if place < len(self.operands) else f"operand {place}"
            raise DifferentiationError(
                f"{self.name} gave no cotangent for {operand}, whose gradient is needed; return zeros if it is zero"
            )
        return cotangent

    # --- forward --------------------------------------------------------------------------------------------------------
    def push(self, tangents: Sequence[Any], y: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
        """Tangent of the result."""
        if self.joint_push is not None:
            return self.joint_push(tuple(tangents), y, *operands, **options)
        total = None
        for place, dx in enumerate(tangents):
            if dx is None:
                continue
            if place not in self.pushes:
                raise NoRuleError(self.missing(place).replace(".pulls(", ".pushes(").replace("y_bar", "dx"))
            map_ = self.pushes[place]
            if map_ is not None:
                term = map_(dx, y, *operands, **options)
                total = term if total is None else total + term
        return total


def fitted(name: str, cotangent: Any, value: Any) -> Any:
    """A cotangent in the precision of its operand, if it has the operand's shape."""
    if shape_of(cotangent) != shape_of(value):
        raise DifferentiationError(
            f"{name} gave a cotangent of shape {shape_of(cotangent)} for an operand of shape {shape_of(value)}"
        )
    return unbroadcast(cotangent, shape_of(value), dtype_of(value))


def transposed(
    name: str, given: str, linear: Callable[..., tuple[Any, ...]], at: Sequence[Any], arguments: Sequence[Any]
) -> tuple[Any, ...]:
    """The transpose of a linear function of as many arrays as `at` has, applied to what it has results."""
    wanted = {"pull": "push", "push": "pull"}[given]
    remedy = f"add {name}.{wanted}{'es' if wanted == 'push' else 's'}(…)"
    try:
        values, back = vjp(linear, *(zero_like(x) for x in at))[:2]
        result: tuple[Any, ...] = back(tuple(arguments))
    except (TracingError, DifferentiationError) as error:
        raise DifferentiationError(
            f"{name} has no {wanted}, and its {given} cannot be transposed into one ({error}); {remedy}"
        ) from error
    everything = [*result, *values, *arguments]
    if not any(isinstance(value, TracedValue) for value in everything) and not _is_transpose(linear, result, arguments):
        raise DifferentiationError(
            f"{name} has no {wanted}, and its {given} is not linear, so there is nothing to transpose; {remedy}"
        )
    return result


def _is_transpose(linear: Callable[..., tuple[Any, ...]], result: Sequence[Any], arguments: Sequence[Any]) -> bool:
    """True if <linear(u), v> equals <u, transpose(v)> for a u that is neither small nor smooth."""
    probes = [_probe(np.asarray(x)) for x in result]
    left = _pairing(linear(*probes), arguments)
    right = _pairing(probes, result)
    sizes = [np.asarray(x) for x in (*result, *arguments)]
    precision = max((float(np.finfo(x.dtype).eps) for x in sizes if x.dtype.kind in "fc"), default=1e-16)
    scale = 1 + abs(left) + abs(right) + sum(float(np.sum(np.absolute(x))) for x in sizes)
    return not np.isfinite(scale) or bool(abs(left - right) <= np.sqrt(precision) * scale)


def _probe(x: np.ndarray[Any, Any]) -> Any:
    angles = np.arange(1.0, x.size + 1).reshape(x.shape)
    waves = 3 * np.cos(angles) + (2j * np.sin(2 * angles) if x.dtype.kind == "c" else 0)
    return waves.astype(x.dtype)[()]


def _pairing(left: Sequence[Any], right: Sequence[Any]) -> float:
    return float(sum(np.real(np.sum(np.multiply(a, b))) for a, b in zip(left, right, strict=True)))
