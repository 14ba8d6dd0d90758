"""Programs on a device compute nests by kernels of ours: from the graph to launches, pieces of memory and guards."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engine.cuda.libcuda import Library

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from pullback.backends.cuda import bounds_checks, program  # noqa: E402 - loads PyTorch
from pullback.backends.cuda.driver import Driver  # noqa: E402
from pullback.backends.cuda.emulation import Emulator  # noqa: E402
from pullback.backends.cuda.kernel_launch import KernelLoader  # noqa: E402
from pullback.backends.cuda.kernels.phases import PhaseWriter  # noqa: E402
from pullback.core.types import ArrayType  # noqa: E402
from pullback.errors import DeviceError, GraphError  # noqa: E402
from pullback.ir.graph import Var  # noqa: E402
from pullback.passes.pipeline import DEVICE_KERNEL_PASSES  # noqa: E402

RNG = np.random.default_rng(0)
W, X, B = RNG.normal(size=(30, 20)), RNG.normal(size=(20, 10)), RNG.normal(size=(30, 1))


def _layer(w, x, b):
    return np.sum(np.tanh(w @ x + b) ** 2)


LAYER = pb.value_and_grad(_layer, wrt=(0, 1, 2))


def _flat(tree):
    return [np.asarray(leaf) for leaf in pb.trees.flatten(pb.fetch(tree))[0]]


def _agree(there, here):
    for ours, theirs in zip(_flat(there), _flat(here), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


@pytest.fixture
def loading(monkeypatch):
    """Programs load their kernels by this loader."""

    def use(loader):
        monkeypatch.setattr(program, "loader_for", lambda device: loader)

    return use


def test_what_stands_between_products_is_one_launch_or_few():
    plan = pb.compile(LAYER, tier="fused")
    _agree(plan(*pb.put((W, X, B), "cpu")), LAYER(W, X, B))
    text = plan.explain()
    assert "nest" in text
    assert "[30, 10]: add, tanh, square" in text
    assert plan.summary()["kernels"] < 8
    assert plan.summary()["fallbacks"] == []


def _of_a_loop(x, p):
    y = pb.scan(lambda c, row: (np.tanh(c + row), c), x[0], x)[1]
    return np.sum(pb.nn.softmax(y[p], axis=1) ** 2)


@pytest.mark.parametrize("tier", ["fused", "stateful", "native"])
def test_the_page_names_the_passes_of_a_device_in_the_order_of_the_pipeline(tier):
    plan = pb.compile(pb.value_and_grad(_of_a_loop), tier=tier)
    plan(*pb.put((RNG.normal(size=(5, 4)), np.array([0, 2, 2])), "cpu"))
    titles = [line[2:] for line in plan.explain().splitlines() if line.startswith("# ")]
    passes = [name for title in titles for name in title.split(", ")]
    first = passes.index("positions")
    own = [f"kernels: {name}" for name in DEVICE_KERNEL_PASSES]
    assert passes[first + 1 : first + 1 + len(own)] == own
    of_loop = [name.rpartition(": ")[2] for name in passes if name.startswith("kernels: body 1 of scan")]
    assert of_loop[: len(own)] == list(DEVICE_KERNEL_PASSES)


def test_positions_that_break_a_type_are_named_as_the_pass_that_did_it(monkeypatch):
    def broken(graph, there):
        bounds = bounds_checks.bounds_of(graph, there)
        *nodes, last = bounds.graph.nodes
        nodes.append(replace(last, outputs=(Var(last.outputs[0].index, ArrayType((7,), last.outputs[0].type.dtype)),)))
        return replace(bounds, graph=replace(bounds.graph, nodes=tuple(nodes), outputs=nodes[-1].outputs))

    monkeypatch.setattr(program, "bounds_of", broken)
    with pytest.raises(GraphError, match=r"after the pass positions: .* its rule gives f8\[\]"):
        pb.compile(lambda x: np.sum(x), tier="fused")(pb.put(np.ones(3), "cpu"))


def test_a_program_without_kernels_is_of_the_graph_before_positions(loading):
    def failing(kernels):
        raise DeviceError("no kernels today")

    loading(failing)
    plan = pb.compile(lambda x, p: np.sum(x[p]), tier="fused")
    plan(*pb.put((np.ones(3), np.array([0, 2])), "cpu"))
    page = plan.explain()
    before, _, after = page.partition("# without kernels")
    assert "logical_or" in before.partition("# positions")[2]
    assert "logical_or" not in after
    assert "# kernels" not in page


def _drawn(seed):
    def loader(kernels):
        emulator, rng = Emulator(kernels), np.random.default_rng(seed)

        def launch(addresses):
            for kernel in kernels.kernels:
                emulator.launch(kernel, [addresses[one.piece] for one in kernel.parameters], rng)

        return launch

    return loader


def test_a_program_gives_the_same_bits_in_any_order_of_threads_and_blocks(loading):
    results = []
    for seed in (1, 2):
        loading(_drawn(seed))
        results.append(_flat(pb.compile(LAYER, tier="fused")(*pb.put((W, X, B), "cpu"))))
    for one, other in zip(*results, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_program_launches_by_the_driver_what_the_emulator_runs(loading):
    libraries = []

    def loader(kernels):
        emulator, by_name = Emulator(kernels), {kernel.name: kernel for kernel in kernels.kernels}
        run = lambda name, blocks, threads, addresses: emulator.launch(by_name[name], addresses)  # noqa: E731
        libraries.append(Library(run))
        return KernelLoader(Driver(libraries[-1]), 0, "sm_90", lambda: 7)(kernels)

    loading(loader)
    plan = pb.compile(LAYER, tier="fused")
    for _ in range(2):
        _agree(plan(*pb.put((W, X, B), "cpu")), LAYER(W, X, B))
    assert libraries
    assert {library.launched["stream"] for library in libraries} == {7}


def test_the_page_of_a_plan_has_ptx_and_what_the_driver_made_of_it(loading):
    plan, arguments = pb.compile(LAYER, tier="fused"), pb.put((W, X, B), "cpu")
    plan(*arguments)
    text = plan.explain()
    assert "# kernels: nest" in text
    assert ".target sm_90" in text
    assert " registers, " not in text  # the emulator has none
    library = Library()
    loading(lambda kernels: KernelLoader(Driver(library), 0, "sm_90", lambda: 0)(kernels))
    plan = pb.compile(LAYER, tier="fused")
    plan(*arguments)
    text = plan.explain()
    assert " bytes of shared memory, 40 registers, 0 bytes of stack" in text
    assert text.count(" bytes of stack") == len(library.entries) == text.count(".entry ")


def test_the_page_of_a_plan_has_the_kernels_of_every_launch_though_two_are_the_same():
    plan = pb.compile(lambda w, x: np.tanh(w @ np.tanh(w @ x)), tier="fused")
    plan(*pb.put((W[:20], X), "cpu"))
    text = plan.explain()
    assert text.count(".entry ") == text.count("# kernels: nest") == 2


def test_a_kernel_that_is_wrong_is_found(monkeypatch):
    monkeypatch.setattr(PhaseWriter, "_accumulate", lambda *_: None)
    with pytest.raises(AssertionError):
        _agree(pb.compile(LAYER, tier="fused")(*pb.put((W, X, B), "cpu")), LAYER(W, X, B))


@pytest.mark.parametrize("tier", ["fused", "stateful"])
def test_where_kernels_cannot_be_loaded_pytorch_computes_and_the_summary_says_why(loading, tier):
    def refusing(kernels):
        raise DeviceError("the driver is too old for the PTX; install a newer one")

    loading(refusing)
    plan = pb.compile(LAYER, tier=tier)
    _agree(plan(*pb.put((W, X, B), "cpu")), LAYER(W, X, B))
    (told,) = plan.summary()["fallbacks"]
    assert (
        told == "PyTorch computes nests, operation by operation: the driver is too old for the PTX; install a newer one"
    )


@pytest.mark.parametrize(
    "given",
    [
        lambda x: torch.tensor(np.concatenate([[9.0], x.ravel()]))[1:].reshape(
            x.shape
        ),  # begins between two lines of 16 bytes
        lambda x: torch.tensor(np.ascontiguousarray(x.T)).T,
        lambda x: torch.tensor(np.repeat(x, 2, axis=1))[:, ::2],
        lambda x: torch.tensor(x * 1j).conj().imag,
        lambda x: torch.tensor(x[:, :1]).expand(x.shape),
    ],
    ids=["unaligned", "transposed", "strided", "negated", "stretched"],
)
def test_arrays_are_taken_as_they_lie(given):
    tensor = given(X)
    loss = pb.value_and_grad(lambda x: np.sum(np.sin(x) * x[:, ::-1]))
    _agree(pb.compile(loss, tier="fused")(tensor), loss(tensor.resolve_neg().numpy()))


def test_numbers_of_a_call_reach_kernels():
    step = pb.value_and_grad(lambda x, rate, n: np.sum(np.exp(-rate * x) / n), wrt=(0, 1))
    plan = pb.compile(step, tier="fused")
    for rate, n in ((0.5, 3), (0.25, 7)):
        value, (dx, drate) = plan(pb.put(X, "cpu"), rate, n)
        here = step(X, rate, n)
        _agree((value, dx), (here[0], here[1][0]))
        np.testing.assert_allclose(float(drate), here[1][1], rtol=1e-12)


def test_what_follows_a_guard_is_computed_only_if_it_holds():
    def loss(x):
        y = np.sum(x)
        if y > 0:
            return np.sum(np.sqrt(x))
        return np.sum(x[int(np.argmin(x))] ** 2)

    plan = pb.compile(pb.value_and_grad(loss), tier="fused")
    for x in (np.ones(4), -np.arange(4.0), np.arange(1.0, 5)):
        _agree(plan(pb.put(x, "cpu")), pb.value_and_grad(loss)(x))


def test_complex_numbers_and_what_has_no_kernel_go_by_pytorch_between_nests():
    loss = pb.value_and_grad(
        lambda x: np.sum(np.abs(np.fft.fft(np.tanh(x)) * (1 + 2j)) ** 2) + np.sum(np.sort(x * x)[1:])
    )
    x = RNG.normal(size=6)
    plan = pb.compile(loss, tier="fused")
    for ours, theirs in zip(_flat(plan(pb.put(x, "cpu"))), _flat(loss(x)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)


def test_arrays_without_elements_and_of_one():
    loss = pb.value_and_grad(lambda x: np.sum(np.tanh(x) * x) + 1.0)
    for shape in ((0,), (3, 0), (), (1,), (1, 1)):
        _agree(pb.compile(loss, tier="fused")(pb.put(np.full(shape, 0.5), "cpu")), loss(np.full(shape, 0.5)))


def test_arrays_are_let_go_after_their_last_use():
    """A chain of products of which each reads the one before it: two of them are alive at a time."""

    def chain(x):
        for _ in range(6):
            x = np.tanh(x @ x)
        return x

    plan = pb.compile(chain, tier="fused")
    x = RNG.normal(size=(8, 8)) / 8
    _agree(plan(pb.put(x, "cpu")), chain(x))
    summary = plan.summary()
    assert summary["arrays"] == 12
    assert summary["peak_bytes"] == 2 * x.nbytes


def test_the_summary_says_what_has_to_move():
    """Value and gradient of a polynomial: x is read once, the gradient is written once, and sums of blocks are little."""
    plan = pb.compile(pb.value_and_grad(lambda x: np.sum(((2 * x + 1) * x - 3) * x)), tier="fused")
    x = RNG.normal(size=100_000)
    _agree(plan(pb.put(x, "cpu"))[1], 6 * x**2 + 2 * x - 3)
    assert 1 <= plan.summary()["moved_bytes"] / (2 * x.nbytes) <= 1.05
