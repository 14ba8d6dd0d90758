"""Primitives for ufuncs of scipy.special, which is inspected only when a ufunc arrives that is not NumPy's."""

import importlib
import sys
from functools import cache
from typing import Any

from pullback.core.primitive import Primitive

# SciPy's names for what has a rule under another one, or lies behind a plain function (zeta is one).
_ALIASES = {"psi": "digamma", "jn": "jv", "_zeta": "zeta"}
_ELEMENTWISE = {"cbrt": "cbrt", "exp2": "exp2", "expm1": "expm1", "log1p": "log1p", "round": "rint"}


def special_primitive(ufunc: Any) -> Primitive | None:
    """The primitive for a ufunc, if scipy.special has been imported and the ufunc is its."""
    return _table().get(ufunc) if "scipy.special" in sys.modules else None


def name_with_library(ufunc: Any) -> str:
    """The name by which the user called a ufunc; one that is neither NumPy's nor of scipy.special has no library."""
    name: str = ufunc.__name__
    for library in ("numpy", "scipy.special"):
        if getattr(sys.modules.get(library), name, None) is ufunc:
            return f"{library}.{name}"
    return name


@cache
def _table() -> dict[Any, Primitive]:
    special: Any = importlib.import_module("scipy.special")
    behind: Any = importlib.import_module("scipy.special._ufuncs")  # where the ufunc behind zeta is
    family: Any = importlib.import_module("pullback.rules.special")
    rows = {name: row for module in family.FAMILIES for name, row in vars(module).items()}
    names = {name: name for name, row in rows.items() if isinstance(row, Primitive)} | _ALIASES
    table = {_ufunc(special, behind, name): rows[own] for name, own in names.items()}
    table |= {_ufunc(special, behind, name): Primitive.table.get(own) for name, own in _ELEMENTWISE.items()}
    return {ufunc: primitive for ufunc, primitive in table.items() if ufunc is not None and primitive is not None}


def _ufunc(special: Any, behind: Any, name: str) -> Any:
    return getattr(special, name, None) or getattr(behind, name, None)
