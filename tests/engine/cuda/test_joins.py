"""Joins and stores of plans on a device: by nests where the parts are made, in place where nothing reads the array behind, not by PyTorch."""

import numpy as np
import pytest
from tests.engine.nests.test_stores import FORMS, made

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import LateDevice  # noqa: E402
from tests.engine.cuda.test_steady import VIEWS, noted  # noqa: E402

from pullback.backends.cuda import program  # noqa: E402
from pullback.backends.cuda.emulation import Emulator  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 8))
TIERS = ["fused", "stateful", "native"]


def _rows(x):
    return np.concatenate([np.tanh(x), np.sin(x) * x, np.exp(-x * x)])


def _columns(x):
    y = np.concatenate([np.tanh(x), np.sin(x)], axis=1)
    return y @ np.cos(y.T)


def _stacked(x):
    return np.stack([np.tanh(x), np.cos(x), x * x], axis=1)


def _given(x):
    """Parts that somebody else gave, and one that is not made by a nest."""
    return np.concatenate([x, x[::-1, ::-1], np.sin(x) @ np.ones((8, 8)), x[:2]])


def _nested(x):
    inner = np.concatenate([np.exp(x), np.square(x)])
    return np.concatenate([np.tanh(inner), inner, np.cos(x)]) + np.concatenate([inner[:6], inner, x, x])


def _of_one_twice(x):
    y = np.exp(x)
    return np.concatenate([y, y, np.square(y)]) * 2 + np.sum(y)


def _of_sums(x):
    return np.concatenate([np.sum(np.sin(x), axis=0), np.max(np.cos(x), axis=1), np.mean(x, keepdims=True)[0]])


def _returned_as_well(x):
    y = np.exp(x)
    return y, np.concatenate([y, np.tanh(x)]), np.concatenate([np.tanh(x), x])


def _read_after_a_store_into_what_it_is_a_part_of(x):
    """The part lies in the joined array, which may not be written over while the part is read."""
    part = np.exp(x)
    y = np.concatenate([part, np.sin(x)])
    y[2:4] = 1.0
    return y, part * np.cumsum(x, axis=0)


def _turned(x):
    """A layout of its own for a product."""
    y = np.tanh(x).T.copy()
    return y @ np.sin(x)


def _of_another_dtype(x):
    return np.concatenate([np.exp(x), np.sin(x).astype(np.float32), x > 0], axis=1)


def _read_by_positions(x):
    y = np.concatenate([np.tanh(x), np.sin(x)])
    return y[np.argsort(x[:, 0]) + 3] * y[::2]


def _sliced(x):
    """Parts of cotangents: arrays that are zero but for a part."""
    y = np.sin(x)
    return y[1:, 2:6] * y[:-1, ::2] + y[0, -1] * y[2, 3]


def _turned_round(x):
    """Cotangents of what is read backwards, by nests and by a product."""
    y = np.sin(x)
    return y[::-2, 1:] * x[:3, 1:] + (y[::-1] @ np.cos(y).T[:, ::-1])[:3, :1]


JOINS = [
    _rows, _columns, _stacked, _given, _nested, _of_one_twice, _of_sums, _returned_as_well,
    _read_after_a_store_into_what_it_is_a_part_of, _turned, _of_another_dtype, _read_by_positions, _sliced, _turned_round,
]  # fmt: skip

#: Functions of one array, by name.
FUNCTIONS = {function.__name__.strip("_"): function for function in JOINS}
FUNCTIONS |= {f"store {form.__name__}": made(form) for form in FORMS}


def _loss(function):
    """A number, of which all results are read."""

    def of_function(x):
        results = function(x)
        results = results if isinstance(results, tuple) else (results,)
        return sum(np.sum(np.cos(one) * one) for one in results)

    return of_function


def _agree(there, here, rtol=1e-11):
    for ours, theirs in zip(pb.trees.flatten(pb.fetch(there))[0], pb.trees.flatten(here)[0], strict=True):
        assert (np.shape(ours), np.asarray(ours).dtype) == (np.shape(theirs), np.asarray(theirs).dtype)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * 10)


