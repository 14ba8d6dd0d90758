"""What is taken for a function that only computes, and what is left alone because it may do anything."""

import textwrap

import pytest

from pullback_runners.projects.functions import Argument, imported_engines, plain_functions


@pytest.fixture
def found(tmp_path):
    def functions(text, file="ridge/losses.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(textwrap.dedent(text))
        return plain_functions(tmp_path, tmp_path)

    return functions


def test_a_function_of_arrays_is_found_with_the_ranks_of_its_arguments(found):
    (function,) = found("""
        import numpy as np

        def squared_error(w, x: np.ndarray, y, scale: float, steps: int, *, power=2):
            return scale * np.mean((x @ w - y) ** power) / steps
        """)
    assert (function.module, function.name, function.engine) == ("ridge.losses", "squared_error", "numpy")
    assert function.arguments == (
        Argument("w", 1),
        Argument("x", 2),
        Argument("y", 1),
        Argument("scale", 0),
        Argument("steps", 1, is_whole=True),
    )
    assert function.place == "ridge/losses.py, line 4"


@pytest.mark.parametrize(
    ("imports", "body", "engine"),
    [
        ("import jax.numpy as jnp", "jnp.sum(x * x)", "jax"),
        ("import jax\nimport numpy as np", "jax.nn.relu(np.pi * x).sum()", "jax"),
        ("from torch.nn import functional as F", "F.mse_loss(x, x)", "torch"),
        ("import autograd.numpy as np", "np.sum(np.exp(x))", "autograd"),
        ("import mygrad as mg", "mg.sum(x)", "mygrad"),
        ("from numpy import sum, exp", "sum(exp(x))", "numpy"),
        ("import numpy as np", "x * x", "numpy"),
    ],
)
def test_the_engine_is_the_one_that_it_calls(found, imports, body, engine):
    (function,) = found(f"{imports}\n\ndef f(x):\n    return {body}\n")
    assert function.engine == engine


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    open('/tmp/x', 'w')\n    return np.sum(x)",
        "def f(x):\n    import os\n    return np.sum(x)",
        "def f(x):\n    return os.remove(x)",
        "def f(x):\n    return x.tofile('y')",
        "def f(x):\n    return np.sum(unknown(x))",
        "def f(x):\n    return np.sum(x) + np.random.normal()",
        "def f(x):\n    return random.normal(x)",
        "def f(x):\n    return math.sin(x)",
        "def f(x):\n    print(x)\n    return np.sum(x)",
        "def f(x, mode: str):\n    return np.sum(x)",
        "def f(*x):\n    return np.sum(x)",
        "def f():\n    return np.ones(3)",
        "def f(x):\n    np.sum(x)",
        "def f(n: int):\n    return np.ones(n)",
        "@decorated\ndef f(x):\n    return np.sum(x)",
        "def _f(x):\n    return np.sum(x)",
        "def f(x):\n    return f(np.sum(x))",
        "class A:\n    def f(self, x):\n        return np.sum(x)",
        "def f(x:\n",
    ],
)
def test_what_may_do_more_than_compute_is_left_alone(found, text):
    assert found(f"import math, os\nimport numpy as np\nfrom numpy import random\n\n{text}\n") == []


def test_a_function_may_call_another_of_its_module(found):
    functions = found("""
        import numpy as np

        def residuals(w, x):
            return x @ w

        def loss(w, x):
            return np.sum(residuals(w, x) ** 2)
        """)
    assert [each.name for each in functions] == ["loss", "residuals"]
    assert [each.is_number for each in functions] == [True, False]


@pytest.mark.parametrize(
    ("returned", "is_number"),
    [
        ("np.sum(x)", True),
        ("0.5 * np.mean(x) - np.log(2) * np.sum(x)", False),
        ("0.5 * np.mean(x) + x.sum() / 3", True),
        ("np.sum(x, axis=0)", False),
        ("x @ x", False),
        ("y", True),
    ],
)
def test_a_number_is_told_by_what_is_reduced(found, returned, is_number):
    (function,) = found(f"import numpy as np\n\ndef f(x):\n    y = np.sum(x)\n    return {returned}\n")
    assert function.is_number == is_number


@pytest.mark.parametrize("file", ["tests/losses.py", "docs/conf.py", "test_losses.py", "setup.py", ".venv/x.py"])
def test_tests_and_documents_are_no_sources(found, file):
    assert found("import numpy as np\n\ndef f(x):\n    return np.sum(x)\n", file) == []


def test_objectives_come_first(found):
    functions = found("""
        import numpy as np

        def alpha(x):
            return np.sum(x)

        def log_likelihood(x):
            return np.sum(x)
        """)
    assert [each.name for each in functions] == ["log_likelihood", "alpha"]


def test_engines_are_those_that_files_import(tmp_path):
    (tmp_path / "a.py").write_text("import numpy\nimport torch.nn as nn\n")
    assert imported_engines(tmp_path) == {"torch": tmp_path / "a.py"}


def test_an_expression_of_thousands_of_terms_hides_no_other_file(found, tmp_path):
    for terms in (1200, 20_000):
        text = f"import numpy as np\n\n\ndef f(x):\n    return {' + '.join(['np.sum(x)'] * terms)}\n"
        (tmp_path / f"made_{terms}.py").write_text(text)
    functions = found("import numpy as np\n\ndef g(x):\n    return np.sum(x)\n")
    assert "g" in [each.name for each in functions]
