"""Independent products are branches of the graph: on the late device, whose branches run in drawn orders, with the bits of the serial order."""

import random
import re
from contextlib import nullcontext

import numpy as np
import pytest
from tests.engine.test_random_programs import Program

import pullback as pb

torch = pytest.importorskip("torch", reason="NO TESTS OF DEVICE ARRAYS: PyTorch is not installed")

from tests.engine.cuda.late import Lane, LateDevice  # noqa: E402

from pullback.backends.cuda import branches, capture  # noqa: E402
from pullback.backends.cuda.statements import Statement, Text  # noqa: E402
from pullback.core.types import ArrayType  # noqa: E402
from pullback.ir.graph import Node, Var  # noqa: E402
from pullback.rules.contractions import matmul  # noqa: E402

RNG = np.random.default_rng(0)
X, W, U, V = (RNG.normal(size=(6, 6)) / 3 for _ in range(4))
IMAGES, KERNELS, BIAS = RNG.normal(size=(2, 2, 4, 4)), RNG.normal(size=(2, 2, 3, 3)) / 3, RNG.normal(size=2)
NARROW = X.astype(np.float32)

#: Choices among the nodes that may run next.
ORDERS = {"as captured": lambda ready: ready[0], "the last first": lambda ready: ready[-1]} | {
    f"drawn with {seed}": random.Random(seed).choice for seed in (1, 2)
}


def _layers(x, w, u):
    return np.sum(np.tanh(np.tanh(x @ w) @ u) ** 2)


def _chain(x, w):
    return np.sum(np.tanh(x @ w @ w) ** 2)


def _attention(x, w, u, v):
    scores = (x @ w) @ (x @ u).T
    return np.sum(np.tanh(np.exp(scores) / np.sum(np.exp(scores), axis=1, keepdims=True) @ (x @ v)) ** 2)


def _stacks(x, w):
    both = np.stack([x, w])
    return np.sum(np.tanh(both @ (both + 1)) ** 2)


def _own_factors(x, w, u, v):
    """Factors that nobody needs after their product, whose memory the next result would be given."""
    a, b, c = np.tanh(x), np.sin(w), np.cos(u)
    return np.sum(np.tanh(a @ v) * np.tanh(b @ v) * np.tanh(c @ v))


def _joined(x, w, u):
    return np.sum(np.tanh(np.concatenate([x @ w, w @ u, u @ x])) ** 2)


def _of_two_dtypes(x, w):
    """Products that PyTorch makes in memory of its pool."""
    a = np.tanh(x)
    return np.sum(np.tanh(a @ w) * np.tanh(w @ a))


def _convolved(x, w, b):
    hidden = pb.nn.conv_bias_act(w, np.tanh(x), b, act="tanh", pad=1, stride=1)
    return np.sum(pb.nn.conv_bias_act(w, hidden, b, act="tanh", pad=1, stride=1) ** 2)


def _in_a_loop(x, w, u):
    def step(h, row):
        a, b = np.tanh(h @ w), np.cos(h @ u)
        return a * b + row, a

    h, rows = pb.scan(step, x, np.stack([x, w, u]))
    return np.sum(h) + np.sum(rows**2)


CASES = {
    "layers": (_layers, (X, W, U)),
    "chain": (_chain, (X, W)),
    "attention": (_attention, (X, W, U, V)),
    "stacks": (_stacks, (X, W)),
    "own factors": (_own_factors, (X, W, U, V)),
    "joined": (_joined, (X, W, U)),
    "two dtypes": (_of_two_dtypes, (NARROW, W)),
    "convolutions": (_convolved, (IMAGES, KERNELS, BIAS)),
    "loop": (_in_a_loop, (X, W, U)),
}


@pytest.fixture
def late():
    with LateDevice(by_driver=True) as device:
        yield device


def _results(late, function, arguments, *, branching=True, scales=(1, 0.5, 2, 0.75, 1.5)):
    """The plan and its results for several arguments, all queued before any is awaited."""
    plan = pb.compile(function, tier="native")
    made = []
    with nullcontext() if branching else branches.one_after_the_other():
        for scale in scales:
            results = plan(*(late.put(np.asarray(x * scale, x.dtype)) for x in arguments))
            made += results if isinstance(results, tuple) else [results]
        return plan, [late.take(one) for one in made]


