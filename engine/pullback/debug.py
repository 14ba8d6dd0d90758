"""Looking at the engine at work."""

from pullback.backends.poison import poisoning
from pullback.core.counters import RuleCounts, counting
from pullback.transforms.fingerprints import checksums

__all__ = ["RuleCounts", "checksums", "counting", "poisoning"]
