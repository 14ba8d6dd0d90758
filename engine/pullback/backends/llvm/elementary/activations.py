"""Activations that are no elementary function themselves: the formulas of pullback.rules.activations."""

from pullback.backends.llvm.builder.lanes import Lanes
from pullback.backends.llvm.elementary.arithmetic import extremum, sign
from pullback.backends.llvm.elementary.error_function import normal_cdf
from pullback.backends.llvm.elementary.exp import exp
from pullback.backends.llvm.elementary.float_formats import at_least, at_most, is_single, polynomial
from pullback.backends.llvm.elementary.hyperbolic import tanh
from pullback.backends.llvm.elementary.sigmoid import sigmoid, softplus
from pullback.rules.activations import FAR, GELU_CUBIC, GELU_SCALE, GELU_SIGMOID_SCALE


def relu(lanes: Lanes, x: str) -> str:
    """The larger of x and 0."""
    return extremum(lanes, ">", lanes.constant(0), x)


def relu6(lanes: Lanes, x: str) -> str:
    """The number, limited to the range from 0 to 6."""
    return extremum(lanes, "<", lanes.constant(6), relu(lanes, x))


def hardtanh(lanes: Lanes, x: str) -> str:
    """The number, limited to the range from -1 to 1."""
    return extremum(lanes, "<", lanes.constant(1), extremum(lanes, ">", lanes.constant(-1), x))


def hardsigmoid(lanes: Lanes, x: str) -> str:
    """(x + 3) / 6 between 0 and 1."""
    y = lanes.div(lanes.add(x, lanes.constant(3.0)), lanes.constant(6.0))
    return at_most(lanes, at_least(lanes, y, 0.0), 1.0)


def hardswish(lanes: Lanes, x: str) -> str:
    """X times the hard sigmoid."""
    return lanes.mul(at_least(lanes, x, -3.0), hardsigmoid(lanes, x))


# NNlib's tanh_fast: numerator and denominator in single precision, a series near 0 in double precision.
_TANH_ABOVE = (1.0, 0.1346604, 0.0035974074, 2.2332108e-5, 1.587199e-8)
_TANH_BELOW = (1.0, 0.4679937, 0.026262015, 0.0003453992, 8.7767893e-7)
_TANH_NEAR = (
    1.0,
    -0.33333333333324583,
    0.13333333325511604,
    -0.05396823125794372,
    0.02186660872609521,
    -0.008697141630499953,
)


def tanh_fast(lanes: Lanes, x: str) -> str:
    """A rational function in single precision, exponentials in double; never beyond 1."""
    far = 8.124 if is_single(lanes) else 30.0
    z = at_least(lanes, at_most(lanes, x, far), -far)
    square, one = lanes.mul(z, z), lanes.constant(1.0)
    if is_single(lanes):
        above = lanes.mul(z, polynomial(lanes, square, _TANH_ABOVE))
        y = lanes.div(above, polynomial(lanes, square, _TANH_BELOW))
    else:
        e = exp(lanes, lanes.add(z, z))
        y = lanes.div(lanes.sub(e, one), lanes.add(e, one))
        near = lanes.mul(z, polynomial(lanes, square, _TANH_NEAR))
        y = lanes.select(lanes.compare("<", square, lanes.constant(0.017)), near, y)
    y = at_least(lanes, at_most(lanes, y, 1.0), -1.0)
    return lanes.select(lanes.compare(">", lanes.absolute(x), lanes.constant(far)), sign(lanes, x), y)


def softsign(lanes: Lanes, x: str) -> str:
    """X / (1 + |x|), at infinity as at the largest number."""
    largest = 3.4028234663852886e38 if is_single(lanes) else 1.7976931348623157e308
    x = at_least(lanes, at_most(lanes, x, largest), -largest)
    return lanes.div(x, lanes.add(lanes.constant(1.0), lanes.absolute(x)))


def lisht(lanes: Lanes, x: str) -> str:
    """The product x tanh(x)."""
    return lanes.mul(x, tanh(lanes, x))


# --- x times a gate -------------------------------------------------------------------------------------------------
def _bounded(lanes: Lanes, x: str) -> str:
    return at_least(lanes, at_most(lanes, x, FAR), -FAR)


def swish(lanes: Lanes, x: str) -> str:
    """X times its sigmoid."""
    return lanes.mul(at_least(lanes, x, -FAR), sigmoid(lanes, _bounded(lanes, x)))


def gelu_sigmoid(lanes: Lanes, x: str) -> str:
    """X times the sigmoid of 1.702 x."""
    gate = lanes.mul(_bounded(lanes, x), lanes.constant(GELU_SIGMOID_SCALE))
    return lanes.mul(at_least(lanes, x, -FAR), sigmoid(lanes, gate))


def gelu_tanh(lanes: Lanes, x: str) -> str:
    """X times the sigmoid of a cubic."""
    near = _bounded(lanes, x)
    cubic = lanes.mul_add(lanes.mul(near, near), lanes.constant(GELU_CUBIC), lanes.constant(1.0))
    gate = lanes.mul(lanes.mul(near, lanes.constant(GELU_SCALE)), cubic)
    return lanes.mul(at_least(lanes, x, -FAR), sigmoid(lanes, gate))


def gelu_erf(lanes: Lanes, x: str) -> str:
    """X times the distribution function of the normal law."""
    return lanes.mul(at_least(lanes, x, -FAR), normal_cdf(lanes, x))


def mish(lanes: Lanes, x: str) -> str:
    """X times tanh(softplus(x))."""
    return lanes.mul(at_least(lanes, x, -FAR), tanh(lanes, softplus(lanes, x)))
