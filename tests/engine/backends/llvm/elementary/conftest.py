"""Every row of the table of scalars, compiled once for each width of vectors and once for one lane."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from pullback.backends.llvm.elementary.scalars import ROWS
from pullback.backends.native import availability
from pullback.backends.native.linking import forced_width
from pullback.backends.native.linking.target import available_widths

ROOT = Path(__file__).parents[5]
DTYPES = [np.dtype(name) for name in ("f4", "f8", "i4", "i8", "?")]
ONE_LANE = 0


def pytest_generate_tests(metafunc):
    if "program" in metafunc.fixturenames:
        widths = [*available_widths(), ONE_LANE] if availability.is_available() else [ONE_LANE]
        metafunc.parametrize(
            "program",
            widths,
            indirect=True,
            scope="session",
            ids=[f"{width} bits" if width else "one lane" for width in widths],
        )


@pytest.fixture(scope="session")
def program(request):
    if not availability.is_available():
        pytest.skip(str(availability.why_not()))
    rows = [(name, dtype) for name, row in ROWS.items() for dtype in DTYPES if dtype.kind in row.kinds]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        programs = importlib.import_module("benchmarks.elementary.programs")
        if request.param == ONE_LANE:
            return programs.Program(rows, one_lane=True)
        with forced_width(request.param):
            return programs.Program(rows)


@pytest.fixture(scope="session")
def references():
    return _part("references")


@pytest.fixture(scope="session")
def in_units():
    return _part("errors").in_units


def _part(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        return importlib.import_module(f"benchmarks.elementary.{name}")
