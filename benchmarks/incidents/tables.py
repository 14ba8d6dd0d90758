"""The table of announced events, for the terminal and docs/detection.md."""

from collections.abc import Sequence

from benchmarks.incidents.counting import Counts


def table(counts: Counts, seeds: Sequence[int]) -> list[str]:
    """The required figures, and the measured ones."""
    per = len(seeds)
    said = ", ".join(map(str, seeds))
    lines = [
        f"{counts.observations:,} observations of {per} projects (seeds {said}), {counts.jobs:,} jobs.",
        "",
        "| result | measured | required |",
        "| --- | --- | --- |",
        _row("planted events that were announced", counts.told_of, counts.events, "all"),
        _row("… announced as several incidents", counts.split, counts.events, "0"),
        _row("… two of them announced as one", counts.joined, counts.events, "0"),
        _row("… announced more than once", counts.told_twice, counts.events, "0"),
        _row("… with the right commit, and no other", counts.right_commit, counts.events, "≥ 28 of 30"),
        _row("suspicions that are false", counts.false_suspicions, counts.suspicions, "≤ 1 in 5"),
        _row("… of these while the machine had moved", counts.of_machine, counts.false_suspicions, ""),
        _row("confirmed, announced and false", counts.confirmed_and_false, counts.observations, "≤ 1 in 100,000"),
        _row("likely, announced and false", counts.likely_and_false, counts.observations, "≤ 1 in 10,000"),
        _row("steps of +2 % that were announced", counts.told_2, counts.steps_2, "≥ .95"),
        _row("steps of +1 % that were announced", counts.told_1, counts.steps_1, "≥ .80"),
        _row("bisections of 64 commits at +2 % that name the right one", counts.named_times, counts.bisected_times, "≥ .97"),
        _row("… of counts", counts.named_counts, counts.bisected_counts, "all"),
        f"| … most jobs of one | {counts.most_jobs} | ≤ 8 |" if counts.most_jobs else None,
    ]  # fmt: skip
    return [line for line in lines if line is not None]


def _row(what: str, number: int, of: int, asked: str) -> str | None:
    if not of:
        return None
    share = f" ({number / of:.2f})" if 1 < of < 100_000 else ""
    return f"| {what} | {number} of {of:,}{share} | {asked} |"
