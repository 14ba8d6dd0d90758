"""Where things of this machine lie, seen from a folder the user stands in."""

from pathlib import Path

DATA = Path(".pullback")
