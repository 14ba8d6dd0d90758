"""The functions of scipy.special, one family per file: importing this package imports every file.

They are not part of `pullback.rules`: importing this package imports SciPy, so it is loaded when a function of
scipy.special first meets a traced value (`pullback.numpy_api.special`). Derivatives by an order or another parameter that
have no closed form are refused by name.
"""

import importlib
import pkgutil

FAMILIES = tuple(importlib.import_module(f"{__name__}.{family.name}") for family in pkgutil.iter_modules(__path__))
