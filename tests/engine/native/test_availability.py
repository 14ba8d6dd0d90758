import platform
import subprocess
import sys

import pytest

from pullback.backends.native import availability
from pullback.backends.native.linking import load
from pullback.core.primitive import Primitive
from pullback.rules import elementwise

REASON = availability.why_not()
needs_llvm = pytest.mark.skipif(REASON is not None, reason=f"native programs are not tested: {REASON}")


@pytest.fixture(autouse=True)
def asked_afresh(monkeypatch):
    monkeypatch.delenv("PULLBACK_NATIVE", raising=False)
    availability._why_never.cache_clear()
    yield
    availability._why_never.cache_clear()


def test_it_is_available_exactly_where_nothing_speaks_against_it():
    assert availability.is_available() == (availability.why_not() is None)


def test_one_variable_switches_it_off_and_on_again(monkeypatch):
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    assert not availability.is_available()
    assert availability.why_not() == "PULLBACK_NATIVE=0 switches the native tier off"
    monkeypatch.setenv("PULLBACK_NATIVE", "1")
    assert availability.why_not() != "PULLBACK_NATIVE=0 switches the native tier off"


@pytest.mark.parametrize("version", ["0.45.1", "0.99.0", "0.45rc1", "0.99.0rc2+local", "unknown"])
def test_versions_of_llvmlite_that_nobody_tested_are_refused(version, monkeypatch):
    monkeypatch.setattr("llvmlite.__version__", version)
    assert f"llvmlite {version} is outside" in availability.why_not()


@needs_llvm
@pytest.mark.parametrize("version", ["0.50rc1", "0.50.0rc1+local", "0.46"])
def test_versions_before_a_release_are_told_by_their_numbers(version, monkeypatch):
    monkeypatch.setattr("llvmlite.__version__", version)
    assert availability.why_not() is None


def test_a_missing_llvmlite_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert availability.why_not() == "llvmlite is not installed; install it to have native programs"


def test_a_broken_llvmlite_is_no_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert "does not work here" in availability.why_not()


@needs_llvm
def test_a_linker_that_does_not_know_this_platform_is_no_error(monkeypatch):
    def unlinkable(text):
        raise RuntimeError("Unsupported file format")

    monkeypatch.setattr(availability, "load", unlinkable)
    assert availability.why_not().endswith("does not work here: Unsupported file format")


@needs_llvm
def test_a_program_that_computes_something_else_is_not_trusted(monkeypatch):
    right = load("define double @half(double %x) {\n  ret double %x\n}\n")
    monkeypatch.setattr(availability, "load", lambda _: right)
    assert availability.why_not().endswith("a first program computes something else")


def test_other_kinds_of_processors_are_refused(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "'riscv64'" in availability.why_not()


def test_asking_with_the_tier_switched_off_imports_nothing():
    program = (
        "import os, sys; os.environ['PULLBACK_NATIVE'] = '0';"
        "from pullback.backends.native import availability; availability.why_not();"
        "from pullback.backends.native import linking;"
        "print({'llvmlite', 'scipy'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


LATER = (
    *("numpy.ma", "numpy.random", "importlib.metadata", "email", "logging", "scipy"),
    *(
        "pullback.nn",
        *(f"pullback.passes.loops.{name}" for name in ("rolling", "carries", "packing", "sunk_additions")),
    ),
    *(
        f"pullback.backends.native.kernels.{name}"
        for name in ("convolutions", "products", "epilogue", "gathers", "loops")
    ),
)


@needs_llvm
def test_a_first_plan_loads_no_module_that_it_does_not_use():
    program = f"""
import sys
import numpy as np
import pullback as pb
pb.compile(pb.value_and_grad(lambda x: np.sum(np.sin(x) * x)), tier="native")(np.ones(3))
print([name for name in {LATER} if name in sys.modules])
print(sum(name.startswith("pullback") for name in sys.modules))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded, count = found.stdout.splitlines()
    assert loaded == "[]"
    assert int(count) <= 291  # each takes about 0.6 ms


@needs_llvm
def test_emitters_that_are_loaded_later_are_those_of_their_modules():
    from pullback import control
    from pullback.backends.native import emission

    assert control.__all__  # scan, switch and while are in the table of primitives
    table = emission.EMITTERS
    for module, names in emission._LOADED_LATER.items():
        for name in names:
            assert table.find(Primitive.table[name]) is table[Primitive.table[name]]
        assert {one.name for one, emitter in table.items() if emitter.emit.__module__ == module} == set(names)
    assert table.find(elementwise.add) is None
