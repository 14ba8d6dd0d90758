"""Every rule has a native form, or a reason why it has none; every kernel can be found."""

import importlib
import pkgutil

import pytest

import pullback.backends.native.kernels
import pullback.rules
from pullback import control, nn
from pullback.backends.native.emission import _MODULES, EMITTERS
from pullback.backends.native.regions import becomes_native
from pullback.backends.native.support import NOT_NATIVE
from pullback.core.cases import ALL
from pullback.core.types import type_of
from pullback.traces.recorder import record
from pullback.transforms import elementwise_maps

assert all((control, elementwise_maps, nn))  # importing them fills the table
for family in pkgutil.walk_packages(pullback.rules.__path__, "pullback.rules."):
    importlib.import_module(family.name)

NAMES = sorted({case.primitive.name for case in ALL})


def is_native(case):
    def results(*operands):
        found = case.primitive(*operands, **dict(case.params))
        return (list(found) if isinstance(found, tuple) else [found]), None

    operands = case.operands()
    graph, _ = record(results, [type_of(operand) for operand in operands], operands)
    return all(map(becomes_native, graph.nodes))


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_has_a_native_form_or_a_reason_why_it_has_none(name):
    has_form = any(is_native(case) for case in ALL if case.primitive.name == name)
    assert has_form or name in NOT_NATIVE, (
        f"{name} has no native form, and every plan with it falls into pieces: an elementwise rule needs a row in "
        "backends/llvm/elementary/scalars.py, any other one a kernel marked @emits in backends/native/kernels; "
        "where it is left to NumPy on purpose, NOT_NATIVE in backends/native/support.py needs its name and the reason"
    )
    assert not (has_form and name in NOT_NATIVE), f"{name} has a native form: take it out of NOT_NATIVE"


def test_reasons_are_of_rules():
    assert set(NOT_NATIVE) <= set(NAMES)


def test_every_kernel_can_be_found_by_the_name_of_its_rule():
    kernels = pullback.backends.native.kernels
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        importlib.import_module(module.name)
    for primitive, emitter in EMITTERS.items():
        home = emitter.emit.__module__
        assert _MODULES.get(primitive.name) == home, (
            f"the kernel of {primitive.name} in {home} is never used: add the name to _LOADED_LATER in "
            "backends/native/emission.py, under that module"
        )
