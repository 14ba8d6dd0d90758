"""Parameters in one block with views: requirements S3-1, S3-2, S3-4, S3-5 and S3-7."""

import pickle

import numpy as np
import pytest

import pullback as pb

HIDDEN, INPUTS = 5, 3
SHAPES = {"Wi": (4 * HIDDEN, INPUTS), "Wh": (4 * HIDDEN, HIDDEN), "b": (4 * HIDDEN,)}
X, H = np.linspace(-1, 1, INPUTS), np.linspace(0, 1, HIDDEN)


def random_block(dtype=np.float64):
    return pb.Block(SHAPES, dtype, init=np.random.default_rng(3).standard_normal)


def loss(p):
    return np.sum(np.tanh(p["Wi"] @ X + p["Wh"] @ H + p["b"]) ** 2)


def test_s3_1_views_lie_in_one_array_and_writes_show_through_both_ways():
    block = random_block()
    assert block.array.flags.c_contiguous
    assert block.array.size == sum(np.prod(shape) for shape in SHAPES.values())
    for name, shape in SHAPES.items():
        view = getattr(block, name)
        assert view.shape == shape
        assert view.base is block.array
        setattr(block, name, np.full(shape, 7.0))
        np.testing.assert_array_equal(view, 7)
        assert np.shares_memory(block[name], view)
    block.array = np.arange(block.array.size)
    assert block.Wi[0, 0] == 0
    assert block.b[-1] == block.array.size - 1


def test_s3_2_the_gradient_is_one_array_and_views_of_it():
    gradient = pb.grad(loss)(random_block())
    assert isinstance(gradient, pb.Block)
    assert list(gradient) == list(SHAPES)
    for view in gradient.values():
        assert view.base is gradient.array
    expected = pb.grad(loss)(dict(random_block()))
    for name in SHAPES:
        np.testing.assert_allclose(gradient[name], expected[name], rtol=1e-14)


def test_s3_2_gradients_by_views_are_views_of_one_array():
    block = random_block()

    def by_views(*views):
        return loss(pb.Block.around(pb.pack(*views), SHAPES))

    gradients = pb.grad(by_views, wrt=(0, 1, 2))(*block.values())
    owner = gradients[0].base
    assert owner.shape == block.array.shape
    assert all(gradient.base is owner for gradient in gradients)
    np.testing.assert_array_equal(owner, pb.grad(loss)(block).array)


def test_s3_2_asking_for_block_and_views_counts_every_use_once():
    """A gradient step through a view and one through the block add up to the step of the whole derivative."""
    block = random_block()

    def both(p, wi):
        return np.sum(np.tanh(p.Wi @ X)) + np.sum(np.sin(wi @ X))

    by_block, by_view = pb.grad(both, wrt=(0, 1))(block, block.Wi)
    whole = pb.grad(lambda p: both(p, p.Wi))(block)
    np.testing.assert_allclose(by_block.Wi + by_view, whole.Wi, rtol=1e-14)


def test_s3_2_the_gradient_of_the_whole_is_made_once(peak_bytes):
    block = pb.Block({"a": (50_000,), "b": (50_000,)})
    peak = peak_bytes(lambda: pb.grad(lambda p: np.sum(p.a) + np.sum(p.b))(block))
    assert peak < 1.1 * block.array.nbytes


def pack_by_hand(views):
    return np.concatenate([np.ravel(view) for view in views])


@pytest.mark.parametrize(
    ("choose", "copies"),
    [
        (lambda p: (p.Wi, p.Wh, p.b), False),
        (lambda p: (p.Wh, p.b), False),
        (lambda p: (p.Wh, p.Wi, p.b), True),
        (lambda p: (p.b, p.b), True),
        (lambda p: (p.array[:20], p.array[10:30]), True),
        (lambda p: (p.Wi, p.b), True),
    ],
    ids=["all in order", "neighbours", "another order", "duplicate", "overlap", "gap"],
)
def test_s3_4_pack_copies_only_where_views_do_not_tile_one_parent(choose, copies):
    views = choose(random_block())
    packed = pb.pack(*views)
    assert np.shares_memory(packed, views[0]) is not copies
    np.testing.assert_array_equal(packed, pack_by_hand(views))
    weights = np.random.default_rng(0).normal(size=packed.size)
    arguments = tuple(range(len(views)))
    gradients = pb.grad(lambda *v: np.sum(weights * np.sin(pb.pack(*v))), wrt=arguments)(*views)
    np.testing.assert_allclose(pack_by_hand(gradients), weights * np.cos(packed), rtol=1e-14)
    _, tangent = pb.jvp(pb.pack, views, views)
    np.testing.assert_array_equal(tangent, packed)


class DeviceArray:
    """Memory elsewhere: slices and reshapes are views of it, and nothing but a transfer reads it."""

    transfers = 0

    def __init__(self, memory):
        self.memory, self.shape, self.dtype = memory, memory.shape, memory.dtype

    def __getitem__(self, key):
        return DeviceArray(self.memory[key])

    def reshape(self, shape):
        return DeviceArray(self.memory.reshape(shape))

    @property
    def pointer(self):
        return self.memory.ctypes.data

    @classmethod
    def asarray(cls, array):
        cls.transfers += 1
        return cls(array.copy())

    def asnumpy(self):
        type(self).transfers += 1
        return self.memory.copy()


def test_s3_5_a_block_moves_in_one_transfer_and_its_views_are_views_there_and_back():
    block = random_block()
    DeviceArray.transfers = 0
    there = block.map(DeviceArray.asarray)
    assert DeviceArray.transfers == 1
    assert isinstance(there.array, DeviceArray)
    for name, shape in SHAPES.items():
        offset = block[name].ctypes.data - block.array.ctypes.data
        assert there[name].shape == shape
        assert there[name].pointer == there.array.pointer + offset
    back = there.map(DeviceArray.asnumpy)
    assert DeviceArray.transfers == 2
    assert all(view.base is back.array for view in back.values())
    np.testing.assert_array_equal(back.array, block.array)


def test_s3_5_a_block_read_back_is_a_block_whose_views_alias():
    block = random_block()
    restored = pickle.loads(pickle.dumps(block))  # noqa: S301 (our own bytes)
    restored.Wh[0, 0] = 42
    assert 42 in restored.array
    np.testing.assert_array_equal(restored.b, block.b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_s3_7_another_dtype_keeps_a_block_a_block(dtype):
    block = random_block().astype(dtype)
    assert {view.dtype for view in block.values()} == {np.dtype(dtype)}
    assert all(view.base is block.array for view in block.values())
    gradient = pb.grad(loss)(block)
    assert gradient.dtype == dtype


def test_s3_7_results_do_not_depend_on_the_order_in_memory():
    block = random_block()
    other = pb.Block({name: block[name] for name in reversed(SHAPES)})
    assert not np.array_equal(other.array, block.array)
    gradient, expected = pb.grad(loss)(other), pb.grad(loss)(block)
    for name in SHAPES:
        np.testing.assert_array_equal(gradient[name], expected[name])
