"""Arrays after a model, between traced ends, on a grid."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TracingError

V = np.array([1.0, 2.5, 4.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda v: np.zeros_like(v) + np.ones_like(v) * v,
        lambda v: np.zeros_like(v, shape=(2, 3)) + v,
        lambda v: np.full_like(v[:2], v[0], shape=(2, 2)),
        lambda v: np.linspace(v[0], v[2], 5),
        lambda v: np.linspace(v, 2 * v + 1, 4, endpoint=False, axis=-1),
        lambda v: np.linspace(v[0], v[1], 3, retstep=True),
        lambda v: np.linspace(0.0, v, 1),
        lambda v: np.logspace(v[0], v[1], 4),
        lambda v: np.geomspace(v[0], v[2], 4),
        lambda v: np.geomspace(-v, -3 * v, 3),
        lambda v: np.meshgrid(v, v[:2] * 2, v[0]),
        lambda v: np.meshgrid(v, v, indexing="ij", sparse=True),
    ],
)
def test_like_numpy(function, like_numpy):
    like_numpy(function, V)


def test_types_are_told():
    def function(v):
        assert np.result_type(v, np.float32) == np.float64
        assert np.can_cast(v, np.float64)
        assert not np.iscomplexobj(v)
        assert np.isrealobj(v)
        assert np.common_type(v) is np.float64
        return np.sum(v)

    pb.grad(function)(V)


def test_like_makes_a_traced_value_of_nested_lists():
    np.testing.assert_array_equal(
        pb.grad(lambda v: np.sum(np.array([[v[0], 2.0], [v[1], v[0]]], like=v)))(V), [2, 1, 0]
    )


def test_what_is_not_honoured_is_refused():
    with pytest.raises(TracingError, match="device"):
        pb.grad(lambda v: np.sum(np.linspace(v[0], 1.0, device="gpu")))(V)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8"])
def test_a_line_between_whole_numbers_is_numpys(dtype):
    ends = np.array([[94, 0, 100], [77, 120, 3]]).astype(dtype)
    for function in (
        lambda ends: np.linspace(ends[0], ends[1], 4),
        lambda ends: np.linspace(ends[0], 2.5, 3, endpoint=False),
        lambda ends: np.linspace(ends[0] * np.float32(1.0), ends[1], 3, retstep=True)[0],
    ):
        result = pb.compile(function, tier="fused")(ends)
        np.testing.assert_allclose(result, function(ends), rtol=1e-14 if result.dtype == np.float64 else 1e-6)
        assert result.dtype == function(ends).dtype


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "f2", "f4", "f8"])
def test_a_geometric_line_is_in_double_precision(dtype):
    ends = np.array([1, 100], dtype)
    result = pb.compile(lambda ends: np.geomspace(ends[0], ends[1], 3), tier="fused")(ends)
    np.testing.assert_allclose(result, [1.0, 10.0, 100.0], rtol=1e-14)
    assert result.dtype == np.geomspace(ends[0], ends[1], 3).dtype


@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize(
    ("function", "ends"),
    [
        (lambda a, b: np.linspace(a, b, 5, dtype=int), (-128.0, 127.0)),
        (lambda a, b: np.linspace(a, b, 5, endpoint=False, dtype=int), (np.int8(-128), np.int8(127))),
        (lambda a, b: np.linspace(a, b, 8, dtype=np.int32), (0.1, 3)),
        (lambda a, b: np.linspace(a, b, 3), (np.float32(0.0), 1)),
        (lambda a, b: np.logspace(a, b, 3), (1.5, np.float32(2.0))),
        (lambda a, b: np.linspace(a, b, 0, retstep=True)[1], (1.0, 2.0)),
        (lambda a, b: np.geomspace(a, b, 3), (np.uint8(77), np.uint8(94))),
        (lambda a, b: np.geomspace(a, b, 3), (np.int8(-128), np.int8(-1))),
        (lambda a, b: np.geomspace(a, b, 4)[1:-1], (8.0, -8.0)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_line_has_numpys_dtype_and_goes_down_to_whole_numbers(function, ends, tier):
    result, expected = pb.compile(function, tier=tier)(*ends), function(*ends)
    np.testing.assert_allclose(result, expected, rtol=1e-6 if np.asarray(expected).dtype == np.float32 else 1e-14)
    assert np.asarray(result).dtype == np.asarray(expected).dtype


def test_the_last_of_a_line_is_its_end():
    ends = np.array([0.1, 0.2]), np.array([0.3, 0.7])
    np.testing.assert_array_equal(pb.compile(np.linspace, tier="fused")(*ends), np.linspace(*ends))
    slopes = pb.grad(lambda a, b: np.sum(np.linspace(a, b, 3)[-1]), wrt=(0, 1))(*ends)
    np.testing.assert_array_equal(slopes, [[0.0, 0.0], [1.0, 1.0]])
