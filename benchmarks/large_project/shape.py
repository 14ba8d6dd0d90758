"""Contents of the large project. Pure: numbers in, names and values out, the same every time.

The first machine measures everything at every commit, in turns of a quick suite and a standard one; the others measure
one case of each workload at every tenth. Among all that does not move there is everything that a page must point at:
steps, counts that change at the newest commits, failures, disturbed and small measurements, cases that are not measured
any more, and names that try to break out of a page.
"""

import hashlib
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice
from uuid import UUID

from pullback_service.series import case_identity

SEED = 7
FIRST_COMMIT = datetime(2025, 3, 1, 8, tzinfo=UTC)
BETWEEN_COMMITS = timedelta(hours=9)
BASELINE = "unfused"
VARIANTS = (("unfused", "tier"), ("fused", "tier"), ("stateful", "tier"), ("native", "tier"), ("jax", "peer"))
FACTORS = {"unfused": 1.0, "fused": 0.62, "stateful": 0.45, "native": 0.21, "jax": 0.7}
METRICS = (("time", "s", False), ("array_bytes", "B", True), ("array_allocs", "1", True))

WILD = '<b onmouseover=alert(1)>bold</b> & "quoted" \N{CROCODILE} \N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}'
LONG = "a_name_that_nobody_would_type_but_a_generator_writes_gladly_" + "x" * 140
PROJECT = "large"
WILD_WORKLOADS = (
    WILD,
    "\N{ARABIC LETTER TEH}\N{ARABIC LETTER DAD}\N{ARABIC LETTER MEEM} softplus \N{RIGHT-TO-LEFT OVERRIDE}esrever",
    LONG,
    "a/b?q=1#x%2F\\",
)
WILD_MACHINES = ("big iron & <i>sons</i>", f"\N{SNOWMAN} {LONG[:180]}")
WILD_TITLE = f"{WILD} and </script><script>alert('title')</script> {'long ' * 30}"