def _wrong(function, tier="stateful"):
    """True if one of several calls, with dead memory made useless and results held, gives something else than the host."""
    plan, scales = pb.compile(function, tier=tier), (1.0, 0.5, 1.0, 0.25)
    with pb.debug.poisoning():
        held = [plan(pb.put(scale * X, "cpu")) for scale in scales]
    try:
        for scale, found in zip(scales, held, strict=True):
            _agree(found, function(scale * X))
    except AssertionError:
        return True
    assert plan.summary()["hash"] is not None, plan.summary()["fallbacks"]
    return False


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_the_host(name, tier):
    assert not _wrong(FUNCTIONS[name], tier)
    if name != "store read_afterwards":  # whose derivative is no plan, with or without stores of ours
        assert not _wrong(pb.value_and_grad(_loss(FUNCTIONS[name])), tier)


@pytest.mark.parametrize("name", ["rows", "columns", "nested", "sliced", "store several", "store of_itself"])
def test_second_derivatives_are_those_of_the_host(name):
    gradient = pb.grad(_loss(FUNCTIONS[name]))
    assert not _wrong(pb.grad(lambda x: np.sum(gradient(x) ** 2)))


@pytest.fixture
def alone(monkeypatch):
    """The rules whose nodes are calls of PyTorch, in programs that are written."""
    seen, step = [], program._Writer.step

    def noting(writer, node, **how):
        if node.outputs[0] in writer.there and not writer.is_constant(node) and not program.is_view(node):
            seen.append(node.primitive.name)
        return step(writer, node, **how)

    monkeypatch.setattr(program._Writer, "step", noting)
    return seen


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nests_join_and_store(name, alone):
    plan = pb.compile(pb.value_and_grad(_loss(FUNCTIONS[name])), tier="fused")
    plan(pb.put(X, "cpu"))
    if name not in ("store positions", "store mask"):
        assert {"concatenate", "scatter", "set_at", "add_at", "copy"}.isdisjoint(alone)


