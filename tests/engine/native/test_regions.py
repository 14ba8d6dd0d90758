"""What becomes native and what stays with the interpreter."""

import functools

import numpy as np
import pytest

import pullback as pb
from pullback.backends.native import support
from pullback.backends.native.entry import callable_program
from pullback.backends.native.regions import Region, split
from pullback.core.types import type_of
from pullback.passes.pipeline import Stages, simplify
from pullback.scipy import special
from pullback.traces.recorder import record

X = np.random.default_rng(5).standard_normal((4, 4))


def lowered(function, *args):
    graph, _ = record(lambda *traced: ([function(*traced)], None), [type_of(arg) for arg in args], list(args))
    return simplify(graph, Stages(), lowered=True)


def names(graph):
    return [node.primitive.name for node in graph.nodes]


def around_gammaln(x):
    return np.sum(special.gammaln(np.exp(-x * x))[::-1] * x.T)


@pytest.fixture
def calls_in_python(monkeypatch):
    """Programs that were called through Python, one for each such call."""
    seen = []
    computed = callable_program._PythonEntry._computed

    def counted(plain, values, outputs):
        seen.append(plain.program)
        return computed(plain, values, outputs)

    monkeypatch.setattr(callable_program._PythonEntry, "_computed", counted)
    return seen


def test_a_graph_that_is_native_throughout_has_no_reason_against_it():
    graph = lowered(lambda x: np.sum(np.exp(x @ x)), X)
    assert [support.why_not(node) for node in graph.nodes] == [None] * len(graph.nodes)


def test_native_nodes_before_and_after_another_are_two_regions():
    found = split(lowered(around_gammaln, X))
    assert [len(region.graph.nodes) > 0 for region in found.regions] == [True, True]
    assert names(found.graph)[:2] == ["in_order", "native0"]
    assert found.graph.nodes[-1].primitive is found.regions[-1]
    assert all("native code" in reason for reason in found.fallbacks)


def test_views_are_taken_into_the_region_that_reads_them():
    found = split(lowered(around_gammaln, X))
    after = found.regions[-1].graph
    assert {"index", "transpose"} <= set(names(after))
    assert not {"index", "transpose"} & set(names(found.graph))


@pytest.mark.parametrize("function", [around_gammaln, lambda x: np.sum(special.jv(2, x + 9) * np.tanh(x))])
def test_results_and_gradients_are_those_of_the_tape(function):
    plan = pb.compile(pb.value_and_grad(function), tier="native")
    for _ in range(3):
        value, slope = plan(X)
        expected, expected_slope = pb.value_and_grad(function)(X)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-11)
    assert plan.summary()["fallbacks"]


def test_python_numbers_beside_what_is_not_native_stay_python_numbers():
    def function(p, x):
        return 3 * p * np.sum(special.gammaln(x) * p)

    plan = pb.compile(pb.value_and_grad(function), tier="native")
    value, slope = plan(2.0, np.arange(1.0, 4.0))
    np.testing.assert_allclose((value, slope), 12 * np.log(2.0), rtol=1e-14)
    assert any("Python numbers" in reason for reason in plan.summary()["fallbacks"])


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (np.ones(3, complex), "complex number that is no array"),
        (np.ones(3, np.float16), "float16"),
    ],
)
def test_the_summary_says_what_is_not_native(argument, reason):
    plan = pb.compile(lambda x: np.sum(x * x), tier="native")
    assert plan(argument) == np.sum(argument * argument)
    assert any(reason in fallback for fallback in plan.summary()["fallbacks"])


def test_guards_are_checked_on_what_the_program_computed():
    def function(x):
        return np.sum(np.exp(x)) if np.sum(x) > 0 else np.sum(x * x)

    plan = pb.compile(pb.grad(function), tier="native")
    for x in (np.ones(3), -np.ones(3), np.full(3, 2.0)):
        np.testing.assert_allclose(plan(x), pb.grad(function)(x), rtol=1e-15)
    assert plan.summary()["fallbacks"] == []


def test_operands_of_any_layout_are_taken():
    plan = pb.compile(lambda x, y: np.sum(np.exp(x) * y), tier="native")
    x = np.arange(24.0).reshape(4, 6) / 10
    expected = plan(x, x)
    for layout in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x[::-1][::-1]):
        np.testing.assert_allclose(plan(layout, x), expected, rtol=1e-15)
    unaligned = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape)
    np.testing.assert_allclose(plan(unaligned, x), expected, rtol=1e-15)


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    plan = pb.compile(lambda x: np.sum(x * x), tier="native")
    assert plan(np.arange(3.0)) == 5.0
    assert plan.summary()["fallbacks"] == ["PULLBACK_NATIVE=0 switches the native tier off"]


