"""Functions that stand in for SciPy's where a value is traced, and leave plain values to SciPy."""

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from pullback.numpy.creation import holds_traced


def stands_in_for(original: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that has the name and the parameters of one in the original module.

    `@stands_in_for("scipy.linalg")`; the original may be an object in a module, `"scipy.stats:poisson"`.
    """
    module, _, attribute = original.partition(":")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def chosen(*args: Any, **keywords: Any) -> Any:
            if any(holds_traced(value) for value in (*args, *keywords.values())):
                return function(*args, **keywords)
            whole = importlib.import_module(module)
            return getattr(getattr(whole, attribute) if attribute else whole, function.__name__)(*args, **keywords)

        return chosen

    return decorate
