"""Every rule has a native form, or a reason why it has none; every kernel can be found."""

import importlib
import pkgutil

import pytest

import pullback.backends.native.kernels
import pullback.rules
from pullback import control, nn
from pullback.backends.native.emission import _MODULES, EMITTERS
from pullback.backends.native.regions import becomes_native
from pullback.core.cases import ALL
from pullback.core.types import type_of
from pullback.traces.recorder import record
from pullback.transforms import elementwise_maps

_SPECIAL = "SciPy's special functions are called, not written anew"
_COMPLEX = "native programs compute with the parts of complex numbers, as `passes/complex_parts.py` writes them"
_ALGORITHM = "an algorithm of SciPy's, which NumPy runs step by step"

#: Reasons why rules have no native form. Every other rule has one: a row in `llvm/elementary/scalars.py`, an
#: emitter in `kernels`, or a form in primitives that have.
NOT_NATIVE = {
    **dict.fromkeys(
        [
            "beta",
            "betaln",
            "binom",
            "boxcox",
            "boxcox1p",
            "cosdg",
            "cosm1",
            "cotdg",
            "dawsn",
            "digamma",
            "ellipe",
            "ellipk",
            "erfcinv",
            "erfcx",
            "erfi",
            "erfinv",
            "exp1",
            "expi",
            "exprel",
            "gamma",
            "gammaln",
            "huber",
            "i0",
            "i0e",
            "i1",
            "i1e",
            "inv_boxcox",
            "inv_boxcox1p",
            "j0",
            "j1",
            "k0",
            "k0e",
            "k1",
            "k1e",
            "kl_div",
            "log_ndtr",
            "loggamma",
            "ndtri",
            "ndtri_exp",
            "owens_t",
            "poch",
            "powm1",
            "pseudo_huber",
            "rel_entr",
            "rgamma",
            "sindg",
            "tandg",
            "y0",
            "y1",
        ],
        _SPECIAL,
    ),
    **dict.fromkeys(("conj", "imag", "irfft", "real"), _COMPLEX),
    **dict.fromkeys(("convolve", "expm", "expm_frechet", "solve_sylvester"), _ALGORITHM),
    "rnn": "a layer, written as a loop before it comes here (`nn/recurrent/loops.py`)",
    "tiles": "arrays of a block as one, decided by their addresses, which a native program does not see",
}

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
        "where it is left to NumPy on purpose, NOT_NATIVE in this file needs its name and the reason"
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
