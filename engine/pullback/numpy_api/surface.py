"""All families of translations: importing this file fills the table."""

from pullback.numpy_api import contractions, creating, fft, joining, linalg, norms, reductions, selecting, shapes
from pullback.numpy_api.table import FUNCTIONS

FAMILIES = (contractions, creating, fft, joining, linalg, norms, reductions, selecting, shapes)

__all__ = ["FAMILIES", "FUNCTIONS"]
