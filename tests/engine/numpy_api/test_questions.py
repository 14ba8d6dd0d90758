"""What a function asks of a traced value is answered as for the value it stands for, in every tier."""

import ast
import copy
import functools
import numbers
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

VALUES = {
    "array": np.array([1.0, 2.0]),
    "single": np.array([1.0, 2.0], "f4"),
    "complex array": np.array([1.0 + 1j, 2.0]),
    "0-d array": np.array(1.5),
    "scalar": np.float64(1.5),
    "single scalar": np.float32(1.5),
    "float": 1.5,
    "complex": 1.5 + 0.5j,
}

CLASSES = (np.ndarray, np.generic, np.floating, np.float64, np.float32, float, int, bool, complex, list, tuple, Mapping)
ABSTRACT = (numbers.Number, numbers.Real, numbers.Complex, numbers.Integral)


@functools.singledispatch
def named(x):
    return 0


@named.register
def _(x: np.ndarray):
    return 1


@named.register
def _(x: float):
    return 2


@named.register
def _(x: np.float32):
    return 3


def matched(x):
    match x:
        case np.ndarray(shape=(2,)):
            return 1
        case np.ndarray():
            return 2
        case float():
            return 3
        case _:
            return 4


QUESTIONS = {
    "isinstance": lambda x: [isinstance(x, kind) for kind in CLASSES],
    "abstract": lambda x: [isinstance(x, kind) for kind in ABSTRACT],
    "union": lambda x: [isinstance(x, int | float), isinstance(x, np.ndarray | list)],
    "isscalar": lambda x: [np.isscalar(x), np.ndim(x), np.iterable(x), np.iscomplexobj(x)],
    "attributes": lambda x: [hasattr(x, name) for name in ("shape", "dtype", "ndim", "size", "T", "__len__", "real")],
    "class": lambda x: [x.__class__ is np.ndarray, issubclass(x.__class__, float)],
    "singledispatch": lambda x: [named(x)],
    "match": lambda x: [matched(x)],
    "derived": lambda x: [
        isinstance(x * 2, np.ndarray),
        isinstance(np.sin(x), float),
        isinstance(np.sum(x), np.float64),
    ],
    "reduced": lambda x: [np.isscalar(reduce(np.abs(x))) for reduce in (np.max, np.mean, np.prod, np.ptp, np.std)],
    "views": lambda x: [isinstance(np.reshape(x, (-1,)), np.ndarray), isinstance(np.reshape(x, (-1,))[0], np.ndarray)],
    "whole": lambda x: [
        isinstance(np.where(np.sum(x) == 0, x, x), np.ndarray),
        isinstance(np.asarray([1.0]) * x, np.ndarray),
    ],
}


def watched(question, transform, x):
    """The answers given inside a transform, and those outside."""
    inside = []

    def function(x):
        inside.append(question(x))
        return np.real(np.sum(x * np.conj(x)))

    transform(function)(x)
    return inside[0], question(x)


TRANSFORMS = {
    "grad": pb.grad,
    "jvp": lambda f: lambda x: pb.jvp(f, (x,), (x,)),
    "grad of grad": lambda f: lambda x: pb.grad(lambda x: np.sum(np.abs(pb.grad(f)(x))))(x),
    **{tier: lambda f, tier=tier: pb.compile(f, tier=tier) for tier in pb.TIERS},
    **{f"{tier} grad": lambda f, tier=tier: pb.compile(pb.grad(f), tier=tier) for tier in pb.TIERS},
}


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("value", VALUES)
def test_a_traced_value_answers_as_the_value_does(value, question, transform):
    inside, outside = watched(QUESTIONS[question], TRANSFORMS[transform], VALUES[value])
    assert inside == outside


