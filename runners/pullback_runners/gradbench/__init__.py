"""A tool for GradBench: answers its messages, one JSON document a line, with derivatives of our engine."""

from pullback_runners.gradbench.engine import Engine
from pullback_runners.gradbench.protocol import converse
from pullback_runners.gradbench.streams import private_streams
from pullback_runners.gradbench.tool import Tool

__all__ = ["Engine", "Tool", "converse", "private_streams"]
