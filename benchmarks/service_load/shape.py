"""Contents of the filled database. Pure: a size and a seed in, the names of everything out.

One project as a few years of nightly work leave it: four machines measure the same cases at every commit of one branch,
five variants of each case, four metrics of each variant. A quarter of the points are times with twenty processes each.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from pullback_service.series import case_identity

PROJECT = "load"
BRANCH = "main"
SEED = 6
FIRST_COMMIT = datetime(2023, 1, 1, tzinfo=UTC)
BETWEEN_COMMITS = timedelta(hours=5)
FULL_COMMITS = 5_000
PROCESSES = 20

MACHINES = ("epyc-a", "epyc-b", "icelake", "laptop")
WORKLOADS = (
    "dense_bias_act", "lstm", "conv_bias_act", "touch_large_array", "poly9", "mul_restore", "mlp", "gmm",
    "lotka_volterra", "rnn_tanh", "attention", "softmax_cross_entropy", "layer_norm",
)  # fmt: skip
SIZES = (32, 1024)
VARIANTS = (("unfused", "tier"), ("fused", "tier"), ("stateful", "tier"), ("native", "tier"), ("jax", "peer"))
BASELINE = "unfused"


class Metric(NamedTuple):
    """A metric of every variant."""

    name: str
    unit: str
    exact: bool
    method: str


METRICS = (
    Metric("time", "s", exact=False, method="cpu"),
    Metric("peak_bytes", "B", exact=True, method="nep49"),
    Metric("array_bytes", "B", exact=True, method="nep49"),
    Metric("array_allocs", "1", exact=True, method="nep49"),
)
CASES = 25
SERIES = CASES * len(VARIANTS) * len(METRICS) * len(MACHINES)


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case of the filled project."""

    workload: str
    params: dict[str, Any]
    dtype: str
    device: str

    @property
    def label(self) -> str:
        """The label that pages show."""
        return case_identity.label(self.workload, self.params, self.dtype, self.device)

    @property
    def identity(self) -> bytes:
        """The identity by which a case is found."""
        return case_identity.identity(self.workload, self.params, self.dtype, self.device)


def load_cases() -> list[LoadedCase]:
    """The cases, workload by workload."""
    every = [LoadedCase(name, {"n": size, "act": "tanh"}, "f4", "cpu") for name in WORKLOADS for size in SIZES]
    return every[:CASES]


def commits_for(points: int) -> int:
    """The number of commits that hold about so many points."""
    return max(1, min(FULL_COMMITS, -(-points // SERIES)))


def sha_of(number: int) -> str:
    """The hash of the commit of this number, counted from 0."""
    return hashlib.sha1(f"commit {number}".encode(), usedforsecurity=False).hexdigest()


def authored_at(number: int) -> datetime:
    """The time at which the commit of this number was authored."""
    return FIRST_COMMIT + number * BETWEEN_COMMITS


def report_id_of(commit: int, machine: int) -> UUID:
    """The report of a machine at a commit."""
    return UUID(bytes=hashlib.sha256(f"report {commit} {machine}".encode()).digest()[:16], version=4)


def fingerprint_of(machine: str) -> str:
    """The fingerprint of a machine."""
    return f"fingerprint of {machine}"


def blocks(commits: int, size: int) -> Iterator[range]:
    """Commits in blocks, oldest first."""
    for start in range(0, commits, size):
        yield range(start, min(commits, start + size))