@pytest.mark.parametrize("tier", pb.TIERS)
def test_the_branch_that_a_class_chooses_is_taken(tier):
    def by_class(x):
        return np.sum(x**2) if isinstance(x, np.ndarray) else np.sum(x)

    def by_number(x):
        return x * 2.0 if isinstance(x, float) or np.isscalar(x) else x * 3.0

    value, gradient = pb.compile(pb.value_and_grad(by_class), tier=tier)(3 * np.ones(3))
    assert value == 27
    np.testing.assert_array_equal(gradient, [6, 6, 6])
    plan = pb.compile(pb.value_and_grad(by_number), tier=tier)
    assert [plan(1.0), plan(np.float64(1.0)), plan(np.array(1.0))] == [(2, 2), (2, 2), (3, 3)]
    if tier != "unfused":
        assert plan.summary()["fallbacks"] == []


@pytest.mark.parametrize("tier", pb.TIERS)
def test_examples_of_a_batch_and_steps_of_a_loop_answer_as_their_rows_do(tier):
    def doubled(x):
        return x * 2.0 if isinstance(x, np.ndarray) else x * 3.0

    assert pb.compile(pb.vmap(doubled), tier=tier)(np.ones(1)) == [3]
    assert pb.compile(pb.vmap(doubled), tier=tier)(np.ones((1, 1))) == [[2]]
    for shape, factor in (((1,), 3), ((1, 1), 2)):
        _, rows = pb.compile(lambda x: pb.scan(lambda h, row: (h, doubled(row)), 0.0, x), tier=tier)(np.ones(shape))
        np.testing.assert_array_equal(rows, factor * np.ones(shape))


@pytest.mark.parametrize("transform", ["grad", "jvp", "native grad"])
@pytest.mark.parametrize("value", ["array", "0-d array", "scalar"])
def test_a_traced_value_has_every_public_attribute_of_its_class(value, transform):
    names = [
        name for name in dir(VALUES[value]) if not name.startswith("_") and name != "mT"
    ]  # which an array of one axis has not
    inside, _ = watched(
        lambda x: [name for name in names if not hasattr(x, name)], TRANSFORMS[transform], VALUES[value]
    )
    assert inside == []


@pytest.mark.parametrize("transform", ["grad", "jvp", "native grad"])
def test_what_lies_in_memory_is_refused_by_name_when_it_is_used(transform):
    for name, use in {
        "flags": lambda x: x.flags.c_contiguous,
        "strides": lambda x: x.strides[0],
        "data": lambda x: x.data.nbytes,
        "ctypes": lambda x: x.ctypes.data,
    }.items():
        with pytest.raises(pb.errors.TracingError, match=name):
            watched(use, TRANSFORMS[transform], VALUES["array"])


OF_TYPES = {
    "equal": (lambda x: x * 2.0 if type(x) == float else x * 3.0, 2.0, "float"),  # noqa: E721
    "unequal": (lambda x: x * 3.0 if type(x) != np.float64 else x * 2.0, np.float64(2.0), "numpy.float64"),  # noqa: E721
    "among": (lambda x: x * 2.0 if type(x) in (int, float) else x * 3.0, 2.0, "int"),
    "array": (lambda x: np.sum(x * 2.0 if type(x) == np.ndarray else x * 3.0), np.array([1.0, 1.0]), "numpy.ndarray"),  # noqa: E721
}


