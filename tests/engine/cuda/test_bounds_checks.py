"""Reading and adding up by positions on a device: in nests, with one look at the end of a call, and errors in NumPy's words."""

import numpy as np
import pytest

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import LateDevice  # noqa: E402

from pullback.backends.cuda import bounds_checks, position_sums, program  # noqa: E402
from pullback.backends.cuda.emulation import Emulator  # noqa: E402
from pullback.backends.nests import fusion, merging  # noqa: E402
from pullback.rules import logic  # noqa: E402
from pullback_runners.workloads.registry import find_workload  # noqa: E402 - beside what loads PyTorch

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4, 3))
P, Q = np.array([0, 3, -1, 3, 3, -5, 2]), np.array([1, -4, 0, 2, 2, 3, -1])
TIERS = ["fused", "stateful", "native"]


def _looked_into(x, p):
    """The array read by positions is made by the nest before."""
    y = np.tanh(x)
    return np.sum(y[p] * np.sin(x[p]) + y[2])


def _of_results(x, p):
    return np.sum(x[np.argsort(x[:, 0])] ** 2 * np.arange(5.0)[:, None]) + np.sum(x[p + 0] ** 3)


#: Functions of an array and two arrays of positions, of the shape (7,).
READING = {
    "rows": (X, lambda x, p, q: np.sum(np.sin(x[p]) ** 2)),
    "columns": (X, lambda x, p, q: np.sum(x[:, np.stack([q, q[::-1]])] ** 2)),
    "elements": (X, lambda x, p, q: np.sum(np.exp(x[p, q]))),
    "with cotangents of the host": (X, lambda x, p, q: np.sum(x[p, q]) + np.sum(x[p])),
    "of a grid": (X, lambda x, p, q: np.sum(x[p[:, None], q] ** 3)),
    "beside numbers and slices": (Y, lambda y, p, q: np.sum(y[p, 3:0:-2, -1] ** 2)),
    "apart": (Y, lambda y, p, q: np.sum(y[p, :, q % 3] ** 2)),
    "of a view": (X, lambda x, p, q: np.sum(x[::-1, 1:].T[:, p] ** 2)),
    "along an axis": (X, lambda x, p, q: np.sum(np.take_along_axis(x, np.stack([q[:5] % 4, q[2:]], 1), 1) ** 2)),
    "of what was computed": (X, lambda x, p, q: _looked_into(x, p)),
    "positions that were computed": (X, lambda x, p, q: _of_results(x, p)),
    "one": (X, lambda x, p, q: np.sum(x[np.argmax(x[:, 1])] ** 2)),
    "of narrow numbers": (X, lambda x, p, q: np.sum(x[p.astype(np.int32)] ** 2)),
    "classes": (X, lambda x, p, q: pb.nn.logitcrossentropy(x.T, q[:5] % 4, axis=0)),
    "nearest": (X, lambda x, p, q: np.sum((np.cos(x)[p % 5] - x[np.abs(p) % 5]) ** 2)),
}


def _flat(tree):
    return [np.asarray(leaf) for leaf in pb.trees.flatten(pb.fetch(tree))[0]]


def _agree(there, here, rtol=1e-12):
    for ours, theirs in zip(_flat(there), _flat(here), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * 10)


def _plan(function, tier):
    return pb.compile(pb.value_and_grad(function), tier=tier)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", READING)
def test_values_and_gradients_are_those_of_the_host(name, tier):
    x, function = READING[name]
    plan, expected = _plan(function, tier), pb.value_and_grad(function)(x, P, Q)
    arguments = pb.put((x, P, Q), "cpu")
    for _ in range(4):
        _agree(plan(*arguments), expected)
    assert plan.summary()["fallbacks"] == []
    if tier == "stateful":
        with pb.debug.poisoning():
            _agree(plan(*arguments), expected)


@pytest.fixture
def alone(monkeypatch):
    """The rules whose nodes are no part of a nest, in programs that are written."""
    seen, step = set(), program._Writer.step

    def noting(writer, node, **how):
        seen.add(node.primitive.name)
        return step(writer, node, **how)

    monkeypatch.setattr(program._Writer, "step", noting)
    return seen


@pytest.mark.parametrize("name", READING)
def test_nests_alone_read_and_add_up(name, alone):
    x, function = READING[name]
    _plan(function, "fused")(*pb.put((x, P, Q), "cpu"))
    assert alone.isdisjoint({"gather", "take_along", "scatter_add", "put_along", "class_numbers"})


@pytest.mark.parametrize("tier", TIERS)
def test_a_call_looks_once_when_everything_is_queued(tier):
    plan, expected = _plan(READING["elements"][1], tier), pb.value_and_grad(READING["elements"][1])(X, P, Q)
    with LateDevice(by_driver=True) as late:
        x, p, q = (late.put(one) for one in (X, P, Q))
        for _ in range(4):
            plan(x, p, q)
        late.forget()
        late.library.calls.clear()
        value, gradient = plan(x, p, q)
        assert late.waits == {"_local_scalar_dense in _is_set": 1}
        assert plan.summary()["looks"]
        assert late.transfers == {}
        if tier == "native":
            assert [name for name in late.library.calls if "Ctx" not in name] == ["cuGraphLaunch"]
        for ours, theirs in zip((value, gradient), expected, strict=True):
            np.testing.assert_allclose(late.take(ours), theirs, rtol=1e-12)


AROUND = np.array([1, 1, 4])


@pytest.mark.parametrize("tier", TIERS)
def test_positions_of_the_host_are_looked_at_there(tier):
    def function(x):
        return np.sum(x[AROUND] ** 2) + np.sum(x[:, np.array([0, -1, 0])] ** 3)

    plan = _plan(function, tier)
    with LateDevice(by_driver=True) as late:
        x = late.put(X)
        for _ in range(4):
            plan(x)
        late.forget()
        value, _ = plan(x)
        assert late.waits == {}
        assert not plan.summary()["looks"]
        np.testing.assert_allclose(late.take(value), function(X), rtol=1e-12)


