"""Debugging of the engine: which rules ran, whether a plan reads dead memory, whether a saved array changed.

>>> w, x = np.ones((2, 3)), np.ones(3)
>>> with pb.debug.counting() as counts:
...     _ = pb.grad(lambda x: np.sum(w @ x))(x)
>>> counts.cotangents["matmul"]  # of x; none was computed for the constant w
1
"""

from pullback.backends.poison import poisoning
from pullback.core.counters import RuleCounts, counting
from pullback.transforms.fingerprints import checksums

__all__ = ["RuleCounts", "checksums", "counting", "poisoning"]
