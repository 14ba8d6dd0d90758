"""Looking at the engine at work."""

from pullback.backends.poison import poisoning
from pullback.counters import RuleCounts, counting
from pullback.fingerprints import checksums

__all__ = ["RuleCounts", "checksums", "counting", "poisoning"]
