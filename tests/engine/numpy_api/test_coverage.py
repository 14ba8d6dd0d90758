"""Every function of NumPy that asks its operands is translated, or refused for a reason; the page says which."""

from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.errors import NoRuleError
from pullback.numpy_api import coverage
from pullback.numpy_api.refusals import REFUSED
from pullback.numpy_api.tracer import Tracer

PAGE = Path(__file__).parents[3] / "docs" / "numpy-coverage.md"


def test_every_dispatching_function_is_translated_or_refused_for_a_reason():
    left_over = {
        name
        for name, function in coverage.dispatching().items()
        if coverage.translation(function) is None and function not in REFUSED
    }
    assert not left_over, (
        f"{', '.join(sorted(left_over))}: give a ufunc a row in UFUNCS of numpy_api/ufuncs.py, any other function a translation marked "
        "@implements in a file of numpy_api/; one without derivative a line in numpy_api/refusals.py, with the reason"
    )
    both = {name for name, function in coverage.dispatching().items() if function in REFUSED} & {
        name for name, function in coverage.dispatching().items() if coverage.translation(function) is not None
    }
    assert not both, f"{', '.join(sorted(both))} are translated: take them out of numpy_api/refusals.py"


def test_the_page_is_what_the_tables_say(renew_golden):
    if renew_golden:
        PAGE.write_text(coverage.page())
    assert PAGE.read_text() == coverage.page(), "renew it: pytest --renew-golden"


@pytest.mark.parametrize("function", list(REFUSED), ids=lambda f: f.__name__)
def test_a_refused_function_says_why(function):
    def call(x):
        if isinstance(function, np.ufunc):
            return x.__array_ufunc__(function, "__call__", x)
        return x.__array_function__(function, (), (x,), {})

    with pytest.raises(NoRuleError) as caught:
        pb.vjp(call, np.ones(3))
    assert REFUSED[function] in str(caught.value)
    assert "\n" not in str(caught.value)


METHODS_LEFT_TO_NUMPY = {
    "ctypes",  # memory
    "data",
    "device",
    "flags",
    "strides",
    "to_device",
}


def test_every_method_of_an_array_is_there_or_refused():
    methods = {name for name in dir(np.ndarray) if not name.startswith("_")}
    assert methods - set(dir(Tracer)) <= METHODS_LEFT_TO_NUMPY
