"""Linking: from the text of a module to addresses of its functions."""

from pullback.backends.native.linking.loading import LoadedProgram, load
from pullback.backends.native.linking.target import Target, forced_width, host_target

__all__ = ["LoadedProgram", "Target", "forced_width", "host_target", "load"]
