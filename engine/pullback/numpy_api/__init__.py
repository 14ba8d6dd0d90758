"""NumPy's surface, translated into primitives."""

import pullback.rules  # noqa: F401 (the rules are loaded first: some of them know traced values)
