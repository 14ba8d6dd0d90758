"""Blocks: one array, named views, and all that keeps them so."""

import copy
import pickle

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native.availability import why_not
from pullback.errors import TracingError

SHAPES = {"w": (3, 2), "b": (3,), "scale": ()}


def numbered():
    block = pb.Block(SHAPES)
    block.array = np.arange(10.0)
    return block


def test_shapes_are_filled_with_zeros_and_arrays_give_values_and_dtype():
    assert not pb.Block(SHAPES).array.any()
    w, b = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.ones(3, np.float32)
    block = pb.Block({"w": w, "b": b})
    assert block.dtype == np.float32
    np.testing.assert_array_equal(block.w, w)
    block.w[0, 0] = 7
    assert w[0, 0] == 0  # the values were taken, not the memory


def test_initialisers_are_functions_of_a_shape_for_all_or_by_name():
    assert pb.Block(SHAPES, init=np.ones).array.sum() == 10
    block = pb.Block({"cell": SHAPES, "b": (2,)}, init={"cell": {"b": np.ones}, "b": lambda shape: np.full(shape, 2.0)})
    np.testing.assert_array_equal(block.cell.b, 1)
    np.testing.assert_array_equal(block.b, 2)
    assert block.array.sum() == 7


def test_a_block_is_a_mapping_from_names_to_views():
    block = numbered()
    assert list(block) == ["w", "b", "scale"]
    assert {name: view.shape for name, view in block.items()} == SHAPES
    assert "w" in block
    assert "v" not in block
    assert "w" in dir(block)
    assert repr(block) == "Block(w (3, 2), b (3,), scale (); float64)"


def test_a_block_inside_a_block_is_a_view_too():
    block = pb.Block({"first": SHAPES, "second": SHAPES})
    block.second.b = 5.0
    block.first = np.ones(10)
    assert block.array[16:19].tolist() == [5, 5, 5]
    assert block.second.w.base is block.array
    block.second = block.first
    np.testing.assert_array_equal(block.array, 1)


def test_updates_in_place_write_once_into_the_same_memory():
    block = numbered()
    array = block.array
    block.w -= 1
    block.scale += 1
    block.array *= 2
    assert block.array is array
    assert array[0] == -2
    assert array[9] == 20


def test_a_block_around_an_array_copies_nothing():
    array = np.arange(10.0)
    block = pb.Block.around(array, SHAPES)
    assert block.array is array
    assert block.b.tolist() == [6, 7, 8]


@pytest.mark.parametrize("array", [np.ones(9), np.ones((5, 2)), np.ones(20)[::2]])
def test_a_block_is_around_a_contiguous_array_of_its_size(array):
    with pytest.raises(ValueError, match=r"need a contiguous array of shape \(10,\)"):
        pb.Block.around(array, SHAPES)


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (lambda block: block.v, AttributeError, "the block has no 'v'; it has w, b, scale and array, the whole"),
        (lambda block: block["v"], KeyError, "the block has no 'v'"),
        (lambda block: setattr(block, "v", 1), AttributeError, "the block has no 'v'"),
        (lambda block: block.__setitem__("v", 1), KeyError, "the block has no 'v'"),
        (lambda block: block._private, AttributeError, "a block has no '_private'"),
        (lambda block: setattr(block, "w", np.ones(2)), ValueError, r"block.w has shape \(3, 2\), got \(2,\)"),
        (lambda block: setattr(block, "array", np.ones(9)), ValueError, r"block.array has shape \(10,\), got \(9,\)"),
        (lambda block: setattr(block, "b", 1j), TypeError, "block.b holds float64, got complex128; cast it"),
        (lambda block: block.map(lambda array: array[1:]), ValueError, "must keep every element in its place"),
        (np.asarray, TypeError, "a Block is not an array; give NumPy block.array"),
        (np.sum, TypeError, "does not support ufuncs"),
        (lambda block: block * 2, TypeError, "unsupported operand"),
        (lambda block: np.ones(3) * block, TypeError, "operand|Block"),
        (lambda _: pb.Block({"w": 3}), TypeError, "Block: w is a int; give a shape"),
        (lambda _: pb.Block({"array": (2,)}), ValueError, "a view cannot be called 'array'"),
        (lambda _: pb.Block({"_w": (2,)}), ValueError, "a view cannot be called '_w'"),
        (lambda _: pb.Block(SHAPES, init={"v": np.ones}), ValueError, "init names 'v', which is no view"),
    ],
)
def test_mistakes_are_told_in_one_sentence(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake(numbered())


def test_a_traced_value_cannot_be_written_into_a_block_nor_a_number_into_a_traced_one():
    with pytest.raises(TracingError):
        pb.grad(lambda x: setattr(numbered(), "b", x))(np.ones(3))
    with pytest.raises(TracingError, match="store into an argument"):
        pb.grad(lambda block: setattr(block, "b", 1.0))(numbered())


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, pb.Block.copy, lambda block: pickle.loads(pickle.dumps(block))],  # noqa: S301 (our own)
    ids=["copy", "deepcopy", "method", "pickle"],
)
def test_a_copy_is_a_block_with_memory_of_its_own(duplicate):
    block = numbered()
    other = duplicate(block)
    np.testing.assert_array_equal(other.array, block.array)
    other.w[...] = -1
    assert other.array[0] == -1
    assert block.array[0] == 0
    assert np.shares_memory(other.b, other.array)


