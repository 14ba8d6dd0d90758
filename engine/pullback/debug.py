"""Looking at the engine at work."""

from pullback.counters import RuleCounts, counting

__all__ = ["RuleCounts", "counting"]