def _gradient(case):
    loss, arguments = CASES[case]
    return pb.value_and_grad(loss, wrt=tuple(range(len(arguments)))), arguments


def _flat(late, case, **more):
    function, arguments = _gradient(case)

    def flat(*args):
        value, gradients = function(*args)
        return value, *gradients

    return _results(late, flat, arguments, **more)


def _same(ours, theirs):
    return all(one.tobytes() == other.tobytes() for one, other in zip(ours, theirs, strict=True))


def _branches(plan):
    return plan.summary()["graph"]["branches"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES)
def test_bits_are_those_of_the_serial_order_in_whatever_order_branches_run(late, case, order):
    serial, expected = _flat(late, case, branching=False)
    late.library.draw = ORDERS[order]
    plan, found = _flat(late, case)
    assert (_branches(serial), serial.summary()["fallbacks"]) == (0, [])
    assert plan.summary()["fallbacks"] == []
    assert _branches(plan) > 0
    assert _same(found, expected)
    assert not any(np.isnan(one).any() for one in found)
    value, gradients = _gradient(case)[0](*CASES[case][1])
    for ours, theirs in zip(found, (value, *gradients), strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if case == "two dtypes" else 1e-10, atol=1e-6)


#: Random programs with products.
PROGRAMS = (1, 3, 8, 12)


@pytest.mark.parametrize("number", PROGRAMS)
def test_random_programs_with_products_have_the_bits_of_the_serial_order(late, number):
    random_program = Program(number)
    arguments = [np.asarray(x) for x in random_program.calls[0]]
    gradient = pb.grad(random_program.loss, wrt=tuple(range(len(arguments))))

    def function(*args):
        return tuple(gradient(*args))

    serial, expected = _results(late, function, arguments, branching=False)
    for order in ("as captured", "the last first"):
        late.library.draw = ORDERS[order]
        plan, found = _results(late, function, arguments)
        assert plan.summary()["fallbacks"] == serial.summary()["fallbacks"]
        assert _same(found, expected)


def test_plans_say_how_many_branches_their_graphs_have(late):
    plan, _ = _flat(late, "layers")
    assert _branches(plan) == 2
    assert re.search(r"calls launch a CUDA graph of \d+ nodes with 2 branches on 2 streams, one of", plan.explain())
    text = plan.explain().partition("def work")[2]
    assert re.search(r"with branch\(1\): matmul\d+\(.*\)\n +matmul\d+\(.*\)\n +join\(\)", text)
    plan, _ = _results(late, lambda x: np.tanh(x @ x), [X])
    assert _branches(plan) == 0
    assert " with 0 branches on 1 stream, " in plan.explain()
    assert "join()" not in plan.explain()


def test_branches_of_a_loop_are_counted_in_each_step(late):
    def counted(steps):
        def loss(w, u):
            return np.sum(pb.scan(lambda h, row: (np.tanh(h @ w) * np.cos(h @ u) + row, None), X, rows)[0])

        rows = np.stack([X] * steps)
        return _branches(_results(late, pb.grad(loss, wrt=(0, 1)), (W, U))[0])

    two, three, four = counted(2), counted(3), counted(4)
    assert three - two == four - three > 0


def test_each_branch_has_a_workspace_of_its_own_which_stays_in_the_pool_of_the_lane(late):
    plan, _ = _flat(late, "attention")
    streams = plan.summary()["graph"]["streams"]
    assert streams == len([stream for stream in late.workspaces if stream]) == branches.MOST_BRANCHES
    assert late.requests["workspace"] == len(late.workspaces)
    addresses = {workspace.data_ptr() for workspace in late.workspaces.values()}
    assert len(addresses) == len(late.workspaces)
    late.clear_workspaces()  # as where another graph ends
    arguments = [late.put(x) for x in CASES["attention"][1]]
    value = plan(*arguments)[0]
    np.testing.assert_allclose(late.take(value), _attention(*CASES["attention"][1]), rtol=1e-11)


