"""Convolutions cut into parts for several threads compute what they compute as a whole."""

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import availability
from pullback.rules.convolution import conv, conv_data_gradient, conv_weight_gradient

if not availability.is_available():
    pytest.skip(str(availability.why_not()), allow_module_level=True)

from pullback.backends.native.kernels import convolutions
from pullback.backends.native.threads import counts


@pytest.fixture
def worth_it(monkeypatch):
    """Everything is worth sharing."""
    monkeypatch.setattr(convolutions, "_PART_NS", 1.0)


#: Shapes of data and weights, and parameters.
CASES = {
    "3 x 3": ((6, 16, 12, 14), (16, 16, 3, 3), {"pad": ((1, 1), (1, 1))}),
    "5 x 5 in steps": ((4, 3, 13, 9), (5, 3, 5, 5), {"pad": ((2, 2), (0, 1)), "stride": (2, 1)}),
    "in groups": ((7, 4, 8, 8), (6, 2, 3, 3), {"groups": 2}),
    "one axis": ((8, 3, 40), (4, 3, 5), {"stride": (2,), "pad": ((2, 2),), "dilation": (1,)}),
}


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strided", [False, True])
def test_parts_are_what_the_whole_is(run_node, worth_it, case, strided):
    x_shape, w_shape, given = CASES[case]
    params = {"stride": (1, 1), "pad": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1} | given
    random = np.random.default_rng(0)

    def numbers(shape):
        wide = random.standard_normal((*shape[:-1], 2 * shape[-1])).astype("f4")
        return wide[..., ::2] if strided else np.ascontiguousarray(wide[..., ::2])

    w, x = numbers(w_shape), numbers(x_shape)
    y = numbers(conv.evaluate(w, x, **params).shape)
    for primitive, operands, more in (
        (conv, (w, x), {}),
        (conv_data_gradient, (w, y), {"size": x_shape[2:]}),
        (conv_weight_gradient, (y, x), {"kernel": w_shape[2:]}),
    ):
        result = run_node(primitive, operands, {**params, **more})
        wanted = primitive.evaluate(*(operand.astype("f8") for operand in operands), **params, **more)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def gradient_of(examples):
    """A plan of a convolution and its gradients, and arguments."""
    random = np.random.default_rng(0)
    w, x = (random.standard_normal(shape).astype("f4") for shape in ((16, 16, 3, 3), (examples, 16, 12, 14)))
    plan = pb.compile(
        pb.grad(lambda w, x: np.sum(np.tanh(pb.nn.conv(w, x, pad=1)) ** 2), wrt=("w", "x")), tier="native"
    )
    return plan, w, x


def test_results_are_the_same_on_any_number_of_threads(worth_it):
    plan, w, x = gradient_of(8)
    results = []
    for threads in (1, 2, 5):
        with pb.threads(threads):
            before = counts().alone + counts().shared
            results.append([np.array(gradient) for gradient in plan(w, x)])
            assert counts().alone + counts().shared >= before + 3
    for result in results[1:]:
        for gradient, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(gradient, first)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("examples", "parts"), [(1, 1), (2, 2), (7, 7), (11, 1), (12, 6), (64, 8)])
def test_parts_have_as_many_examples(worth_it, monkeypatch, examples, parts):
    found = []
    share = convolutions.share_with_rooms

    def noted(emission, key, name, pointers, blocks, *rest):
        found.append(blocks)
        share(emission, key, name, pointers, blocks, *rest)

    monkeypatch.setattr(convolutions, "share_with_rooms", noted)
    plan, w, x = gradient_of(examples)
    plan(w, x)
    assert found == [parts] * 3


def test_small_convolutions_are_not_cut(monkeypatch):
    found = []
    monkeypatch.setattr(convolutions, "share_with_rooms", lambda *arguments: found.append(arguments[4]))
    plan, w, x = gradient_of(2)
    plan(w, x)
    assert found == [1] * 3
