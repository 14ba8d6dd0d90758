"""Errors of convolutions and of their gradients on data that is hard to add up.

Every result is compared with the magnitudes of what it is the sum of: |error| <= 64 eps sum |w| |x|, over what that result
depends on and nothing else. A kernel with zeros depends on few numbers, however large their neighbours are.
"""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.backends.native import availability
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient

if not availability.is_available():
    pytest.skip(str(availability.why_not()), allow_module_level=True)

#: Channels enough for tiles; rows and columns that leave a tile incomplete.
X_SHAPE, OUTS = (2, 16, 13, 22), 16
PARAMS = {"stride": (1, 1), "pad": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


@cache
def compiled():
    """The convolution, and both of its gradients."""
    forward = pb.compile(lambda w, x: pb.nn.conv(w, x, pad=1), tier="native")
    backward = pb.compile(
        pb.grad(lambda w, x, y_bar: np.sum(y_bar * pb.nn.conv(w, x, pad=1)), wrt=("w", "x")), tier="native"
    )
    return forward, backward


def largest_errors(w, x, y_bar):
    """Of the convolution, to the data and to the weights: the largest error in eps, as part of the bound of its own result."""
    forward, backward = compiled()
    given = (forward(w, x), *reversed(backward(w, x, y_bar)))
    nodes = (
        (conv, (w, x), {}),
        (conv_data_gradient, (w, y_bar), {"size": x.shape[2:]}),
        (conv_weight_gradient, (y_bar, x), {"kernel": (3, 3)}),
    )
    precise = np.longdouble if x.dtype == np.float64 else np.float64
    largest = []
    for result, (primitive, operands, more) in zip(given, nodes, strict=True):
        exact = [operand.astype(precise) for operand in operands]
        wanted = primitive.evaluate(*exact, **PARAMS, **more)
        magnitudes = primitive.evaluate(*map(abs, exact), **PARAMS, **more)
        errors = np.abs(result - wanted)
        assert (errors[magnitudes == 0] == 0).all(), primitive.name
        largest.append(float((errors / np.where(magnitudes, magnitudes, 1)).max() / np.finfo(x.dtype).eps))
    return largest


def check(w, x, y_bar):
    """None is larger than 64."""
    assert max(largest_errors(w, x, y_bar)) <= 64


W_SHAPE, Y_SHAPE = (OUTS, X_SHAPE[1], 3, 3), (X_SHAPE[0], OUTS, *X_SHAPE[2:])
EYE = np.eye(OUTS, X_SHAPE[1])[:, :, None, None]
SOBEL = np.array([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
MIDDLE = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]])
CAUSAL = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]])


def chosen(random, chance, shape=W_SHAPE):
    return random.random(shape) < chance


def separable(random):
    """With a column of zeros and one of small numbers."""
    column, row = random.standard_normal((2, *W_SHAPE[:2], 3))
    return column[..., :, None] * (row * np.array([1, 0, 1e-6]))[..., None, :]


def one_pruned(random):
    """The weights of one output."""
    w = random.standard_normal(W_SHAPE)
    w[3] *= chosen(random, 0.1, W_SHAPE[1:])
    return w


#: Most leave out some of what they could meet.
WEIGHTS = {
    "normal": lambda random: random.standard_normal(W_SHAPE),
    "box": lambda random: np.full(W_SHAPE, 1 / 9),
    "identity": lambda random: EYE * MIDDLE,
    "sobel": lambda random: EYE * SOBEL,
    "sobel of all channels": lambda random: SOBEL + np.zeros(W_SHAPE),
    "middle columns": lambda random: random.standard_normal(W_SHAPE) * np.array([0, 1, 0]),
    "small middle": lambda random: random.standard_normal(W_SHAPE) * (1 - (1 - 1e-6) * MIDDLE),
    "causal": lambda random: random.standard_normal(W_SHAPE) * CAUSAL,
    "pruned": lambda random: random.standard_normal(W_SHAPE) * chosen(random, 0.1),
    "one output pruned": one_pruned,
    "separable": separable,
}


CHANNEL, ROW, COLUMN = np.ix_(*map(np.arange, X_SHAPE[1:]))

