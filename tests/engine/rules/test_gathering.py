"""The types of what is read by positions, which are found without reading anything."""

import numpy as np
import pytest

from pullback.core.types import ArrayType
from pullback.rules.gathering import ARRAY, filled, gather

KEYS = [
    (ARRAY,),
    (slice(None), ARRAY),
    (ARRAY, ARRAY),
    (slice(3, 0, -2), ARRAY, ARRAY),
    (ARRAY, slice(1, None), ARRAY),
    (slice(2, 2), ARRAY),
    (ARRAY, 1),
    (ARRAY, None, slice(None)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("shapes", [((7,), (7,)), ((2, 1), (3,)), ((), ())], ids=str)
def test_types_are_those_of_numpys_selections(key, shapes):
    x = np.zeros((4, 5, 6), "f4")
    positions = [np.zeros(shape, np.int64) for shape in shapes[: key.count(ARRAY)]]
    (type_,) = gather.infer(ArrayType(x.shape, x.dtype), *(ArrayType(p.shape, p.dtype) for p in positions), key=key)
    assert (type_.shape, type_.dtype) == (x[filled(key, positions)].shape, x.dtype)


def test_more_elements_than_memory_has_are_no_work():
    positions = ArrayType((2**20, 1), np.dtype("i8")), ArrayType((2**20,), np.dtype("i8"))
    (type_,) = gather.infer(ArrayType((8, 8), np.dtype("f8")), *positions, key=(ARRAY, ARRAY))
    assert type_.shape == (2**20, 2**20)


@pytest.mark.parametrize(
    ("shapes", "key"), [(((2,), (3,)), (ARRAY, ARRAY)), (((2,),) * 3, (ARRAY, ARRAY, ARRAY))], ids=str
)
def test_what_numpy_refuses_is_refused_in_its_words(shapes, key):
    x, positions = np.zeros((4, 5)), [np.zeros(shape, np.int64) for shape in shapes]
    with pytest.raises(IndexError) as of_numpy:
        x[tuple(positions)]
    with pytest.raises(IndexError) as ours:
        gather.infer(ArrayType(x.shape, x.dtype), *(ArrayType(p.shape, p.dtype) for p in positions), key=key)
    assert str(ours.value) == str(of_numpy.value)
