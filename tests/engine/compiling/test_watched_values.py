"""Watched values against those that were recorded: what counts as the same."""

from dataclasses import dataclass

import numpy as np
import pytest

from pullback.compiling.captured_references import Members
from pullback.compiling.watched_values import ArrayContents, Identities, changes_of, is_as_it_was, is_exactly


@dataclass
class Pair:
    one: object
    other: object


def test_contents_of_an_array_are_compared_bit_for_bit_with_its_shape_and_dtype():
    recorded = ArrayContents(np.array([0.0, np.nan]))
    assert recorded.matches(np.array([0.0, np.nan]))
    for other in (np.array([-0.0, np.nan]), np.array([[0.0, np.nan]]), np.array([0.0, np.nan], "f4"), [0.0, np.nan]):
        assert not recorded.matches(other)


def test_contents_are_those_of_the_recording_although_the_array_changes():
    array = np.zeros(2)
    recorded = ArrayContents(array)
    array[0] = 1
    assert not is_as_it_was(array, recorded)


def test_identities_tell_equal_objects_apart_and_see_one_more():
    one, other = [1], [1]
    assert is_as_it_was((one,), Identities(one))
    assert not is_as_it_was((other,), Identities(one))
    assert not is_as_it_was((one, other), Identities(one))


@pytest.mark.parametrize(
    ("now", "then", "same"),
    [
        (1, True, False),
        (1, 1.0, False),
        ([1, (2, "a")], [1, (2, "a")], True),
        ([1, 2], [1, 2, 3], False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        (Pair(1, [2]), Pair(1, [2]), True),
        (Pair(1, [2]), Pair(1, [True]), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
    ],
)
def test_parts_of_equal_structures_are_the_same_if_their_types_and_values_are(now, then, same):
    assert is_exactly(now, then) is same


def test_of_a_class_the_members_that_are_other_ones_are_named():
    class Layer:
        scale = "old"
        kind = "kept"

    place = Members(Layer)
    recorded = Identities(*place())
    Layer.scale = "new"
    ((name, _, before),) = changes_of("the members of Layer", place, place(), recorded)
    assert (name, before) == ("Layer.scale", "old")
    Layer.another = 1
    assert changes_of("the members of Layer", place, place(), recorded) == [("the members of Layer", place, recorded)]
