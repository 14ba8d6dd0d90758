"""The rule table, one family of operations per file: importing this package registers every primitive of every file."""

import importlib
import pkgutil

for _family in pkgutil.iter_modules(__path__):
    if _family.ispkg:
        continue  # the functions of scipy.special are loaded when one is met: they import SciPy
    importlib.import_module(f"{__name__}.{_family.name}")
