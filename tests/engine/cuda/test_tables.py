"""Every rule runs on a device, or is listed among those that do not. The tables are read as text: this needs no PyTorch."""

import ast
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from tests.engine.cuda.on_the_host import ON_THE_HOST

import pullback
import pullback.rules
from pullback import control, nn
from pullback.core.cases import ALL
from pullback.core.kinds import Scalar
from pullback.core.primitive import Primitive
from pullback.rules.elementwise import where
from pullback.rules.matrices import MatrixFunction
from pullback.transforms import elementwise_maps

TABLES = Path(pullback.__file__).parent / "devices" / "cuda" / "rows"

assert all((control, elementwise_maps, nn))  # importing them fills the table
for family in pkgutil.walk_packages(pullback.rules.__path__, "pullback.rules."):
    importlib.import_module(family.name)

#: Decompositions have no cases: their tests know what is arbitrary.
MATRIX_FUNCTIONS = [primitive for primitive in Primitive.table.values() if isinstance(primitive, MatrixFunction)]
PRIMITIVES = {primitive.name: primitive for primitive in [*(case.primitive for case in ALL), *MATRIX_FUNCTIONS]}


def _keys(table):
    """The keys of a table of elementwise rows: names of NumPy's functions, or of primitives."""
    (keys,) = (
        node.value.keys
        for node in ast.parse((TABLES / "elementwise.py").read_text()).body
        if isinstance(node, ast.AnnAssign) and node.target.id == table
    )
    return {key.value if isinstance(key, ast.Constant) else key.attr for key in keys}


UFUNCS = {getattr(np, name) for name in _keys("UFUNCS")}
SPECIAL = _keys("SPECIAL")
OTHERS = {
    node.args[0].value
    for file in TABLES.glob("*.py")
    for node in ast.walk(ast.parse(file.read_text()))
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "row"
}


def _runs_on_a_device(primitive):
    if not isinstance(primitive, Scalar):
        return primitive.name in OTHERS or primitive.lower is not None
    is_composed = not isinstance(primitive.ufunc, np.ufunc)
    return primitive is where or is_composed or primitive.name in SPECIAL or primitive.ufunc in UFUNCS


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_rule_runs_on_a_device_or_is_listed_among_those_that_do_not(name):
    runs = _runs_on_a_device(PRIMITIVES[name])
    assert runs or name in ON_THE_HOST, (
        f"{name} has no row for device arrays, and every call fetches its operands and puts its result back: an elementwise "
        "rule needs PyTorch's function in UFUNCS (of SciPy's in SPECIAL) of devices/cuda/rows/elementwise.py, any other one a "
        "function marked @row in a file beside it; where it is left to the host on purpose, "
        "tests/engine/cuda/on_the_host.py needs its name, with the reason"
    )
    assert not (runs and name in ON_THE_HOST), f"{name} runs on a device: take it out of ON_THE_HOST"


def test_what_is_left_to_the_host_is_a_rule():
    assert set(PRIMITIVES) >= ON_THE_HOST
