"""Imports that programs make, and the small modules behind them."""

import importlib
import subprocess
import sys

import numpy as onp  # noqa: ICN001 (np is the namespace under test)
import pytest

import pullback.compat.autograd.numpy as np
from pullback.compat.autograd import builtins, grad, make_vjp
from pullback.compat.autograd.extend import vspace
from pullback.compat.autograd.misc import const_graph, flatten
from pullback.compat.autograd.misc.fixed_points import fixed_point
from pullback.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from pullback.compat.autograd.test_util import check_grads
from pullback.compat.autograd.tracer import Node, getval, isbox, trace

MODULES = """
autograd.builtins autograd.core autograd.differential_operators autograd.extend autograd.misc autograd.misc.fixed_points
autograd.misc.flatten autograd.misc.optimizers autograd.misc.tracers autograd.numpy autograd.numpy.fft
autograd.numpy.linalg autograd.numpy.numpy_boxes autograd.numpy.numpy_vjps autograd.numpy.random autograd.scipy
autograd.scipy.integrate autograd.scipy.linalg autograd.scipy.signal autograd.scipy.special autograd.scipy.stats
autograd.scipy.stats.beta autograd.scipy.stats.chi2 autograd.scipy.stats.dirichlet autograd.scipy.stats.gamma
autograd.scipy.stats.multivariate_normal autograd.scipy.stats.norm autograd.scipy.stats.poisson autograd.scipy.stats.t
autograd.test_util autograd.tracer autograd.util autograd.wrap_util
""".split()  # noqa: SIM905 (a list of names reads better in lines)


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_where_programs_look(name):
    module = importlib.import_module(f"pullback.compat.{name}")
    for public in getattr(module, "__all__", ()):
        getattr(module, public)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("name", ["autograd", "autograd.numpy", "autograd.scipy.stats", "autograd.extend"])
def test_a_module_can_be_the_first_one_imported(name):
    subprocess.run([sys.executable, "-c", f"import pullback.compat.{name}"], check=True, timeout=120)


def test_names_of_numpy_are_numpys():
    assert np.sin is onp.sin
    assert np.__version__ == onp.__version__
    assert np.float64 is onp.float64


def test_arrays_of_traced_values():
    assert grad(lambda x: np.sum(np.array([[x, 2 * x], [1.0, x**2]])))(3.0) == 9.0
    assert grad(lambda x: np.sum(np.append(np.array([x]), [x, 1.0])))(3.0) == 2.0


def test_isinstance_and_type_look_through_a_trace():
    def function(x):
        assert builtins.isinstance(x, float)
        assert builtins.type(x) is float
        assert isbox(x)
        assert getval(x) == 2.0
        return x

    assert grad(function)(2.0) == 1.0


def test_a_number_has_a_shape_and_a_dtype():
    def function(x):
        assert (x.shape, x.ndim, x.size, x.dtype) == ((), 0, 1, onp.float64)
        return x**2

    assert grad(function)(3.0) == 6.0


class Step(Node):
    """A node that knows how it was computed."""

    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        texts = {**dict(enumerate(map(str, args))), **{n: p.text for n, p in zip(parent_argnums, parents, strict=True)}}
        self.text = f"{fun.__name__}({', '.join(texts.values())})"

    def initialize_root(self, name):
        self.text = name


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (lambda x: np.sin(x) * 2.0 + x, 2.0 * onp.sin(1.5) + 1.5, "add(mul(sin(x), 2.0), x)"),
        (grad(lambda x: np.sin(x) * 2.0), 2.0 * onp.cos(1.5), "mul(2.0, cos(x))"),  # traces nest
    ],
)
def test_a_trace_hands_each_step_to_a_node_class(function, value, text):
    result, node = trace(Step.new_root("x"), function, 1.5)
    assert result == value
    assert node.text == text


def test_a_trace_of_a_constant_has_no_node():
    with pytest.warns(UserWarning, match="independent of input"):
        assert trace(Step.new_root("x"), lambda x: 2.0, 1.5) == (2.0, None)


def test_flattening_goes_both_ways():
    tree = (1.0, {"b": onp.ones(2), "a": [3.0]})
    vector, unflatten = flatten(tree)
    onp.testing.assert_array_equal(vector, [1.0, 3.0, 1.0, 1.0])
    assert unflatten(vector)[1]["a"] == [3.0]
    check_grads(lambda x: flatten({"k": x})[0])(onp.ones(2))


def test_const_graph_replays_what_depends_on_the_argument():
    calls = []

    def function(x, y):
        calls.append(x)
        return np.sin(x) * y

    replayed = const_graph(function)
    assert replayed(1.0, 2.0) == onp.sin(1.0) * 2.0
    assert replayed(0.5, 3.0) == onp.sin(0.5) * 3.0
    assert len(calls) == 1


def test_fixed_points_are_differentiated_implicitly():
    def newton(a):
        return lambda x: 0.5 * (x + a / x)

    def root(a):
        return fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)

    assert root(2.0) == pytest.approx(2**0.5)
    assert grad(root)(2.0) == pytest.approx(0.5 / 2**0.5)


@pytest.mark.parametrize(("optimize", "step_size"), [(sgd, 0.1), (rmsprop, 0.05), (adam, 0.05)])
def test_optimizers_take_containers_and_descend(optimize, step_size):
    start = {"a": 3.0, "b": onp.array([-2.0, 1.0])}

    def loss(p):
        return p["a"] ** 2 + np.sum(p["b"] ** 2)

    seen = []
    end = optimize(
        lambda p, i: grad(loss)(p), start, lambda p, i, g: seen.append(i), num_iters=200, step_size=step_size
    )
    assert loss(end) < 0.05 * loss(start)
    assert seen == list(range(200))


def test_vector_spaces_of_containers():
    space = vspace({"x": [0.0, onp.zeros((3, 1))], "y": 1j})
    assert space.size == 6
    assert len(list(space.standard_basis())) == 6
    assert space == vspace(space.zeros()) == vspace(space.randn())
    with pytest.raises(TypeError, match="str"):
        vspace("text")
    vjp, _ = make_vjp(space.inner_prod, 0)(space.ones(), space.ones())
    assert space.inner_prod(space.covector(vjp(1.0)), space.ones()) == 4 + 2