#: Which numbers are large.
SCALES = {
    "columns": COLUMN % 2 == 0,
    "every fourth column": COLUMN % 4 == 0,
    "rows": ROW % 2 == 0,
    "checkerboard": (ROW + COLUMN) % 2 == 0,
    "channels": CHANNEL % 2 == 0,
    "one pixel": (ROW == 6) & (COLUMN == 11),
    "one number": (CHANNEL == 5) & (ROW == 6) & (COLUMN == 11),
    "half": COLUMN < 10,
}
FOR_EVERY_CHANGE = {"columns", "rows", "one number"}


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("kernel", WEIGHTS)
@pytest.mark.parametrize(
    "scale", [pytest.param(name, marks=() if name in FOR_EVERY_CHANGE else pytest.mark.long) for name in SCALES]
)
def test_a_result_is_as_exact_as_what_it_depends_on(kernel, scale):
    random = np.random.default_rng(0)
    for dtype, larges in (("f4", (1e2, 1e5, 1e9)), ("f8", (1e9, 1e16))):
        w = WEIGHTS[kernel](random)
        for large in larges:
            scales = np.where(SCALES[scale], large, 1.0)
            x, y_bar = random.standard_normal(X_SHAPE) * scales, random.standard_normal(Y_SHAPE) * scales[::-1]
            check(w.astype(dtype), x.astype(dtype), y_bar.astype(dtype))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_equal_numbers_are_no_harder(dtype):
    """Errors of equal terms add up."""
    for w, x, y_bar in ((0.1, 0.3, 0.7), (1 / 3, -1 / 7, 1 / 9)):
        check(np.full(W_SHAPE, w, dtype), np.full(X_SHAPE, x, dtype), np.full(Y_SHAPE, y_bar, dtype))


def test_what_meets_no_number_is_zero():
    """Where the numbers of every other column are zeros, a kernel of the middle column gives zeros."""
    random = np.random.default_rng(0)
    x, y_bar = (random.standard_normal(shape).astype("f4") for shape in (X_SHAPE, Y_SHAPE))
    x[..., ::2] = y_bar[..., 1::2] = 0
    check(WEIGHTS["middle columns"](random).astype("f4"), x, y_bar)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("met", [COLUMN % 3 == 0, (ROW % 3 == 0) & (COLUMN % 3 == 0), COLUMN % 3 != 0])
def test_weights_may_be_small_where_the_numbers_are(met):
    """The condition for tiles is an equality for such data; it holds down to a ratio of about 0.2, and so do results."""
    random = np.random.default_rng(0)
    small = met[0, :3, :3] if met.shape[1] > 1 else np.broadcast_to(met[0, :, :3], (3, 3))
    met = np.broadcast_to(met, X_SHAPE)
    for ratio in (0.5, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05):
        w = random.uniform(1, 1.5, W_SHAPE) * random.choice([-1, 1], (OUTS, 1, 3, 3)) * np.where(small, ratio, 1)
        x = random.uniform(1, 1.5, X_SHAPE) * random.choice([-1, 1], (1, 1, *X_SHAPE[2:])) * met
        y_bar = random.uniform(1, 1.5, Y_SHAPE) * met[..., ::-1, ::-1]
        for dtype in ("f4", "f8"):
            check(w.astype(dtype), x.astype(dtype), y_bar.astype(dtype))


@st.composite
def arrays(draw, shape):
    """Numbers whose magnitudes, zeros and repetition go by channel, row, column, or place."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kept = st.sampled_from([(), (0,), (1,), (2,), (3,), (0, 1), (2, 3), (1, 2, 3), (0, 1, 2, 3)])

    def along(axes):
        return [size if axis in axes else 1 for axis, size in enumerate(shape)]

    numbers = random.standard_normal(along(draw(kept)))
    if draw(st.booleans()):
        numbers = np.abs(numbers) if draw(st.booleans()) else np.sign(numbers)
    for _ in range(draw(st.integers(0, 3))):
        numbers = numbers * 10 ** (draw(st.sampled_from([1, 3, 5])) * random.uniform(-1, 1, along(draw(kept))))
    for _ in range(draw(st.integers(0, 3))):
        small = draw(st.sampled_from([0, 1e-6, 1e-3, 0.1])) * numbers
        numbers = np.where(
            chosen(random, draw(st.sampled_from([0.05, 0.2, 0.5, 0.9])), along(draw(kept))), small, numbers
        )
    return np.broadcast_to(numbers, shape).astype("f4")


@settings(max_examples=40, deadline=None)
@given(arrays(W_SHAPE), arrays(X_SHAPE), arrays(Y_SHAPE))
def test_no_data_gives_a_larger_error(w, x, y_bar):
    check(w, x, y_bar)