def test_a_page_shows_the_native_programs_of_a_plan_and_what_is_between_them():
    plan = pb.compile(around_gammaln, tier="native")
    plan(X)
    sections = [section.partition("\n") for section in plan.explain().split("\n\n")]
    page = {title.removeprefix("# "): text for title, _, text in sections}
    assert page["native0 of the program"].startswith("native program(a: f8[4,4]):")
    assert "nest [4, 4]" in page["native1 of the program"]
    (calls,) = (line for line in page["plan"].splitlines() if line.startswith("calls"))
    assert calls.startswith(
        "calls go through Python: gammaln is not written in native code. 1 step by NumPy and 2 native programs take turns: about 3 µs"
    )


def test_kernels_and_memory_of_regions_are_counted():
    whole, parts = (
        pb.compile(lambda x, f=f: np.sum(np.tanh(f(np.sin(x @ x)) @ x)), tier="native")
        for f in (np.abs, lambda x: special.gammaln(np.abs(x) + 1.0))
    )
    whole(X), parts(X)
    assert parts.summary()["kernels"] == whole.summary()["kernels"] + 1  # the product along the axis, by NumPy
    assert parts.summary()["state_bytes"] >= 2 * X.nbytes


def test_plans_whose_regions_differ_have_other_hashes():
    plans = [pb.compile(lambda x, by=by: np.sort(x * by) + by, tier="native") for by in (2.0, 3.0, 2.0)]
    for plan in plans:
        plan(X)
    first, other, same = (plan.summary()["hash"] for plan in plans)
    assert first == same != other


def test_a_function_of_nothing_that_gives_nothing_has_a_plan():
    for function, args in ((lambda: None, ()), (lambda tree: tree, ({},)), (lambda tree: [tree], ({"w": None},))):
        plan = pb.compile(function, tier="native")
        for _ in range(4):
            assert plan(*args) == function(*args)
        assert "calls are native" in plan.explain()


def test_the_listing_names_kernels_and_where_their_results_go():
    plan = pb.compile(lambda w, x: np.sum(np.tanh(w @ x)), tier="native")
    plan(X, X)
    page = plan.explain()
    assert "native program(a: f8[4,4], b: f8[4,4]):" in page
    assert "nest [4, 4]" in page
    assert "arena+0" in page
    assert "out0" in page


def test_an_output_that_is_one_element_of_an_argument_is_that_element():
    plan = pb.compile(lambda x: (x[2, 1], x[1:, ::2][1, 1], np.exp(x)[3, 0]), tier="native")
    assert plan(X)[:2] == (X[2, 1], X[2, 2])
    np.testing.assert_allclose(plan(X)[2], np.exp(X[3, 0]), rtol=1e-15)


def test_python_integers_that_do_not_fit_are_refused_as_numpy_refuses_them():
    x = np.ones(3, np.int32)
    with pytest.raises(OverflowError):
        pb.compile(lambda x: x * 10**12, tier="native")(x)
    with pytest.raises(OverflowError):
        pb.compile(lambda x, s: x * s, tier="native")(x, 10**12)
    np.testing.assert_array_equal(pb.compile(lambda x: x * 7, tier="native")(x), [7, 7, 7])


def test_powers_at_the_borders_are_those_of_numpy():
    x = np.array([-np.inf, -0.0, 0.0, np.inf, 2.0])
    plan = pb.compile(lambda x: (x**-0.5, x**1.5, x**7, x**-2.0), tier="native")
    with np.errstate(all="ignore"):
        for found, exponent in zip(plan(x), (-0.5, 1.5, 7, -2.0), strict=True):
            expected = np.power(x, exponent)
            np.testing.assert_allclose(found, expected, rtol=1e-15)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def gammas_between(x, *others):
    """Native programs of several operations, and a function of SciPy's between them."""
    for other in others:
        x = special.gammaln(np.tanh(x * other.T) + 3 + 0.5 * np.tanh(x))
    return np.sum(x * x)


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every other element": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: np.flip(np.flip(x).copy()),
    "unaligned": lambda x: np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
    "one row for all": lambda x: np.broadcast_to(x[:1], x.shape),
}


