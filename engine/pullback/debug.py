"""Looking at the engine at work."""

from pullback.backends.poison import poisoning
from pullback.counters import RuleCounts, counting

__all__ = ["RuleCounts", "counting", "poisoning"]
