"""Selection of the cases of a run: a suite, narrowed by names and globs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pullback_runners.errors import UsageError
from pullback_runners.suites import SUITES
from pullback_runners.workloads.case import CPU, Case
from pullback_runners.workloads.digest import ANY, digests_of
from pullback_runners.workloads.registry import broken_packages, known_workloads, load_workload_file, suggestion

_MOST_NAMED = 6
"""Longer lists of names are cut in messages."""


def select_cases(suite: str, patterns: Sequence[str] = (), device: str = CPU) -> list[Case]:
    """Return the cases of a suite on a device that match any pattern; without patterns those of its headline, or all.

    A pattern is a workload's name, a case's name or a glob with `*` and `?`. Brackets are plain characters, since case
    names are full of them. A pattern that matches nothing is an error: a benchmark that silently did not run is a lie.
    """
    known = [case for workload in known_workloads() for case in workload.cases(suite, device)]
    if not patterns:
        headline = SUITES[suite].headline if suite in SUITES else None
        unasked = {
            each.name for each in known_workloads() if headline is None or each.is_foreign or each.name in headline
        }
        return [case for case in known if case.workload in unasked]
    chosen: set[str] = set()
    for pattern in patterns:
        matching = {case.name for case in known if case.workload == pattern or _glob(pattern).fullmatch(case.name)}
        if not matching:
            raise UsageError(_nothing_matches(pattern, suite, device))
        chosen |= matching
    return [case for case in known if case.name in chosen]


@dataclass(frozen=True)
class AvailableVariants:
    """The ways to measure a workload: its NumPy form in tiers, variants of its own, and the one that is the baseline."""

    sentence: str
    is_foreign: bool
    has_numpy: bool
    variants: tuple[str, ...]
    baseline: str | None
    digests: Mapping[str, str] = field(default_factory=dict)
    """Digests of the text behind each variant (`digest.py`)."""

    def digest(self, variant: str) -> str | None:
        """The digest of the text behind a variant, if it can be read."""
        return self.digests.get(variant, self.digests.get(ANY))


@dataclass(frozen=True)
class Choice:
    """The selected cases and variants, and a sentence for each requested one that cannot be measured."""

    cases: list[Case]
    files: list[Path]
    refused: list[str]
    offers: dict[str, AvailableVariants]
    """The ways to measure each workload of the cases, by its name."""


def choose_cases(
    suite: str, patterns: Sequence[str] = (), files: Sequence[Path] = (), device: str = CPU, top: str | None = None
) -> Choice:
    """Load workload files and select cases, without patterns all of the files' workloads; others by patterns that match none of these.

    What cannot be had is refused in a sentence, and the rest goes on.
    Where nothing is left to measure, the first sentence is raised. The repository that is measured lies at `top`.
    """
    loaded, refused = load_workload_files(files, top)
    chosen: set[str] = set()
    declared = [name for names in loaded.values() for name in names]
    everything: list[list[str]] = [] if files else [[]]
    for wishes in [[pattern] for pattern in patterns or declared] or everything:
        try:
            found = select_cases(suite, wishes, device)
            theirs = [case for case in found if case.workload in declared]
            chosen |= {case.name for case in theirs or found}
        except UsageError as error:
            refused.append(error)
    if not chosen and refused:
        raise refused[0]
    known = [case for workload in known_workloads() for case in workload.cases(suite, device)]
    cases = [case for case in known if case.name in chosen]
    wanted = {case.workload for case in cases}
    offers = {
        each.name: AvailableVariants(
            each.sentence, each.is_foreign, each.has_numpy, tuple(each.variants), each.baseline, digests_of(each)
        )
        for each in known_workloads()
        if each.name in wanted
    }
    return Choice(cases, list(loaded), [str(error) for error in refused], offers)


def load_workload_files(
    files: Sequence[Path], top: str | None = None
) -> tuple[dict[Path, list[str]], list[UsageError]]:
    """Register the workloads of files: names by file, and an error for each file or package that could not be loaded."""
    loaded: dict[Path, list[str]] = {}
    refused = [UsageError(sentence) for sentence in broken_packages()]
    for path in dict.fromkeys(files):
        try:
            names = load_workload_file(path, top=top)
        except UsageError as error:
            refused.append(error)
            continue
        refused += [
            UsageError(
                f"workload {name} is declared by {other} and by {path}, and the second one is measured; give one of them another name"
            )
            for other, theirs in loaded.items()
            for name in names
            if name in theirs
        ]
        loaded[path] = names
    return loaded, refused


def _nothing_matches(pattern: str, suite: str, device: str) -> str:
    """The sentence about a pattern without a case: suites or sizes of a workload that is known, or names to choose from."""
    name = pattern.partition("[")[0]
    known = {each.name: each for each in known_workloads()}
    missing = f"no case of suite {suite!r} matches {pattern!r}; "
    if name in known:
        cases = [case.name for case in known[name].cases(suite, device)]
        if not cases:
            suites = ", ".join(known[name].grids) or f"none; declare {suite}=grid(...) in its decorator"
            return f"{name} has no sizes for the suite {suite}; it has {suites}"
        return f"{missing}there are {_shortened(cases)}"
    theirs = [each.name for each in known.values() if each.is_foreign]
    near = suggestion(name, theirs or known) or (
        f"the workloads of your files are {_shortened(theirs)}; " if theirs else ""
    )
    return f"{missing}{near}`pullback run --suite {suite} --case '*' --list` shows them all"


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