def test_blocks_are_arguments_inside_trees_in_every_tier():
    def loss(model, x):
        return np.sum(np.tanh(model["cell"].w @ x + model["cell"].b) * model["gain"])

    model = {"cell": pb.Block({"w": np.ones((3, 2)), "b": np.ones(3)}), "gain": np.arange(3.0)}
    x = np.array([0.3, -0.2])
    expected = pb.grad(lambda w, b, gain: np.sum(np.tanh(w @ x + b) * gain), wrt=(0, 1, 2))(
        np.ones((3, 2)), np.ones(3), model["gain"]
    )
    for tier in pb.TIERS:
        gradient = pb.compile(pb.grad(loss), tier=tier)(model, x)
        assert isinstance(gradient["cell"], pb.Block)
        for ours, theirs in zip((*gradient["cell"].values(), gradient["gain"]), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


@pytest.mark.parametrize("tier", [tier for tier in pb.TIERS if tier != "unfused"])
def test_a_block_around_a_compiled_function_is_read_on_each_call(tier):
    block, x = numbered(), np.array([0.5, -1.0])
    plan = pb.compile(pb.grad(lambda x: np.sum(np.tanh(block.w @ x + block.b))), tier=tier)
    for _ in range(3):
        expected = pb.grad(lambda x: np.sum(np.tanh(block.w @ x + block.b)))(x)
        np.testing.assert_allclose(plan(x), expected, rtol=1e-13)
        assert set(plan.summary()["fallbacks"]) <= {why_not()}
        block.array *= 0.5


def test_a_compiled_function_that_writes_to_a_block_around_it_runs_on_the_tape():
    block = numbered()

    def function(x):
        block.b += 1
        return np.sum(block.b) + x

    plan = pb.compile(function, tier="fused")
    assert [plan(0.0), plan(0.0)] == [24, 27]
    assert plan.summary()["fallbacks"] != []


def test_a_plan_for_one_layout_is_not_used_for_another_of_the_same_size():
    plan = pb.compile(pb.grad(lambda block: np.sum(block.a * 2) + np.sum(block.b * 3)), tier="fused")
    assert plan(pb.Block({"a": (1,), "b": (3,)})).array.tolist() == [2, 3, 3, 3]
    assert plan(pb.Block({"a": (3,), "b": (1,)})).array.tolist() == [2, 2, 2, 3]


def test_second_derivatives_of_a_block_are_right():
    block = pb.Block({"a": np.array([1.0, 2.0]), "b": np.array([3.0])})

    def slope(block):
        gradient = pb.grad(lambda inner: np.sum(inner.a**3) * inner.b[0] ** 2)(block)
        return np.sum(gradient.array)

    second = pb.grad(slope)(block)
    np.testing.assert_allclose(second.a, 6 * block.a * 9 + 3 * block.a**2 * 6)
    np.testing.assert_allclose(second.b, np.sum(3 * block.a**2) * 6 + np.sum(block.a**3) * 2)


def test_a_batch_of_blocks_has_views_with_the_axis_of_the_batch():
    block, xs = numbered(), np.arange(8.0).reshape(4, 2)

    def loss(block, x):
        return np.sum((block.w @ x + block.b) ** 2)

    gradients = pb.vmap(pb.grad(loss), in_axes=(None, 0))(block, xs)
    assert gradients.array.shape == (4, 10)
    assert gradients.w.shape == (4, 3, 2)
    for gradient, x in zip(gradients.w, xs, strict=True):
        np.testing.assert_allclose(gradient, pb.grad(loss)(block, x).w)
    values = pb.vmap(loss)(gradients, xs)
    assert values.shape == (4,)
    behind = pb.vmap(pb.grad(loss), in_axes=(None, 0), out_axes=1)(block, xs)
    with pytest.raises(ValueError, match="keep the axes of a batch in front"):
        _ = behind.w


def test_transforms_take_and_give_blocks():
    block = numbered()

    def function(block):
        return np.sin(block.b) * block.scale

    value, pullback = pb.vjp(function, block)
    (cotangent,) = pullback(np.ones(3))
    np.testing.assert_allclose(cotangent.b, np.cos(block.b) * block.scale)
    _, tangent = pb.jvp(function, (block,), (block,))
    np.testing.assert_allclose(tangent, np.cos(block.b) * block.b * block.scale + value)
    jacobian = pb.jacobian(function)(block)
    np.testing.assert_allclose(jacobian.b, np.diag(np.cos(block.b) * block.scale), atol=1e-15)


def test_the_hessian_by_a_block_has_a_name_for_rows_and_one_for_columns():
    block = pb.Block({"a": np.array([1.0, 2.0]), "inner": {"b": np.array([[3.0]])}})

    def function(block):
        return np.sum(block.a**3) * block.inner.b[0, 0] ** 2

    hessian = pb.hessian(function)(block)
    np.testing.assert_allclose(hessian["a"].a, np.diag(6 * block.a * 9))
    np.testing.assert_allclose(hessian["a"].inner.b[:, 0, 0], 3 * block.a**2 * 6)
    np.testing.assert_allclose(hessian["inner"]["b"].a[0, 0], 3 * block.a**2 * 6)
    np.testing.assert_allclose(hessian["inner"]["b"].inner.b, 2 * np.sum(block.a**3))
    product = pb.hvp(function, block, block)
    np.testing.assert_allclose(product.a, hessian["a"].array @ block.array)


def test_the_jacobian_of_a_function_that_returns_a_block_goes_by_its_names():
    block = pb.Block({"a": (2,), "b": (1,)})
    jacobian = pb.jacobian(lambda x: block.map(lambda array: array + x**2))(np.arange(3.0))
    assert {name: rows.tolist() for name, rows in jacobian.items()} == {
        "a": [[0, 0, 0], [0, 2, 0]],
        "b": [[0, 0, 4]],
    }