@pytest.mark.parametrize("tier", TIERS)
def test_a_position_out_of_bounds_is_numpys_error_and_the_next_call_is_right(tier):
    plan, expected = _plan(READING["elements"][1], tier), pb.value_and_grad(READING["elements"][1])(X, P, Q)
    x, p, q = pb.put((X, P, Q), "cpu")
    for _ in range(4):
        plan(x, p, q)
    for wrong, said in ((4, "index 4 is out of bounds for axis 1 with size 4"), (-5, "index -5 is out of bounds")):
        bad = Q.copy()
        bad[3] = wrong
        with pytest.raises(IndexError, match=said):
            plan(x, p, pb.put(bad, "cpu"))
        _agree(plan(x, p, q), expected)


@pytest.mark.parametrize("tier", TIERS)
def test_a_position_of_the_host_out_of_bounds_is_numpys_error(tier):
    plan = _plan(lambda x: np.sum(x[AROUND] ** 2), tier)
    x = pb.put(X, "cpu")
    try:
        for _ in range(4):
            plan(x)
        AROUND[1] = 5
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
            plan(x)
    finally:
        AROUND[1] = 1
    _agree(plan(x), pb.value_and_grad(lambda x: np.sum(x[AROUND] ** 2))(X))
    never = _plan(lambda x: np.sum(x[np.array([0, 7])]), tier)
    for _ in range(2):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
            never(x)


@pytest.mark.parametrize("tier", TIERS)
def test_a_class_that_is_none_is_refused(tier):
    plan = _plan(lambda x, labels: pb.nn.logitcrossentropy(x, labels, axis=0), tier)
    x, labels = pb.put((X, np.array([0, 4, 2, 1])), "cpu")
    for _ in range(4):
        plan(x, labels)
    for wrong in (5, -1):
        with pytest.raises(ValueError, match="class numbers go from 0 to 4"):
            plan(x, pb.put(np.array([0, wrong, 2, 1]), "cpu"))


@pytest.mark.parametrize("name", ["mlp_step", "gmm", "gmm_likelihood"])
def test_workloads_that_read_by_positions_are_one_graph(name):
    workload = find_workload(name)
    case = workload.cases("quick")[0]
    function, inputs = workload.differentiated(pb, **dict(case.params)), workload.draw_inputs(case).values()
    plan, expected = pb.compile(function, tier="native"), function(*inputs)
    for _ in range(4):
        found = plan(*pb.put(tuple(inputs), "cpu"))
    assert plan.summary()["fallbacks"] == []
    assert plan.summary()["graph"]["nodes"] > 0
    for ours, theirs in zip(_flat(found), _flat(expected), strict=True):
        rtol = 1e-4 if theirs.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-6)


def _in_drawn_order(monkeypatch, seed):
    def loader(kernels):
        emulator, rng = Emulator(kernels), np.random.default_rng(seed)

        def launch(addresses):
            for kernel in kernels.kernels:
                emulator.launch(kernel, [addresses[one.piece] for one in kernel.parameters], rng)

        return launch

    monkeypatch.setattr(program, "loader_for", lambda device: loader)


def test_what_is_added_up_many_times_has_the_same_bits_in_any_order(monkeypatch):
    function = lambda x, p, q: np.sum(np.sin(x[p]) * np.linspace(0.1, 3, 2800).reshape(700, 4))  # noqa: E731
    many, results = np.resize(P, 700), []
    for seed in (1, 2, 3):
        _in_drawn_order(monkeypatch, seed)
        results.append(_flat(_plan(function, "fused")(*pb.put((X, many, Q), "cpu"))))
    for one, other in zip(results[0], results[1], strict=True):
        assert one.tobytes() == other.tobytes()
    for one, other in zip(results[0], results[2], strict=True):
        assert one.tobytes() == other.tobytes()
    _agree(results[0], pb.value_and_grad(function)(X, many, Q), 1e-11)


def test_sums_of_too_many_points_are_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(position_sums, "MOST_POINTS", 10)
    x, function = READING["rows"]
    plan = _plan(function, "stateful")
    for _ in range(2):
        _agree(plan(*pb.put((x, P, Q), "cpu")), pb.value_and_grad(function)(x, P, Q))
    assert plan.summary()["transient"] == ["scatter_add"]


# --- planted faults -----------------------------------------------------------------------------------------------------
def _is_wrong(name, tier="fused"):
    x, function = READING[name]
    try:
        _agree(_plan(function, tier)(*pb.put((x, P, Q), "cpu")), pb.value_and_grad(function)(x, P, Q))
    except AssertionError:
        return True
    return False


def test_a_nest_that_reads_by_positions_what_it_has_not_written_is_found(monkeypatch):
    for module in (fusion, merging):
        monkeypatch.setattr(module, "read_elsewhere", lambda node: ())
    monkeypatch.setitem(READING, "fault", (X, lambda x, p, q: np.sum(np.tanh(x)[np.argsort(x[:, 0])] * x)))
    with pb.debug.poisoning():
        assert _is_wrong("fault", "stateful")


def test_places_that_are_compared_the_wrong_way_are_found(monkeypatch):
    monkeypatch.setattr(position_sums, "equal", logic.not_equal)
    assert _is_wrong("rows")


def test_a_look_that_is_left_out_is_found(monkeypatch):
    monkeypatch.setattr(bounds_checks, "_is_set", lambda flag: False)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_position_out_of_bounds_is_numpys_error_and_the_next_call_is_right("fused")
