"""Suites: how many groups and slices a run spends on a case, and which variants it compares."""

from dataclasses import dataclass, replace
from typing import Any

from pullback_runners.errors import UsageError

SLICE_NS = 1_500_000
"""Wanted length of a slice. Finer turns pair better: 50 ms slices gave a spread of 8.4 %, 2 ms slices 1.3 %."""


@dataclass(frozen=True)
class Suite:
    """A named amount of measuring. Which sizes belong to it is said by each workload's grid of the same name, or of `sizes`."""

    name: str
    groups: int
    most_groups: int
    slices: int
    may_say_same: bool
    variants: tuple[str, ...] = ("unfused", "fused", "stateful", "native", "numpy")

    more_groups: int = 5
    """Added at a time while an answer is ambiguous."""
    headline: tuple[str, ...] | None = None
    """Workloads of ours that are measured when none is named; None means all. A user's own are always measured."""
    sizes: str | None = None
    """The suite whose sizes it measures where a workload has none for it."""
    twin: bool = True
    """True if the baseline takes part twice, so that what lies between two identical programs is known."""
    comparison_s: float = 60.0
    """The limit of a comparison of two commits, by one variant of one case: with checking and counting, without building."""
    shared_comparison_s: float = 15.0
    """Several share the time of one as long as each has so much; more take so much each."""

    def comparisons_s(self, comparisons: int) -> float:
        """Seconds for so many comparisons of two commits together."""
        return max(self.comparison_s, self.shared_comparison_s * comparisons)

    def with_effort(self, effort: int) -> "Suite":
        """The same with so many times as many groups, and as much time for comparisons of two commits."""
        return replace(
            self,
            groups=self.groups * effort,
            most_groups=self.most_groups * effort,
            comparison_s=self.comparison_s * effort,
            shared_comparison_s=self.shared_comparison_s * effort,
        )

    def budget(self) -> dict[str, Any]:
        """The limits of a case's cost, as a report writes them."""
        return {
            "groups": self.groups,
            "most_groups": self.most_groups,
            "slices": self.slices,
            "slice_s": SLICE_NS / 1e9,
            "twin": self.twin,
        }


_HEADLINE = ("dense_bias_act", "mul_restore", "poly9_broadcast", "touch_large_array")

SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "quick",
            groups=6,
            most_groups=6,
            slices=50,
            may_say_same=False,
            twin=False,
            headline=_HEADLINE,
        ),
        Suite("standard", groups=20, most_groups=40, slices=100, may_say_same=True),
        Suite("full", groups=20, most_groups=40, slices=100, may_say_same=True),
        # Whether everything works, from the first import to the last page: as few groups and turns as a report can have.
        Suite(
            "trial",
            groups=2,
            most_groups=2,
            slices=20,
            may_say_same=False,
            twin=False,
            headline=_HEADLINE,
            sizes="quick",
        ),
    )
}


def find_suite(name: str) -> Suite:
    """Return the suite of this name."""
    if name not in SUITES:
        raise UsageError(f"no suite {name!r}; known: {', '.join(SUITES)}")
    return SUITES[name]


def narrowed_suite(text: str) -> tuple[str, list[str]]:
    """A suite that may be narrowed to some cases, `quick:poly9*;mul_restore*`: its name, and the globs over case names."""
    name, _, globs = text.partition(":")
    return name, [glob for glob in globs.split(";") if glob]  # not commas, which case names contain