# --- the rule -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((128, 9), (9, 128 * 131)), True),
        (((128, 9), (9, 128 * 131 + 1)), False),
        (((129, 9), (9, 128 * 66)), False),
        (((131, 128, 9), (131, 9, 1)), True),
        (((132, 128, 9), (132, 9, 1)), False),
        (((132, 100, 9), (9, 1)), True),
        (((9, 9), (9,)), False),
        (((9,), (9, 9)), False),
        (((9, 0), (0, 9)), True),
        (((0, 9), (9, 9)), False),
    ],
)
def test_products_with_fewer_tiles_than_multiprocessors_may_be_branches(shapes, expected):
    types = [ArrayType(shape, np.dtype("f4")) for shape in shapes]
    (result,) = matmul.infer(*types)
    node = Node(matmul, tuple(map(Var, (0, 1), types)), (), (Var(2, result),), "")
    assert branches.is_small(node, 132) is expected
    assert not branches.is_small(node, 1)


def _statement(targets, used, **more):
    return Statement(tuple(targets), f"{''.join(targets)} of {''.join(used)}", tuple(used), **more)


def _product(target, *used):
    return _statement(target, used, writes=True, may_branch=True)


def _groups(statements, roots=()):
    """The targets in order, those of a group in brackets."""
    text = Text(branches.branched(statements, lambda name: dict(roots).get(name, name)), {}, dict(roots))
    named = ["".join(one.targets) for one in text.statements]
    moments = dict.fromkeys(text.moments())
    return " ".join(
        f"({' '.join(named[one.start : one.stop])})" if len(one) > 1 else named[one.start] for one in moments
    )


def test_products_come_to_the_first_that_they_do_not_depend_on():
    between = _statement("n", "pa", writes=True)
    assert _groups([_product("p", "a", "b"), between, _product("q", "b", "c")]) == "(p q) n"
    assert _groups([_product("p", "a", "b"), between, _product("q", "p", "c")]) == "p n q"
    assert _groups([_product("p", "a", "b"), between, _product("q", "n", "c")]) == "p n q"
    assert _groups([_product("p", "a", "b"), between, _product("p", "b", "c")]) == "p n p"
    assert _groups([_product("p", "a", "b"), between, _product("a", "b", "c")]) == "p n a"


def test_a_product_stays_behind_what_writes_over_memory_that_it_reads():
    into = _statement("", "pb", writes=True, over=("b",))
    assert _groups([_product("p", "a", "a"), into, _product("q", "b", "c")]) == "p  q"
    view = [("v", "b")]
    assert _groups([_product("p", "a", "a"), into, _product("q", "v", "c")], view) == "p  q"
    assert _groups([_product("p", "a", "a"), into, _product("v", "a", "c")], view) == "p  v"


def test_names_of_memory_come_with_the_product_that_reads_them():
    view, other = _statement("v", "b", sees=True), _statement("n", "p", writes=True)
    roots = [("v", "b")]
    assert _groups([_product("p", "a", "a"), other, view, _product("q", "v", "c")], roots) == "v (p q) n"
    late_view = [_product("p", "a", "a"), _statement("b", "p", writes=True), view, _product("q", "v", "c")]
    assert _groups(late_view, roots) == "p b v q"
    fresh = [_product("p", "a", "a"), _statement("b", "b"), view, _product("q", "v", "c")]  # `b = in_order(b)`
    assert _groups(fresh, roots) == "p b v q"


def test_the_last_of_a_group_stays_on_the_stream_of_everything_else():
    found = branches.branched([_product(name, "x", "y") for name in "abc"], lambda name: name)
    assert [one.branch for one in found] == [1, 2, 0]


def test_a_group_has_no_more_products_than_a_lane_has_streams():
    assert _groups([_product(name, "x", "y") for name in "abcdef"]) == "(a b c d) (e f)"