@pytest.mark.parametrize("question", OF_TYPES)
def test_an_equal_type_is_refused_where_a_value_is_traced(question):
    function, x, name = OF_TYPES[question]
    for transform in (pb.grad, pb.value_and_grad, pb.vmap, lambda f: lambda x: pb.jvp(f, (x,), (x,))):
        batch = np.stack([x, x])
        with pytest.raises(pb.errors.TracingError, match=rf"test_questions.py, line \d+.*ask isinstance\(x, {name}\)"):
            transform(function)(batch if transform is pb.vmap else x)
    plan = pb.compile(function)
    with pytest.warns(pb.errors.PlanWarning, match=rf"ask isinstance\(x, {name}\)"):
        assert plan(x) == function(x) == 4.0
    assert type(pb.stop_gradient(x)) in (float, np.float64, np.ndarray)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x * 2.0 if type(x) is float else x * 3.0, "float"),
        (lambda x: x * 3.0 if type(x) is not float else x * 2.0, "float"),
        (lambda x: x * 3.0 if type(x) is np.float64 else x * 2.0, "numpy.float64"),
        (lambda x: x * 3.0 if type(x) is np.ndarray else x * 2.0, "numpy.ndarray"),
        (lambda x: x * 2.0 if type(x) is type(1.0) else x * 3.0, "float"),  # noqa: UP003 (as people write it)
        (lambda x: x * 2.0 if type(x) in {int, float} else x * 3.0, "float"),
        (lambda x: x * 3.0 if type(x) in {np.float32, np.float64} else x * 2.0, "numpy.float64"),
        (lambda x: x * 2.0 if issubclass(type(x), float) else x * 3.0, "float"),
        (lambda x: x * 2.0 if issubclass(type(x), (int, float)) else x * 3.0, "int"),
        (lambda x: x * 2.0 if not issubclass(type(x), (str, np.float32)) else x * 3.0, "numpy.float32"),
    ],
)
def test_a_plan_of_a_function_that_asks_for_a_type_runs_on_the_tape(function, name):
    plan = pb.compile(function)
    with pytest.warns(pb.errors.PlanWarning, match=rf"ask isinstance\(x, {name}\)"):
        assert plan(2.0) == 4.0


def test_a_plan_of_arrays_may_ask_for_the_types_of_python_numbers():
    def function(x, steps=3):
        return x * steps if type(steps) is int and type(x) is not float else x * 0.0

    plan = pb.compile(lambda x: function(x))
    np.testing.assert_array_equal(plan(np.ones(2)), [3.0, 3.0])
    assert plan.summary()["fallbacks"] == []


def test_a_plan_that_asks_for_classes_derived_from_float_tells_numpys_numbers_from_arrays():
    plan = pb.compile(lambda x: x[0] * 2.0 if issubclass(type(x[0]), float) else x[0] * 3.0)
    with pytest.warns(pb.errors.PlanWarning, match=r"ask isinstance\(x, float\)"):
        plan(np.ones(2))


def test_types_of_what_is_not_compared_with_a_number_leave_a_plan_as_it_is():
    def function(x, like=(1.0,)):
        assert "a" not in {"b", float.__name__}
        like_classes = issubclass(type(like), tuple) and type(like) is type(())
        return type(like)([float(like[0])])[0] * x if x is not None and like_classes else float

    plan = pb.compile(function)
    assert plan(2.0) == 2.0
    assert plan.summary()["fallbacks"] == []


def test_copies_of_a_traced_value_are_traced_and_pickles_are_refused():
    def function(x):
        return np.sum(copy.copy(x) * copy.deepcopy(x))

    np.testing.assert_array_equal(pb.grad(function)(np.ones(2)), [2, 2])
    with pytest.raises(pb.errors.TracingError, match="pickle"):
        pb.grad(lambda x: len(pickle.dumps(x)) * np.sum(x))(np.ones(2))


def test_a_traced_value_is_a_leaf():
    inside, outside = watched(lambda x: isinstance(x, Iterable), pb.grad, VALUES["array"])
    assert inside is outside is True
    tree = {"a": [1.0, np.ones(2)]}
    gradient = pb.grad(lambda tree: pb.grad(lambda inner: inner["a"][0] * np.sum(inner["a"][1]))(tree)["a"][0])(tree)
    assert gradient["a"][0] == 0
    np.testing.assert_array_equal(gradient["a"][1], [1, 1])


def test_the_engine_asks_for_types_where_values_may_be_traced():
    """`isinstance(x, np.ndarray)` is true of a traced array as well: rules and transforms ask `type(x)`."""
    engine = Path(pb.__file__).parent
    found = []
    for folder in ("rules", "traces", "core/kinds.py", "core/types.py", "trees.py"):
        for file in [engine / folder] if folder.endswith(".py") else sorted((engine / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                    classes = ast.unparse(node.args[1])
                    plain = {"np.ndarray", "np.generic", "float", "complex"} & set(classes.replace(",", " ").split())
                    if plain and "TracedValue" not in classes:
                        found.append(f"{file.name}:{node.lineno} {classes}")
    assert found == []
