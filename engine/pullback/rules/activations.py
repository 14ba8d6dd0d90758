"""Activations: NNlib's, each an elementwise rule of one operand and its parameters.

Where mathematics allows the derivative is written from the output y: such a rule may overwrite its operand, and a layer
keeps one array. Which ones these are is found by tracing the maps (`pullback.nn.activation_choice`), never by a list.
Near saturation a derivative from the output is right absolutely, not relatively: y * (1 - y) loses digits as y -> 1.

At a kink the derivative is that of the piece named in docs/activations.md. Expressions are evaluated in pieces
(`pullback.core.pieces`), on plain numbers only; the maps are written in operations that can be differentiated again.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from pullback.core.cases import away_from, cases, normal, positive
from pullback.core.ignored_warnings import ignoring
from pullback.core.kinds import Scalar, ScalarMap
from pullback.core.pieces import Pieces

#: Beyond this every gate is 0 or 1 to the last bit, in every precision; infinities are brought here before products.
FAR = 1000.0


class Activation(Scalar):
    """An elementwise function of x and of numbers that shape it, evaluated in pieces: one array whatever it computes."""

    overwrites_result = True

    def __init__(
        self, name: str, expression: Callable[..., Any], *maps: ScalarMap, into: Callable[..., Any] | None = None
    ) -> None:
        """`into` writes an expression that is one ufunc, which needs no pieces: nothing lies between."""
        value = Pieces(name, expression)
        super().__init__(name, value, *(map_ and Pieces(name, map_) for map_ in maps), into=into or value.into)

    def pull_once(
        self, needed: Sequence[bool], y_bar: Any, y: Any, operands: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """The cotangent of x takes the place of y, where they are of one type."""
        x, *shapes = operands
        if any(needed[1:]) or np.shape(x) != y.shape or x.dtype != y.dtype:
            return self.pull(needed, y_bar, y, operands, params)
        return (in_pieces(self.maps[0]).into(y, y_bar, x, *shapes, y), *(None for _ in shapes))


@cache
def in_pieces(map_: Callable[..., Any]) -> Pieces:
    """A map of any scalar rule, evaluated in pieces."""
    return map_ if isinstance(map_, Pieces) else Pieces("map", map_)


def _floating(expression: Callable[..., Any]) -> Callable[..., Any]:
    """Integers become what NumPy's own exp makes of them; complex numbers are refused."""

    def evaluate(x: Any, *constants: Any) -> Any:
        dtype = np.result_type(x)
        if dtype.kind in "biu":
            x = np.asarray(x).astype(np.exp.resolve_dtypes((dtype, None))[-1])
        return expression(_real(x), *constants)

    return evaluate


def _real(x: Any) -> Any:
    if np.result_type(x).kind == "c":
        raise TypeError("activations other than identity and tanh take real numbers; pass x.real or abs(x)")
    return x


def _bounded(x: Any) -> Any:
    """x with infinities brought to where every gate is shut or open: inf * 0 would be nan."""
    return np.maximum(np.minimum(x, FAR), -FAR)


# --- straight pieces ------------------------------------------------------------------------------------------------
# Integers stay integers here. A nan belongs to no piece: the value is nan, the derivative 0.


def _is_number(a: Any) -> bool:
    return issubclass(type(a), int | float)


def _trelu(x: Any, theta: Any) -> Any:
    return np.where(_real(x) <= theta, 0, x)


def _softshrink(x: Any, lam: Any) -> Any:
    if _is_number(lam) and lam < 0:
        raise ValueError(f"softshrink shrinks by a length of at least 0, got {lam}")
    return x - np.maximum(np.minimum(x, lam), -lam)


def _slope_below(v: Any, x: Any, a: Any, y: Any) -> Any:
    """The map of a slope below zero; it reads the output if that has the sign of x, which a negative slope breaks."""
    return np.where((y if _is_number(a) and a >= 0 else x) > 0, v, a * v)


def _above_threshold(v: Any, x: Any, theta: Any, y: Any) -> Any:
    """The map of a threshold; it reads the output if zeros mean one thing there, which a negative threshold breaks."""
    return np.where(y > 0, v, 0) if _is_number(theta) and theta >= 0 else np.where(x > theta, v, 0)