# --- what the late device refuses -------------------------------------------------------------------------------------------
def _captured(late, work):
    """Capture work, which is given the graph."""
    graphs = []
    return late.graphs.capture(graphs.append, lambda: work(graphs[0]))


def _launched(late):
    late.enqueue(lambda: None)


def _beside(late, graph, number=1):
    with graph.branch(number):
        _launched(late)


def _unjoined(late, graph):
    _launched(late)
    _beside(late, graph)


def _joined_too_early(late, graph):
    with graph.branch(1):
        _launched(late)
        graph.join()
        _launched(late)


def _by_an_event_of_before(late, graph):
    late.driver.follow(late.stream, 0, graph._lane.event)


def _without_a_fork(late, graph):
    with graph._lane.on(graph._lane.beside[0]):
        _launched(late)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (_unjoined, "cuStreamEndCapture failed with CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
        (_joined_too_early, "cuStreamEndCapture failed with CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
        (_by_an_event_of_before, "cuStreamWaitEvent failed with CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
        (_without_a_fork, "work on another stream is not permitted when stream is capturing"),
    ],
)
def test_the_late_device_refuses_of_branches_what_cuda_refuses(late, work, said):
    with pytest.raises((RuntimeError, pb.errors.DeviceError), match=said):
        _captured(late, lambda graph: work(late, graph))
    assert late.library.capturing == {}
    assert late.stream == 0
    assert _captured(late, lambda graph: (_beside(late, graph), graph.join())).nodes == 1  # the next one is right


def test_an_error_in_a_branch_ends_the_capture_and_the_plan_runs_step_by_step(late, monkeypatch):
    monkeypatch.setattr(
        Lane, "on", lambda lane, stream, on=Lane.on: (_refusing(late, stream, lane), on(lane, stream))[1]
    )
    plan, found = _flat(late, "layers")
    assert "waiting is not permitted when stream is capturing" in plan.summary()["fallbacks"][0]
    assert late.library.capturing == {}
    _, expected = _flat(late, "layers", branching=False)
    assert _same(found, expected)


def _refusing(late, stream, lane):
    if stream != lane.stream:
        late.wait("a look in a branch")


# --- planted faults -----------------------------------------------------------------------------------------------------------
def _found(late, case):
    """True if one of the orders gives other bits than the serial one."""
    _, expected = _flat(late, case, branching=False)
    found = []
    for draw in ORDERS.values():
        late.library.draw = draw
        plan, results = _flat(late, case)
        assert plan.summary()["fallbacks"] == []
        found.append(not _same(results, expected))
    return any(found)


def test_a_missing_join_is_found(late, monkeypatch):
    """At the end of the capture by CUDA; where something waits there by the order that branches run in."""
    join = capture._DriversGraph.join
    monkeypatch.setattr(capture._DriversGraph, "join", lambda graph: None)
    plan, _ = _flat(late, "layers")
    assert "CUDA_ERROR_STREAM_CAPTURE_UNJOINED" in plan.summary()["fallbacks"][0]
    ends = capture._DriversGraph.ends
    monkeypatch.setattr(capture._DriversGraph, "ends", lambda graph: (join(graph), ends(graph)))
    assert _found(late, "layers")


def test_a_branch_that_waits_for_nothing_is_found(late, monkeypatch):
    follow = late.driver.follow

    def follows_nothing(stream, other, event):
        follow(stream, other, event)
        taking_part = late.library.capturing[stream]
        if stream != taking_part.origin:
            taking_part.last[stream] = frozenset()

    monkeypatch.setattr(late.driver, "follow", follows_nothing)
    assert _found(late, "layers")


def test_memory_that_two_branches_share_is_found(late, monkeypatch):
    """Members of a group as if they ran one after the other."""
    monkeypatch.setattr(Text, "moments", lambda text: [range(n, n + 1) for n in range(len(text.statements))])
    assert _found(late, "own factors")


def test_branches_that_depend_on_each_other_are_found(late, monkeypatch):
    def neighbours(first, after, root):
        return ([0] if after and after[0].may_branch else []), []

    monkeypatch.setattr(branches, "_companions", neighbours)
    assert _found(late, "chain")
