"""The parts of SciPy that can be differentiated."""

from pullback.compat.autograd.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