identity = Scalar("identity", np.positive, lambda v, x, y: v)
relu = Activation(
    "relu",
    lambda x: np.maximum(_real(x), 0),
    lambda v, x, y: np.where(y > 0, v, 0),
    into=lambda out, x: np.maximum(_real(x), 0, out=out),
)
relu6 = Activation(
    "relu6",
    lambda x: np.minimum(np.maximum(_real(x), 0), 6),
    lambda v, x, y: np.where((y > 0) * (y < 6), v, 0),
)
hardtanh = Activation(
    "hardtanh",
    lambda x: np.minimum(x if np.result_type(x).kind == "u" else np.maximum(_real(x), -1), 1),
    lambda v, x, y: np.where((y > -1) * (y < 1), v, 0),
)
hardsigmoid = Activation(
    "hardsigmoid",
    _floating(lambda x: np.minimum(np.maximum((x + 3) / 6, 0), 1)),
    lambda v, x, y: np.where((y > 0) * (y < 1), v / 6, 0),
)
leakyrelu = Activation(
    "leakyrelu",
    _floating(lambda x, a: np.where(x > 0, x, a * x)),
    _slope_below,
    lambda v, x, a, y: np.where(x > 0, 0, v * x),
)
trelu = Activation("trelu", _trelu, _above_threshold, None)
softshrink = Activation(
    "softshrink",
    _floating(_softshrink),
    lambda v, x, lam, y: np.where(y != 0, v, 0),
    lambda v, x, lam, y: -v * np.sign(y),
)

# --- exponential pieces ---------------------------------------------------------------------------------------------
SELU_SCALE = 1.0507009873554804934193349852946  # Klambauer et al., arXiv 1706.02515
SELU_ALPHA = 1.6732632423543772848170429916717


def _elu_map(v: Any, x: Any, a: Any, y: Any) -> Any:
    """The map of elu; it reads the output if a > 0: with a = 0 it is 0 on one side, with a < 0 positive on both."""
    if _is_number(a) and a > 0:
        return np.where(y >= 0, v, v * (y + a))
    return np.where(x >= 0, v, v * (a * np.exp(np.minimum(x, 0))))


def _celu(x: Any, a: Any) -> Any:
    if _is_number(a) and a == 0:
        raise ValueError("celu divides by its parameter; pass a number other than 0")
    return np.maximum(x, 0) + a * np.expm1(np.minimum(x, 0) / a)


def _celu_of_parameter(v: Any, x: Any, a: Any, y: Any) -> Any:
    u = np.minimum(x, 0) / a
    return v * (np.expm1(u) - u * np.exp(u))


elu = Activation(
    "elu",
    _floating(lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0)))),
    _elu_map,
    lambda v, x, a, y: v * np.expm1(np.minimum(x, 0)),
)
selu = Activation(
    "selu",
    _floating(lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0)))),
    lambda v, x, y: np.where(y > 0, SELU_SCALE * v, v * (y + SELU_SCALE * SELU_ALPHA)),
)
celu = Activation(
    "celu",
    _floating(_celu),
    lambda v, x, a, y: np.where(y >= 0, v, v * (y / a + 1)),
    _celu_of_parameter,
)

# --- sigmoid and softplus -------------------------------------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow: exp only ever sees -|x|."""
    t = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, t) / (1 + t)


def _sigmoid_fast(x: Any) -> Any:
    """exp(-x) may be infinite, which gives the right 0."""
    with ignoring("over"):
        return 1 / (1 + np.exp(-x))


def _softplus(x: Any) -> Any:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)); the textbook form overflows near x = 710."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


sigmoid = Activation("sigmoid", _floating(_sigmoid), lambda v, x, y: v * (y * (1 - y)))
sigmoid_fast = Activation("sigmoid_fast", _floating(_sigmoid_fast), lambda v, x, y: v * (y * (1 - y)))
softplus = Activation("softplus", _floating(_softplus), lambda v, x, y: v * -np.expm1(-y))
logsigmoid = Activation("logsigmoid", _floating(lambda x: -_softplus(-x)), lambda v, x, y: v * -np.expm1(y))

