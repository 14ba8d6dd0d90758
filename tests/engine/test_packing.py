"""pack: which arrays are tiles of one parent, and gradients whichever way they are packed."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import NeedsValueError


def block():
    made = pb.Block({"w": (3, 2), "b": (3,), "c": (2,)})
    made.array = np.arange(11.0)
    return made


def test_all_views_of_a_block_are_the_block():
    parts = block()
    assert pb.pack(*parts.values()) is parts.array


def test_neighbouring_views_are_a_part_of_the_block():
    parts = block()
    packed = pb.pack(parts.b, parts.c)
    assert packed.base is parts.array
    assert packed.tolist() == [6, 7, 8, 9, 10]


def test_one_array_is_its_own_parent():
    array = np.ones(3)
    assert pb.pack(array) is array
    assert np.shares_memory(pb.pack(np.ones((2, 2))), np.ones(4)) is False


def test_read_only_views_do_not_give_writeable_memory():
    parts = block()
    views = list(parts.values())
    views[0].flags.writeable = False
    assert not pb.pack(*views).flags.writeable


NOT_TILES = {
    "another order": lambda p: (p.b, p.w, p.c),
    "a view twice": lambda p: (p.w, p.w),
    "a gap": lambda p: (p.w, p.c),
    "overlap": lambda p: (p.array[:6], p.array[4:9]),
    "another parent": lambda p: (p.w, block().b),
    "strides": lambda p: (p.w.T, p.b),
    "every second element": lambda p: (p.array[::2], p.c),
    "another dtype": lambda p: (p.w, p.b.astype(np.float32)),
    "the same bytes as another dtype": lambda p: (p.w, p.b.view(np.int64)),
    "numbers": lambda p: (1.0, 2.0),
    "nothing in them": lambda p: (np.ones(0), np.ones(0)),
}


@pytest.mark.parametrize("views", NOT_TILES.values(), ids=NOT_TILES)
def test_other_arrays_are_copied_and_copy_false_refuses_that(views):
    arrays = views(block())
    packed = pb.pack(*arrays)
    np.testing.assert_array_equal(packed, np.concatenate([np.ravel(array) for array in arrays]))
    assert not any(np.may_share_memory(packed, array) for array in arrays)
    with pytest.raises(ValueError, match="do not fill one parent in order"):
        pb.pack(*arrays, copy=False)


def test_copy_true_copies_tiles_too():
    parts = block()
    assert not np.may_share_memory(pb.pack(*parts.values(), copy=True), parts.array)


def test_empty_views_are_no_gap():
    array = np.arange(4.0)
    assert pb.pack(array[:2], array[2:2], array[2:]) is array


def test_a_compiled_function_does_not_see_memory_and_copies():
    def loss(*views):
        return np.sum(pb.pack(*views) ** 2)

    parts = block()
    plan = pb.compile(pb.grad(loss, wrt=(0, 1, 2)), tier="fused")
    for gradient, view in zip(plan(*parts.values()), parts.values(), strict=True):
        np.testing.assert_array_equal(gradient, 2 * view)
    assert plan.summary()["fallbacks"] == []
    assert plan.summary()["copies"] >= 1
    refused = pb.compile(lambda *views: pb.pack(*views, copy=False), tier="fused")
    assert refused(*parts.values()) is parts.array  # falls back to the tape, which sees
    assert "has to see memory" in refused.summary()["fallbacks"][0]
    assert issubclass(NeedsValueError, TypeError)


def test_nothing_to_pack_is_refused():
    with pytest.raises(ValueError, match="at least one array"):
        pb.pack()
