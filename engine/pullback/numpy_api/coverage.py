"""The functions of NumPy that are translated, counted and listed: `python -m pullback.numpy_api.coverage > docs/numpy-coverage.md`.

A test compares the page with the tables, and NumPy's dispatching functions with both.
"""

import sys
from collections import defaultdict
from types import ModuleType
from typing import Any

import numpy as np

from pullback.numpy_api.refusals import REFUSED
from pullback.numpy_api.surface import FUNCTIONS
from pullback.numpy_api.ufuncs import UFUNCS

MODULES: tuple[tuple[str, ModuleType], ...] = (("numpy", np), ("numpy.linalg", np.linalg), ("numpy.fft", np.fft))
_DISPATCHER = type(np.sum)


def dispatching() -> dict[str, Any]:
    """NumPy's public functions that ask their operands what to do, by name; another name for the same comes later."""
    found: dict[str, Any] = {}
    for prefix, module in MODULES:
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if not name.startswith("_") and isinstance(function, _DISPATCHER | np.ufunc):
                found[f"{prefix}.{name}"] = function
    return found


def translation(function: Any) -> Any:
    """The translation of a function, None where there is none."""
    return UFUNCS.get(function) if isinstance(function, np.ufunc) else FUNCTIONS.get(function)


def families() -> dict[str, list[str]]:
    """Names of translated functions by the file that translates them; ufuncs are a family of their own."""
    rows: dict[str, list[str]] = defaultdict(list)
    for name, function in dispatching().items():
        if translation(function) is not None:
            family = "ufuncs" if isinstance(function, np.ufunc) else translation(function).__module__.rpartition(".")[2]
            rows[family].append(name.removeprefix("numpy."))
    return dict(sorted(rows.items()))


def page() -> str:
    """The page, in Markdown."""
    rows = families()
    lines = [
        "# What of NumPy can be differentiated",
        "",
        f"{sum(map(len, rows.values()))} names of NumPy, linalg and fft included, work on traced values as they stand.",
        "A function that is not here is refused by name while tracing; nothing is ever a silent zero.",
        "Options that are not honoured are refused by name too. What can be stored into: [Index assignment](assignment.md).",
        "",
        "Functions that do not ask their operands (`numpy.asarray`, `numpy.array` of a list of traced values, much of SciPy)",
        "are offered as `pb.numpy.*` and `pb.scipy.*`.",
        "",
        "| family | functions | names |",
        "|---|--:|---|",
    ]
    lines += [f"| {family} | {len(names)} | {', '.join(names)} |" for family, names in rows.items()]
    lines += ["", "## Refused, and why", "", "| function | reason |", "|---|---|"]
    lines += sorted(
        f"| {name.removeprefix('numpy.')} | {REFUSED[function]} |"
        for name, function in dispatching().items()
        if function in REFUSED
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