#: By function the operations of PyTorch in a warm call of value and gradient, views aside, in the tiers `fused` and `stateful`.
ASKED = {
    "rows": ({"empty"}, set()),
    "stacked": ({"empty"}, set()),
    "of_one_twice": ({"empty"}, set()),
    "sliced": ({"empty"}, set()),
    "store part": ({"empty"}, set()),
    "store several": ({"empty"}, set()),
    "store read_between": ({"empty"}, set()),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_warm_call_asks_pytorch_for_memory_at_most(name):
    gradient = pb.value_and_grad(_loss(FUNCTIONS[name]))
    for tier, expected in zip(TIERS, (*ASKED[name], set()), strict=True):
        noting = noted(pb.compile(gradient, tier=tier), X)
        assert set(noting.seen) - VIEWS == expected
        assert tier == "fused" or noting.requests == {}


def _moved(function, x=X):
    plan = pb.compile(function, tier="fused")
    plan(pb.put(x, "cpu"))
    return plan.summary()


def test_parts_are_made_where_they_are_joined():
    """The operands are read once, and the joined array is written once."""
    summary = _moved(_rows)
    assert summary["kernels"] == 1
    assert summary["moved_bytes"] == 4 * X.nbytes
    assert summary["arrays"] == 1
    assert _moved(lambda x: np.concatenate([x, np.tanh(x)]))["moved_bytes"] == 4 * X.nbytes


def test_a_store_in_place_moves_what_is_stored():
    def function(x):
        y = np.sin(x)
        y[2, 1:5] = x[0, :4]
        return y

    summary = _moved(function)
    assert summary["kernels"] == 2
    assert summary["moved_bytes"] == 2 * X.nbytes + 2 * 4 * X.itemsize
    assert summary["arrays"] == 1


@pytest.mark.parametrize("form", [form for form in FORMS if form.__name__ not in ("positions", "mask")])
def test_a_store_copies_nothing_where_the_array_is_not_read_behind_it(form):
    assert _moved(made(form))["copies"] == 0


def test_a_store_into_what_is_read_behind_it_writes_every_element_once():
    def function(x):
        y = np.sin(x)
        z = y.copy()
        z[1:5, 2] = 1.0
        return y, z

    summary = _moved(function)
    assert (summary["arrays"], summary["copies"]) == (2, 1)
    assert summary["moved_bytes"] == 4 * X.nbytes - 4 * X.itemsize


def test_a_store_of_a_number_of_the_call_stays_in_the_graph():
    def function(x, number):
        y = np.sin(x)
        y[1] = number
        return np.sum(y * y)

    plan = pb.compile(pb.value_and_grad(function), tier="native")
    for number in (1.0, 2.0, 0.5, 4.0, 3.0):
        _agree(plan(pb.put(X, "cpu"), number), pb.value_and_grad(function)(X, number))
    assert plan.summary()["fallbacks"] == []
    assert plan.summary()["graph"]["nodes"] > 0


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", ["columns", "given", "store several"])
def test_calls_wait_for_nothing_and_are_right_when_they_are_awaited(name, tier):
    gradient = pb.value_and_grad(_loss(FUNCTIONS[name]))
    plan = pb.compile(gradient, tier=tier)
    with LateDevice(by_driver=True) as late:
        for _ in range(3):
            plan(late.put(X))
        late.forget()
        late.library.calls.clear()
        given = [late.put(scale * X) for scale in (1.0, 0.5, 0.25)]
        results = [plan(x) for x in given]
        assert (late.waits, late.transfers) == ({}, {})
        for scale, (value, found) in zip((1.0, 0.5, 0.25), results, strict=True):
            here = gradient(scale * X)
            np.testing.assert_allclose(late.take(value), here[0], rtol=1e-11)
            np.testing.assert_allclose(late.take(found), here[1], rtol=1e-10, atol=1e-12)
    assert plan.summary()["fallbacks"] == []


def test_joins_and_stores_have_the_same_bits_in_any_order(monkeypatch):
    def drawn(seed):
        def loader(kernels):
            emulator, rng = Emulator(kernels), np.random.default_rng(seed)

            def launch(addresses):
                for kernel in kernels.kernels:
                    emulator.launch(kernel, [addresses[one.piece] for one in kernel.parameters], rng)

            return launch

        return lambda device: loader

    for name in ("columns", "nested", "sliced", "store several"):
        found = []
        for seed in (1, 2):
            monkeypatch.setattr(program, "loader_for", drawn(seed))
            made_by = pb.compile(pb.value_and_grad(_loss(FUNCTIONS[name])), tier="fused")(pb.put(X, "cpu"))
            found.append([np.asarray(leaf).tobytes() for leaf in pb.trees.flatten(pb.fetch(made_by))[0]])
        assert found[0] == found[1]


def test_what_the_caller_gave_is_never_stored_into():
    def function(x):
        y = x.astype(x.dtype)
        y[0] = 0.0
        return y

    x = torch.tensor(X)
    for tier in TIERS:
        plan = pb.compile(function, tier=tier)
        for _ in range(4):
            _agree(plan(x), function(X))
        assert np.array_equal(x.numpy(), X)


# --- planted faults -----------------------------------------------------------------------------------------------------
def test_a_store_into_an_array_that_is_read_behind_it_is_found(monkeypatch):
    def always(writer, kernel):
        array = program.array_of(kernel.node, writer.found.views)
        return array is not None and array in writer.own

    monkeypatch.setattr(program._Writer, "is_over", always)
    assert _wrong(FUNCTIONS["read_after_a_store_into_what_it_is_a_part_of"])


def test_a_part_that_is_not_copied_where_it_lies_elsewhere_is_found(monkeypatch):
    monkeypatch.setattr("pullback.backends.nests.data_movement._is_there", lambda *_: True)
    assert _wrong(FUNCTIONS["given"])