_OPERATIONS = (
    "dense", "conv", "lstm", "gru", "attention", "softmax", "layer_norm", "embedding", "einsum", "cumsum", "scan",
    "cholesky", "solve", "fft", "gather", "scatter", "pooling", "dropout", "gelu", "logsumexp", "mlp", "resnet", "gmm",
    "lotka_volterra", "poly",
)  # fmt: skip
_KINDS = (
    "bias_act", "forward", "residual", "batched", "broadcast", "masked", "sparse", "checkpointed", "restored", "inplace",
    "wide", "deep", "ragged", "tied", "gated", "shared", "strided", "padded", "rolled", "unrolled",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MadeCase:
    """A case; `number` is that of its workload."""

    number: int
    workload: str
    size: int
    device: str
    label: str

    @property
    def params(self) -> dict[str, object]:
        """Its size parameters."""
        return {"n": self.size, "act": "tanh"}

    @property
    def identity(self) -> bytes:
        """The identity by which a case is found."""
        return case_identity.identity(self.workload, self.params, "f4", self.device)


@dataclass(frozen=True, slots=True)
class MadePoint:
    """The value of one variant of a case in one metric at one commit."""

    value: float
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    groups: int | None = None
    outcome: str | None = None


def _case(number: int, workload: str, size: int, device: str) -> MadeCase:
    return MadeCase(
        number, workload, size, device, case_identity.label(workload, {"n": size, "act": "tanh"}, "f4", device)
    )


@dataclass(frozen=True)
class Shape:
    """The size of the project, and its contents."""

    workloads: int = 500
    machines: int = 20
    commits: int = 120

    @cached_property
    def machine_names(self) -> tuple[str, ...]:
        """Machines, the one that measures everything first."""
        named = ["epyc-7b13", *WILD_MACHINES, *(f"runner-{number:02}" for number in range(1, self.machines))]
        return tuple(named[: self.machines])

    @cached_property
    def cases(self) -> tuple[MadeCase, ...]:
        """One to four cases of each workload, the last of some on another device."""
        return tuple(
            _case(number, name, 10 ** (2 + size), "cuda" if size == 3 else "cpu")
            for number, name in enumerate(self._workload_names())
            for size in range(1 + number % 4)
        )

    def cases_on(self, machine: int) -> tuple[MadeCase, ...]:
        """The cases that a machine measures: the first machine all, the others the first case of each workload."""
        if machine == 0:
            return self.cases
        return tuple({case.number: case for case in reversed(self.cases)}.values())[::-1]

    def variants_on(self, machine: int) -> tuple[tuple[str, str], ...]:
        """The variants that a machine measures."""
        return VARIANTS if machine == 0 else (VARIANTS[0], VARIANTS[3])

    def metrics_on(self, machine: int) -> tuple[tuple[str, str, bool], ...]:
        """The metrics that a machine measures."""
        return METRICS if machine == 0 else METRICS[:2]

    def measures(self, machine: int, commit: int) -> bool:
        """True if a machine measures a commit."""
        return machine == 0 or commit % 10 == machine % 10

    def is_measured(self, case: MadeCase, commit: int) -> bool:
        """Some cases were given up, some are measured at every fourth commit."""
        if case.number % 83 == 5:
            return commit < self.commits // 2
        return case.number % 29 != 3 or commit % 4 == 0

    def failure(self, case: MadeCase, commit: int) -> str | None:
        """The reason why a case failed; None if it did not."""
        newest = self.commits - 1
        if case.number % 97 == 11 and commit >= newest - 1:
            return "relative error 3.1e-02 against the closed form <tanh> & friends"
        return "out of memory: 38 GiB asked" if case.number % 61 == 7 and commit % 17 == 4 else None

    def point(self, case: MadeCase, machine: int, variant: str, metric: str, commit: int) -> MadePoint | None:
        """The value that is measured; None where the variant has none in this metric."""
        size = case.size
        share = self._share(case, variant, commit)
        if metric == "array_bytes":
            return self._counted(round(40 * size * share))
        if metric == "array_allocs":
            return self._counted(max(0, round(9 * share)) + self._arrays_more(case, variant, commit))
        noise = _noise(f"{case.label} {machine} {variant} {commit}")
        seconds = 2e-7 * size * (1 + 0.1 * machine) * (1 + case.number % 13)
        if variant == BASELINE:
            return MadePoint(seconds * math.exp(0.05 * noise))
        doubt = 0.006 + 0.05 * (case.number % 31 == 9)
        middle = math.log(share) + doubt / 2 * noise + self._slower(case, variant, commit)
        outcome = "ambiguous" if abs(middle) < doubt else "faster" if middle < 0 else "slower"
        groups = 6 if commit % 3 else 20
        return MadePoint(seconds * math.exp(middle), middle, middle - doubt, middle + doubt, groups, outcome)

    def is_disturbed(self, machine: int, commit: int) -> bool:
        """True if a whole report was measured on a disturbed machine."""
        return commit % 23 == 9 or (machine == 2 and commit % 5 == 0)

    def _workload_names(self) -> Iterator[str]:
        plain = (f"{operation}_{kind}" for kind in _KINDS for operation in _OPERATIONS)
        yield from islice((*WILD_WORKLOADS, *plain), self.workloads)

    def _share(self, case: MadeCase, variant: str, commit: int) -> float:
        """The variant against the baseline: its own factor, a little of the case's, and a step at some commit."""
        share = FACTORS[variant] * (1 + 0.8 * ((case.number * 37 % 100) / 100 - 0.4)) if variant != BASELINE else 1.0
        if variant != BASELINE and case.number % 7 == 2 and commit >= self.commits * (case.number % 10) // 10:
            share *= 0.8
        return share

    def _slower(self, case: MadeCase, variant: str, commit: int) -> float:
        return 0.09 if variant == "fused" and case.number % 101 == 20 and commit >= self.commits - 2 else 0.0

    def _arrays_more(self, case: MadeCase, variant: str, commit: int) -> int:
        return int(variant == "native" and case.number % 71 == 30 and commit >= self.commits - 1)

    def _counted(self, value: int) -> MadePoint:
        return MadePoint(value)


def _noise(of: str) -> float:
    """A number between -1 and 1 that looks like chance: a generator for each of millions of points would take minutes."""
    return zlib.crc32(of.encode()) / 2**31 - 1


def sha_of(commit: int) -> str:
    """The hash of the commit of this number, counted from 0."""
    return hashlib.sha1(f"large {commit}".encode(), usedforsecurity=False).hexdigest()


def title_of(commit: int, commits: int) -> str:
    """The title of a commit; that of the last but one tries to break out."""
    return WILD_TITLE if commit == commits - 2 else f"Change {commit}: save less in {_KINDS[commit % len(_KINDS)]}"


def authored_at(commit: int) -> datetime:
    """The time at which a commit was authored."""
    return FIRST_COMMIT + commit * BETWEEN_COMMITS


def report_of(commit: int, machine: int) -> UUID:
    """The report of a machine at a commit."""
    return UUID(bytes=hashlib.sha256(f"large {commit} {machine}".encode()).digest()[:16], version=4)