# --- tanh and its relatives -----------------------------------------------------------------------------------------


def _tanh_fast(x: Any) -> Any:
    """A rational function in single precision, exponentials in double; never beyond 1, so that 1 - y*y is never negative.

    The coefficients are those of NNlib's tanh_fast. With fused multiply-adds the rational function is 1.0000001 at
    x = 8.078, hence the clamp.
    """
    single = np.result_type(x) == np.float32
    far = 8.124 if single else 30.0  # where both are 1 to rounding
    z = np.maximum(np.minimum(x, far), -far)
    y = _rational_tanh(z) if single else _exponential_tanh(z)
    return np.where(np.abs(x) > far, np.sign(x), np.maximum(np.minimum(y, 1), -1))


def _rational_tanh(x: Any) -> Any:
    x2 = x * x
    n = 1 + x2 * (0.1346604 + x2 * (0.0035974074 + x2 * (2.2332108e-5 + x2 * 1.587199e-8)))
    d = 1 + x2 * (0.4679937 + x2 * (0.026262015 + x2 * (0.0003453992 + x2 * 8.7767893e-7)))
    return x * n / d


def _exponential_tanh(x: Any) -> Any:
    x2 = x * x
    e = np.exp(2 * x)
    series = 0.13333333325511604 + x2 * (-0.05396823125794372 + x2 * (0.02186660872609521 + x2 * -0.008697141630499953))
    near = x * (1 + x2 * (-0.33333333333324583 + x2 * series))
    return np.where(x2 < 0.017, near, (e - 1) / (e + 1))


def _softsign(x: Any) -> Any:
    """x / (1 + |x|), with infinity over infinity taken as the largest finite number over itself."""
    largest = np.finfo(np.result_type(x)).max
    x = np.maximum(np.minimum(x, largest), -largest)
    return x / (1 + np.abs(x))


def _logcosh(x: Any) -> Any:
    """Near 0 through sinh, where |x| - log(2) would cancel."""
    a = np.abs(x)
    near = np.log1p(2 * np.square(np.sinh(0.5 * np.minimum(a, 1))))
    return np.where(a < 1, near, a + (np.log1p(np.exp(-2 * np.minimum(a, FAR))) - np.log(2).astype(a.dtype)))


def _tanhshrink(x: Any) -> Any:
    """x - tanh(x), near 0 by the continued fraction of tanh: tanh(x) = x / (1 + x**2 / d) with d = 3 + x**2 / (5 + …).

    The difference itself would have no right digit below |x| = 1e-4 in single precision.
    """
    x2 = np.square(np.minimum(np.abs(x), 1))
    d: Any = 17
    for odd in (15, 13, 11, 9, 7, 5, 3):
        d = odd + x2 / d
    return np.where(np.abs(x) < 1, x * (x2 / (d + x2)), x - np.tanh(x))


def _lisht_map(v: Any, x: Any, y: Any) -> Any:
    t = np.tanh(x)
    return v * (t + _bounded(x) * (1 - np.square(t)))


tanh_fast = Activation("tanh_fast", _floating(_tanh_fast), lambda v, x, y: v * (1 - np.square(y)))
softsign = Activation("softsign", _floating(_softsign), lambda v, x, y: v * np.square(1 - np.abs(y)))
logcosh = Activation("logcosh", _floating(_logcosh), lambda v, x, y: v * np.tanh(x))
lisht = Activation("lisht", _floating(lambda x: x * np.tanh(x)), _lisht_map)
tanhshrink = Activation("tanhshrink", _floating(_tanhshrink), lambda v, x, y: v * np.square(np.tanh(x)))

# --- x times a gate -------------------------------------------------------------------------------------------------
GELU_CUBIC = 0.044715  # Hendrycks and Gimpel, arXiv 1606.08415
GELU_SCALE = 1.5957691216057308  # sqrt(8 / pi): (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps digits on the left
GELU_SIGMOID_SCALE = 1.702