def test_what_a_plan_keeps_reaches_native_programs_in_one_list(monkeypatch, calls_in_python):
    """Python puts more than 30 arguments through three lists: some 100 instructions for each array."""
    handed = []
    in_state = Region.in_state

    def recorded(region, places):
        write = in_state(region, places)
        return lambda *args: handed.append((len(args), len(write.spread(args)))) or write(*args)

    monkeypatch.setattr(Region, "in_state", recorded)
    others = tuple(X + k for k in range(12))

    def function(x, *others):
        for _ in range(2):
            x = special.j1(functools.reduce(lambda y, other: np.tanh(y * other), others, x))
        return np.sum(x * x)

    gradient = pb.value_and_grad(function, wrt=tuple(range(13)))
    plan = pb.compile(gradient, tier="native")
    held = [plan(X + k / 9, *others) for k in range(4)]
    calls_in_python.clear()
    held.append(plan(X + 4 / 9, *others))
    assert calls_in_python == []
    for k, (value, slopes) in enumerate(held):
        expected, expected_slopes = gradient(X + k / 9, *others)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slopes, expected_slopes, rtol=1e-9, atol=1e-12)
    assert max(arrays for _, arrays in handed) > 60
    assert all(args <= 1 + len(others) + 1 for args, _ in handed)  # the list, and the arguments of the plan


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arguments_of_any_layout_reach_native_programs_without_python(layout, calls_in_python):
    laid, others = LAYOUTS[layout](X), (X + 1.0, LAYOUTS[layout](X - 1.0))
    gradient = pb.value_and_grad(gammas_between, wrt=(0, 1, 2))
    plan = pb.compile(gradient)
    for _ in range(4):
        plan(laid, *others)
    calls_in_python.clear()
    value, slopes = plan(laid, *others)
    assert calls_in_python == []
    assert "native2 of the program" in plan.explain()
    expected, expected_slopes = gradient(laid, *others)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for ours, theirs in zip(slopes, expected_slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_program_that_is_native_throughout_is_called_natively_with_any_layout(layout, calls_in_python):
    plan = pb.compile(lambda x, y: np.tanh(x) @ y)
    laid = LAYOUTS[layout](X)
    for _ in range(5):
        np.testing.assert_allclose(plan(laid, X), np.tanh(laid) @ X, rtol=1e-14)
    calls_in_python.clear()
    plan(laid, X)
    assert calls_in_python == []


@pb.primitive
def turned_square(x):
    """A rule whose result is not in C order."""
    return np.asfortranarray(x * x)


def test_what_rules_make_in_another_order_is_put_in_order_for_regions(calls_in_python):
    def function(x):
        y = turned_square(x)
        return np.sum(np.tanh(y * x) * np.exp(y) + turned_square(np.tanh(y)) * x)

    plan = pb.compile(function)
    for _ in range(4):
        plan(X)
    calls_in_python.clear()
    np.testing.assert_allclose(plan(X), function(X), rtol=1e-12)
    assert calls_in_python == []


@pytest.mark.parametrize(
    ("operation", "n", "regions"),
    [(np.sqrt, 60, 0), (np.tanh, 8, 0), (np.tanh, 60, 1), (lambda x: np.exp(-x), 4, 1), (lambda x: x + 1.0, 400, 1)],
)
def test_one_operation_that_numpy_does_as_fast_is_left_to_it(operation, n, regions):
    graph = lowered(lambda x: np.fft.rfft(operation(np.fft.irfft(np.fft.rfft(x), n))), np.ones((n, n)))
    found = split(graph)
    assert len(found.regions) == regions
    assert found.interpreted == len([node for node in graph.nodes if node.primitive.name in ("rfft", "irfft")]) + (
        not regions
    )


def test_the_page_says_all_that_fell_back():
    plan = pb.compile(lambda x: np.sum(np.tanh(special.gammaln(np.sort(x) ** 2 + 2.0) * special.j0(x)) * 3.0))
    plan(X)
    (calls,) = (line for line in plan.explain().splitlines() if line.startswith("calls"))
    assert all(reason in calls for reason in plan.summary()["fallbacks"])
    assert len(plan.summary()["fallbacks"]) > 1


#: Programs of a matrix and a Python number, of which some parts have no native form.
OF_NUMBERS = {
    "a mask first": lambda x, t: (x > t, np.where(x > t, x, t), np.linalg.det(x)),
    "positions first": lambda x, t: (np.searchsorted(np.sort(x.ravel()), t), x * t, np.linalg.det(x)),
    "whole numbers": lambda x, t: (np.arange(5) > t, np.arange(5) * t, x * t, np.linalg.det(x)),
    "a loop": lambda x, t: (
        pb.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, np.where(s[1] > t, s[1] * t, s[1] + t)), (0, x))[1],
        np.linalg.det(x),
    ),
    "a gradient": lambda x, t: pb.grad(
        lambda y: np.sum(special.j0(y + np.where(y > t, y, 0))) * np.sum(np.where(y > t, y, t))
    )(x),
}


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("tier", pb.TIERS)
@pytest.mark.parametrize("number", [0.3, 2, True], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_number_keeps_its_dtype_between_native_parts(name, dtype, number, tier):
    x = np.random.default_rng(0).normal(size=(5, 5)).astype(dtype)
    expected = pb.compile(OF_NUMBERS[name], tier="unfused")(x, number)
    if name != "a gradient":
        for ours, numpys in zip(expected[:2], OF_NUMBERS[name](x, number)[:2], strict=True):
            np.testing.assert_array_equal(ours, numpys)
    plan = pb.compile(OF_NUMBERS[name], tier=tier)
    for _ in range(2):
        for ours, wanted in zip(plan(x, number), expected, strict=True):
            assert np.asarray(ours).dtype == np.asarray(wanted).dtype
            np.testing.assert_allclose(ours, wanted, rtol=1e-4 if dtype == "f4" else 1e-10)
