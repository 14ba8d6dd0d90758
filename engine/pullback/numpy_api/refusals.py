"""NumPy functions that dispatch and have no translation, each with the reason and, where there is one, the remedy."""

from typing import Any

import numpy as np

from pullback.errors import NoRuleError

_DATES = "dates and calendars have no derivative"
_BITS = "packed bits have no derivative"
_TEXT = "it turns values into text or a file; return the value from the function first"
_PLACES = "positions are whole numbers; compute them from values that are not differentiated"

REFUSED: dict[Any, str] = {
    np.array2string: _TEXT,
    np.datetime_as_string: _TEXT,
    np.save: _TEXT,
    np.savetxt: _TEXT,
    np.savez: _TEXT,
    np.savez_compressed: _TEXT,
    np.busday_count: _DATES,
    np.busday_offset: _DATES,
    np.is_busday: _DATES,
    np.isnat: _DATES,
    np.packbits: _BITS,
    np.unpackbits: _BITS,
    np.ix_: _PLACES,
    np.ravel_multi_index: _PLACES,
    np.unravel_index: _PLACES,
    np.i0: "its derivative is another Bessel function; use pb.scipy.special.i0",
    np.nextafter: "neighbours have no derivative; if you know better, give it one with @pb.primitive",
    np.polydiv: "the degree of the quotient depends on values",
    np.roots: "leading zeros change how many roots there are; use numpy.linalg.eigvals of the companion matrix",
    np.histogram2d: "counts have a zero derivative; compute them from values that are not differentiated",
    np.histogramdd: "counts have a zero derivative; compute them from values that are not differentiated",
}


def no_rule(function: Any, name: str) -> NoRuleError:
    """The error for a function that has no translation."""
    reason = REFUSED.get(function)
    if reason is not None:
        return NoRuleError(f"{name} has no rule in this engine: {reason}")
    return NoRuleError(
        f"{name} has no rule in this engine; write it with functions that have one (see pullback.numpy_api), "
        "or give it a derivative with @pb.primitive (docs/custom-rules.md)"
    )
