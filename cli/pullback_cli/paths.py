"""Folders and files on this machine, relative to the current folder."""

from pathlib import Path

DATA = Path(".pullback")
