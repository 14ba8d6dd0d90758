"""Nothing is overwritten that somebody else could look at."""

import numpy as np
import pytest

from pullback.core.ownership import is_sole_owner


class Record:
    def __init__(self, y):
        self.y = y


def fresh():
    return Record(np.ones((3, 4)))


def test_an_array_that_only_the_record_holds_is_its_own():
    assert is_sole_owner(fresh(), np.ones((3, 4)))


@pytest.mark.parametrize(
    "look",
    [lambda y: y, lambda y: y[1:], lambda y: y.T, lambda y: memoryview(y), lambda y: [y], lambda y: iter(y)],
    ids=["a name", "a view", "a transpose", "a buffer", "a list", "an iterator"],
)
def test_an_array_that_something_else_holds_is_not(look):
    record = fresh()
    holder = look(record.y)
    assert not is_sole_owner(record, np.ones((3, 4)))
    del holder
    assert is_sole_owner(record, np.ones((3, 4)))


def test_an_array_that_is_its_own_cotangent_is_not():
    record = fresh()
    assert not is_sole_owner(record, record.y)
    assert not is_sole_owner(record, record.y.reshape(3, 4))


@pytest.mark.parametrize(
    "y",
    [np.ones((3, 8))[:, ::2], np.broadcast_to(1.0, (3, 4)), np.float64(1), np.ones((3, 4)).view(np.matrix)],
    ids=["a view of another", "one number", "a number", "a subclass"],
)
def test_what_has_no_memory_of_its_own_is_never_overwritten(y):
    record = Record(y)
    del y
    assert not is_sole_owner(record, np.ones((3, 4)))


def test_a_read_only_array_is_never_overwritten():
    record = fresh()
    record.y.flags.writeable = False
    assert not is_sole_owner(record, np.ones((3, 4)))


@pytest.mark.parametrize("y_bar", [np.ones((3, 4), np.float32), np.ones(4), 1.0], ids=["dtype", "shape", "number"])
def test_a_cotangent_of_another_type_does_not_fit(y_bar):
    assert not is_sole_owner(fresh(), y_bar)
