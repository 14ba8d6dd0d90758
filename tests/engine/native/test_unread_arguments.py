"""Arguments that a native program is given and does not read."""

import numpy as np
import pytest

import pullback as pb


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "u8", "f2", "c8", "c16"])
@pytest.mark.parametrize("length", [3, 40])
def test_what_is_not_read_may_be_of_any_dtype(dtype, length):
    def stored(x, marks):
        y = np.sin(x) * 0.5
        y[1:] *= 0.7
        return y, x @ x, np.sin(x)

    x, marks = np.array([0.3, 0.5, -0.2], np.float32), np.ones(length, dtype)
    plan = pb.compile(stored, tier="native")
    for ours, theirs in zip(plan(x, marks), stored(x, marks), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert not plan.summary()["fallbacks"]