def _gated(name: str, gate: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Activation:
    """x * sigmoid(gate(x)); `slope` is the derivative of the gate."""

    def value(x: Any) -> Any:
        return np.maximum(x, -FAR) * _sigmoid(gate(_bounded(x)))

    def map_(v: Any, x: Any, y: Any) -> Any:
        near = _bounded(x)
        s = sigmoid(gate(near))
        return v * (s * (1 + near * slope(near) * (1 - s)))

    return Activation(name, _floating(value), map_)


def _normal_cdf(x: Any) -> Any:
    from scipy.special import ndtr  # noqa: PLC0415 (`import pullback` is quick; only these two functions need SciPy)

    return ndtr(x)


def _density(x: Any) -> Any:
    return 0.3989422804014327 * np.exp(-0.5 * np.square(_bounded(x)))  # 1 / sqrt(2 pi)


def _gelu_erf_map(v: Any, x: Any, y: Any) -> Any:
    return v * (normal_cdf(x) + _bounded(x) * _density(x))


def _mish_map(v: Any, x: Any, y: Any) -> Any:
    t = np.tanh(softplus(x))
    return v * (t + _bounded(x) * sigmoid(x) * (1 - np.square(t)))


def _hardswish_map(v: Any, x: Any, y: Any) -> Any:
    return np.where(x <= -3, 0, np.where(x >= 3, v, v * (np.maximum(np.minimum(x, 3), -3) / 3 + 0.5)))


swish = _gated("swish", lambda x: x, lambda x: 1)
gelu_sigmoid = _gated("gelu_sigmoid", lambda x: GELU_SIGMOID_SCALE * x, lambda x: GELU_SIGMOID_SCALE)
gelu_tanh = _gated(
    "gelu_tanh",
    lambda x: GELU_SCALE * x * (1 + GELU_CUBIC * np.square(x)),
    lambda x: GELU_SCALE * (1 + 3 * GELU_CUBIC * np.square(x)),
)
normal_cdf = Activation("normal_cdf", _floating(_normal_cdf), lambda v, x, y: v * _density(x))
gelu_erf = Activation("gelu_erf", _floating(lambda x: np.maximum(x, -FAR) * _normal_cdf(x)), _gelu_erf_map)
mish = Activation("mish", _floating(lambda x: np.maximum(x, -FAR) * np.tanh(_softplus(x))), _mish_map)
hardswish = Activation(
    "hardswish",
    _floating(lambda x: np.maximum(x, -3) * np.minimum(np.maximum((x + 3) / 6, 0), 1)),
    _hardswish_map,
)

for _smooth in (sigmoid, sigmoid_fast, softplus, logsigmoid, tanh_fast, softsign, logcosh, lisht, tanhshrink):
    cases(_smooth, away_from(0.0, 3, 4), because="softsign has a second derivative on both sides of 0 only")
for _gate in (swish, gelu_sigmoid, gelu_tanh, normal_cdf, gelu_erf, mish):
    cases(_gate, normal(3, 4))
cases(identity, normal(3, 4))
for _kinked_at_0 in (relu, selu):
    cases(_kinked_at_0, away_from(0.0, 16), because="the kink at 0 has no derivative")
for _kinked, _kink in ((relu6, 6.0), (hardsigmoid, 3.0), (hardsigmoid, -3.0), (hardswish, -3.0), (hardswish, 3.0)):
    cases(_kinked, away_from(_kink, 16), because=f"the kink at {_kink:g} has no derivative")
for _kink in (-1.0, 1.0):
    cases(hardtanh, away_from(_kink, 16), because=f"the kink at {_kink:g} has no derivative")
for _shaped in (leakyrelu, elu, celu):
    cases(_shaped, away_from(0.0, 16), positive(), because="the kink at 0 has no derivative")
    cases(_shaped, away_from(0.0, 3, 4), positive(3, 1), because="a parameter for each row")
cases(trelu, away_from(0.0, 16), lambda rng: -0.05 * rng.random(()), because="a threshold below 0")
cases(softshrink, away_from(0.0, 16), lambda rng: 0.05 * rng.random(()), because="the kinks have no derivative")
