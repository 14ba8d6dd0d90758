"""Elementwise primitives in registers: a row each, by name.

    compute(primitive, function, width, values, dtypes, result_dtype)   writes the code and gives the result
    why_not(primitive, dtypes, result_dtype)                            the reason why a primitive is not computed here
    cost(primitive, dtype)                                              about how many cycles a vector of it takes
    uses(steps)                                                         counts the functions that may be called

Rows are found by name, so that functions of scipy.special are here without SciPy being imported.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.backends.llvm.builder.function import Function
from pullback.backends.llvm.builder.lanes import DTYPES, Lanes
from pullback.backends.llvm.builder.llvm_module import Use
from pullback.backends.llvm.elementary import (
    activations,
    arithmetic,
    called_functions,
    entropies,
    error_function,
    exp,
    hyperbolic,
    log,
    powers,
    sigmoid,
    trigonometric,
)
from pullback.core.primitive import Primitive
from pullback.dataclass import dataclass

Emit = Callable[..., str]
"""Called with lanes of the dtype computed in, and a value for each operand."""


@dataclass(frozen=True, slots=True)
class Row:
    """The native implementation of one primitive."""

    emit: Emit
    kinds: str
    """Kinds of dtypes it is computed in."""
    cost: int
    """Cycles for a vector of singles; doubles take twice as many where there is a polynomial."""
    asks: bool = False
    """True if the result is a truth value."""
    operands: int = 1
    """Their number."""


def _by_kind(floats: Emit, integers: Emit) -> Emit:
    def emit(lanes: Lanes, *values: str) -> str:
        return (floats if lanes.is_float else integers)(lanes, *values)

    return emit


def _method(name: str) -> Emit:
    def emit(lanes: Lanes, *values: str) -> str:
        result: str = getattr(lanes, name)(*values)
        return result

    return emit


def _compared(relation: str) -> Emit:
    return lambda lanes, a, b: lanes.compare(relation, a, b)


def _bitwise(operation: str) -> Emit:
    return lambda lanes, a, b: arithmetic.both(lanes, operation, a, b)


def _on_truths(operation: str) -> Emit:
    def emit(lanes: Lanes, *values: str) -> str:
        truths = lanes.as_dtype("?")
        return arithmetic.both(truths, operation, *(arithmetic.truth(lanes, value) for value in values))

    return emit


def _of_booleans(operation: str, others: Emit) -> Emit:
    """NumPy adds truth values with "or" and multiplies them with "and"."""

    def emit(lanes: Lanes, *values: str) -> str:
        return arithmetic.both(lanes, operation, *values) if lanes.dtype.kind == "b" else others(lanes, *values)

    return emit


def _invert(lanes: Lanes, x: str) -> str:
    return arithmetic.both(lanes, "xor", x, lanes.constant(1 if lanes.dtype.kind == "b" else -1))


def _logical_not(lanes: Lanes, x: str) -> str:
    truths = lanes.as_dtype("?")
    return arithmetic.both(truths, "xor", arithmetic.truth(lanes, x), truths.constant(1))


def _itself(_: Lanes, x: str) -> str:
    return x


def _times(factor: float) -> Emit:
    return lambda lanes, x: lanes.mul(x, lanes.constant(factor))


def _rounded(intrinsic: str) -> Emit:
    return _by_kind(lambda lanes, x: lanes.intrinsic(intrinsic, x), _itself)


def _extremum(relation: str) -> Emit:
    return lambda lanes, a, b: arithmetic.extremum(lanes, relation, a, b)


def _extremum_of_numbers(relation: str) -> Emit:
    return lambda lanes, a, b: arithmetic.extremum_of_numbers(lanes, relation, a, b)


def _with_nan_of(lanes: Lanes, v: str, y: str) -> str:
    return lanes.select(lanes.is_nan(y), y, v)


ROWS: Mapping[str, Row] = {
    # --- arithmetic -------------------------------------------------------------------------------------------------
    "add": Row(_of_booleans("or", _method("add")), "fib", 1, operands=2),
    "sub": Row(_method("sub"), "fi", 1, operands=2),
    "mul": Row(_of_booleans("and", _method("mul")), "fib", 1, operands=2),
    "div": Row(_method("div"), "f", 8, operands=2),
    "neg": Row(_method("neg"), "fi", 1),
    "square": Row(powers.square, "fi", 1),
    "reciprocal": Row(powers.reciprocal, "f", 8),
    "sqrt": Row(_method("sqrt"), "f", 10),
    "spread": Row(_method("sqrt"), "f", 10),
    "absolute": Row(arithmetic.absolute, "fib", 1),
    "identity": Row(_itself, "fi", 0),
    "sign": Row(arithmetic.sign, "fi", 4),
    "copysign": Row(_method("copysign"), "f", 2, operands=2),
    "heaviside": Row(arithmetic.heaviside, "f", 5, operands=2),
    "maximum": Row(_extremum(">"), "fib", 2, operands=2),
    "minimum": Row(_extremum("<"), "fib", 2, operands=2),
    "fmax": Row(_extremum_of_numbers(">"), "fib", 2, operands=2),
    "fmin": Row(_extremum_of_numbers("<"), "fib", 2, operands=2),
    "with_nan_of": Row(_with_nan_of, "f", 2, operands=2),
    "floor": Row(_rounded("floor"), "fib", 2),
    "ceil": Row(_rounded("ceil"), "fib", 2),
    "trunc": Row(_rounded("trunc"), "fib", 2),
    "rint": Row(_rounded("rint"), "f", 2),
    "floor_divide": Row(
        _by_kind(arithmetic.floor_divide_floats, arithmetic.floor_divide_integers), "fi", 40, operands=2
    ),
    "remainder": Row(_by_kind(arithmetic.remainder_of_floats, arithmetic.remainder_of_integers), "fi", 30, operands=2),
    "fmod": Row(_by_kind(arithmetic.fmod, arithmetic.fmod_of_integers), "fi", 25, operands=2),
    "deg2rad": Row(_times(math.pi / 180), "f", 1),
    "rad2deg": Row(_times(180 / math.pi), "f", 1),
    "inverse": Row(arithmetic.inverse, "f", 9),
    # --- powers and roots -------------------------------------------------------------------------------------------
    "power": Row(powers.power, "f", 90, operands=2),
    "cbrt": Row(powers.cbrt, "f", 40),
    "hypot": Row(powers.hypot, "f", 30, operands=2),
    # --- questions and bits -----------------------------------------------------------------------------------------
    "equal": Row(_compared("=="), "fib", 1, asks=True, operands=2),
    "not_equal": Row(_compared("!="), "fib", 1, asks=True, operands=2),
    "less": Row(_compared("<"), "fib", 1, asks=True, operands=2),
    "less_equal": Row(_compared("<="), "fib", 1, asks=True, operands=2),
    "greater": Row(_compared(">"), "fib", 1, asks=True, operands=2),
    "greater_equal": Row(_compared(">="), "fib", 1, asks=True, operands=2),
    "isnan": Row(arithmetic.is_nan, "fib", 1, asks=True),
    "isinf": Row(arithmetic.is_infinite, "fib", 2, asks=True),
    "isfinite": Row(arithmetic.is_finite, "fib", 2, asks=True),
    "signbit": Row(arithmetic.signbit, "f", 1, asks=True),
    "logical_and": Row(_on_truths("and"), "fib", 2, asks=True, operands=2),
    "logical_or": Row(_on_truths("or"), "fib", 2, asks=True, operands=2),
    "logical_xor": Row(_on_truths("xor"), "fib", 2, asks=True, operands=2),
    "logical_not": Row(_logical_not, "fib", 2, asks=True),
    "bitwise_and": Row(_bitwise("and"), "ib", 1, operands=2),
    "bitwise_or": Row(_bitwise("or"), "ib", 1, operands=2),
    "bitwise_xor": Row(_bitwise("xor"), "ib", 1, operands=2),
    "invert": Row(_invert, "ib", 1),
    "complement": Row(_invert, "ib", 1),
    "left_shift": Row(arithmetic.left_shift, "i", 3, operands=2),
    "right_shift": Row(arithmetic.right_shift, "i", 3, operands=2),
    # --- elementary functions ---------------------------------------------------------------------------------------
    "exp": Row(exp.exp, "f", 18),
    "exp2": Row(exp.exp2, "f", 18),
    "exp10": Row(exp.exp10, "f", 24),
    "expm1": Row(exp.expm1, "f", 20),
    "log": Row(log.log, "f", 28),
    "quiet_log": Row(log.log, "f", 28),
    "log2": Row(log.log2, "f", 34),
    "log10": Row(log.log10, "f", 36),
    "log1p": Row(log.log1p, "f", 38),
    "sin": Row(trigonometric.sin, "f", 30),
    "cos": Row(trigonometric.cos, "f", 30),
    "tan": Row(trigonometric.tan, "f", 40),
    "arcsin": Row(trigonometric.arcsin, "f", 30),
    "arccos": Row(trigonometric.arccos, "f", 34),
    "arctan": Row(trigonometric.arctan, "f", 30),
    "arctan2": Row(trigonometric.arctan2, "f", 44, operands=2),
    "sinh": Row(hyperbolic.sinh, "f", 30),
    "cosh": Row(hyperbolic.cosh, "f", 28),
    "tanh": Row(hyperbolic.tanh, "f", 30),
    "arcsinh": Row(hyperbolic.arcsinh, "f", 70),
    "arccosh": Row(hyperbolic.arccosh, "f", 60),
    "arctanh": Row(hyperbolic.arctanh, "f", 60),
    "expit": Row(sigmoid.sigmoid, "f", 30),
    "log_expit": Row(sigmoid.log_sigmoid, "f", 60),
    "logit": Row(sigmoid.logit, "f", 50),
    "logaddexp": Row(sigmoid.logaddexp, "f", 60, operands=2),
    "logaddexp2": Row(sigmoid.logaddexp2, "f", 60, operands=2),
    "erf": Row(error_function.erf, "f", 40),
    "erfc": Row(error_function.erfc, "f", 120),
    "ndtr": Row(error_function.normal_cdf, "f", 120),
    "xlogy": Row(entropies.xlogy, "f", 32, operands=2),
    "xlog1py": Row(entropies.xlog1py, "f", 42, operands=2),
    "entr": Row(entropies.entr, "f", 32),
    # --- activations ------------------------------------------------------------------------------------------------
    "sigmoid": Row(sigmoid.sigmoid, "f", 30),
    "sigmoid_fast": Row(sigmoid.sigmoid_fast, "f", 28),
    "softplus": Row(sigmoid.softplus, "f", 60),
    "logsigmoid": Row(sigmoid.log_sigmoid, "f", 60),
    "relu": Row(activations.relu, "fi", 1),
    "relu6": Row(activations.relu6, "fi", 2),
    "hardtanh": Row(activations.hardtanh, "fi", 2),
    "hardsigmoid": Row(activations.hardsigmoid, "f", 10),
    "hardswish": Row(activations.hardswish, "f", 12),
    "tanh_fast": Row(activations.tanh_fast, "f", 22),
    "softsign": Row(activations.softsign, "f", 10),
    "lisht": Row(activations.lisht, "f", 30),
    "swish": Row(activations.swish, "f", 32),
    "gelu_sigmoid": Row(activations.gelu_sigmoid, "f", 34),
    "gelu_tanh": Row(activations.gelu_tanh, "f", 36),
    "gelu_erf": Row(activations.gelu_erf, "f", 120),
    "normal_cdf": Row(error_function.normal_cdf, "f", 120),
    "mish": Row(activations.mish, "f", 90),
}


def why_not(primitive: Primitive, dtypes: Sequence[np.dtype[Any]], result_dtype: np.dtype[Any]) -> str | None:
    """The reason why a primitive is not computed here in these dtypes; None if it is."""
    strange = next((dtype for dtype in (*dtypes, result_dtype) if dtype not in DTYPES), None)
    if strange is not None:
        return f"{primitive.name} of {strange}, which native programs do not compute with"
    if primitive.name in _MOVES:
        return None
    row = ROWS.get(primitive.name)
    if row is None:
        return f"{primitive.name} is not written in native code"
    given = " and ".join(map(str, dtypes))
    is_as_written = len(dtypes) == row.operands and all(dtype == dtypes[0] for dtype in dtypes)
    if not is_as_written or dtypes[0].kind not in row.kinds:
        return f"{primitive.name} of {given}"
    if result_dtype != (np.dtype(bool) if row.asks else dtypes[0]):
        return f"{primitive.name} of {given} as {result_dtype}"
    return None


#: Primitives that choose, copy or convert: any dtypes go in.
_MOVES = frozenset({"where", "astype", "copy"})


def compute(
    primitive: Primitive,
    function: Function,
    width: int,
    values: Sequence[str],
    dtypes: Sequence[np.dtype[Any]],
    result_dtype: np.dtype[Any],
    params: Sequence[tuple[str, Any]] = (),
    *,
    most_bodies: int = called_functions.MOST_BODIES,
) -> str:
    """Write the code of a primitive for as many lanes as the width says; gives the result, of its dtype.

    There is a value for each operand, of the dtypes that NumPy's loop would convert them to. Numbers known now should be
    constants of `Lanes.constant`: an exponent that is known is cheaper, and so is a limit. A function with more uses in the
    module than `most_bodies` is called.
    """
    del params  # only where the new dtype is, which is also the result's
    lanes = [Lanes(function, dtype, width) for dtype in dtypes]
    if primitive.name == "where":
        return lanes[1].select(arithmetic.truth(lanes[0], values[0]), *values[1:])
    if primitive.name in _MOVES:
        return lanes[0].convert(values[0], Lanes(function, result_dtype, width))
    names = _called_together(primitive, dtypes)
    if function.module.uses[names, dtypes[0]] > most_bodies and all(lanes[0].known(value) is None for value in values):
        results = called_functions.call(lanes[0], "_".join(names), [ROWS[name].emit for name in names], values)
        return results[names.index(primitive.name)]
    return ROWS[primitive.name].emit(lanes[0], *values)


#: Functions from so many cycles on are called where there are many of them.
_CALLED = 18

_SINE_AND_COSINE = ("sin", "cos")
"""One reduction of the argument gives both, and a derivative of one needs the other."""


def _called_together(primitive: Primitive, dtypes: Sequence[np.dtype[Any]]) -> tuple[str, ...]:
    """The names of the functions that a call for a primitive computes; none if its body is always written in place."""
    row = ROWS.get(primitive.name)
    if row is None or row.cost < _CALLED or dtypes[0].kind != "f":
        return ()
    return _SINE_AND_COSINE if primitive.name in _SINE_AND_COSINE else (primitive.name,)


def uses(steps: Iterable[tuple[Primitive, Sequence[np.dtype[Any]]]]) -> Counter[Use]:
    """Counts of the functions that may be called, over steps given by primitive and operand dtypes."""
    return Counter((names, dtypes[0]) for primitive, dtypes in steps if (names := _called_together(primitive, dtypes)))


def cost(primitive: Primitive, dtype: np.dtype[Any]) -> int:
    """About how many cycles a vector of results takes, computed in a dtype."""
    row = ROWS.get(primitive.name)
    if row is None:
        return 1
    return 2 * row.cost if row.cost > 2 and dtype.itemsize == 8 else row.cost
