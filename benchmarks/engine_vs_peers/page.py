"""The tables of docs/performance.md, made of figures and put between markers of the page."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.engine_vs_peers.ratios import Interval
from benchmarks.engine_vs_peers.results import Figures, RatioResult

from pullback_runners.peers import PEERS


class PageError(Exception):
    """A page without the markers."""


def put_into(page: str, tables: str, maker: str = "benchmarks.engine_vs_peers") -> str:
    """The page with everything between the markers of `maker` replaced."""
    begin, end = (f"<!-- made by {maker}: {mark} -->" for mark in ("begin", "end"))
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise PageError(f"the page needs the line {begin} and after it the line {end}, once each")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n\n{tables}\n\n{end}", page)


def tables(figures: Sequence[Figures], facts: dict[str, Any], without: Mapping[str, str] | None = None) -> str:
    """All that is measured, in Markdown: the rows as asked, what was missed, and everyone's times.

    `without` are rows that have no figures, with the reason.
    """
    missing = [f"- No figures: {name}, {reason}." for name, reason in (without or {}).items()]
    parts = [_facts(facts, figures), _asked(figures), "\n".join([_missed(figures), *missing]), _everyone(figures)]
    return "\n\n".join(part for part in parts if part)


def _facts(facts: dict[str, Any], figures: Sequence[Figures]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts["peers"].items())
    tiers = " and ".join(sorted({f"`{figure.tier}`" for figure in figures}))
    return (
        f"Measured on {facts['cpu']}, {facts['cpus']} CPUs, {facts['python']}, NumPy {facts['numpy']} ({facts['blas']}), "
        f"LLVM by llvmlite {facts['llvmlite']}; {versions}. Our engine in the tier {tiers}."
    )


def _asked(figures: Sequence[Figures]) -> str:
    lines = [
        "| row | ours, us | against | their time / ours | required | | of the limit | bytes a call |",
        "|---|---:|---|---:|---:|---|---:|---|",
    ]
    for figure in figures:
        cells = [_limit(figure), _bytes(figure.counts)]
        name, time = figure.row.name, _number(figure.ours_us.middle)
        for answered in figure.answered or (None,):
            lines.append(_line(name, time, *_of(answered), *cells))
            name, time, cells = "", "", ["", ""]
    return "\n".join(lines)


def _of(answered: RatioResult | None) -> list[str]:
    if answered is None:
        return ["", "", "", ""]
    against = answered.against or " or ".join(answered.ask.against)
    asked = f"≥ {answered.ask.ratio:.3g}"
    if answered.found is None:
        return [against, "not here", asked, ""]
    return [against, _interval(answered.found), asked, "met" if answered.met else "**missed**"]


def _missed(figures: Sequence[Figures]) -> str:
    """Rows below what was asked, and rows where anyone is ahead: said plainly."""
    asked = sum(len(figure.answered) for figure in figures)
    answered = [(figure, answer) for figure in figures for answer in figure.answered]
    missed = [
        f"{figure.row.name} against {answer.against}{_beyond(answer)}"
        for figure, answer in answered
        if answer.met is False
    ]
    absent = [
        f"{figure.row.name} against {' or '.join(answer.ask.against)}"
        for figure, answer in answered
        if answer.found is None
    ]
    ahead = [
        f"{figure.row.name} ({name} {_number(1 / ratio.middle)}x)"
        for figure in figures
        for name, (_, ratio) in figure.peers.items()
        if name in PEERS and ratio.high < 1
    ]
    lines = [f"Met: {asked - len(missed) - len(absent)} of {asked}."]
    if missed:
        lines.append(f"Missed: {'; '.join(missed)}.")
    if absent:
        lines.append(f"Not compared: {'; '.join(absent)}.")
    lines.append(f"A peer is ahead on: {'; '.join(ahead)}." if ahead else "No peer is ahead on any row.")
    return "\n".join(f"- {line}" for line in lines)


def _beyond(answer: RatioResult) -> str:
    return (
        f" (out of reach here: {_number(answer.at_limit or 0)} at the limit of the machine)"
        if answer.out_of_reach
        else ""
    )


def _everyone(figures: Sequence[Figures]) -> str:
    peers = [peer for peer in PEERS if any(peer in figure.peers for figure in figures)]
    if not peers:
        return ""
    lines = [
        _line("microseconds of CPU time (their time / ours)", "ours", *peers, "rounds"),
        "|---|---:|" + "---:|" * (len(peers) + 1),
    ]
    for figure in figures:
        cells = [
            f"{_number(figure.peers[peer][0])} ({_number(figure.peers[peer][1].middle)})"
            if peer in figure.peers
            else ""
            for peer in peers
        ]
        lines.append(_line(figure.row.name, _number(figure.ours_us.middle), *cells, str(figure.rounds)))
    return "\n".join(lines)


def _limit(figure: Figures) -> str:
    if figure.of_limit is None or figure.row.work is None:
        return ""
    resource = {"fma f4": "FMA", "fma f8": "FMA", "read": "memory"}[figure.row.work.resource]
    return f"{100 * figure.of_limit.middle:.0f} % {resource}"


def _bytes(counts: dict[str, Any] | None) -> str:
    """Memory that one call allocates in steady state; 0 only if every layer that can be observed allocates none."""
    if counts is None:
        return "not counted"
    layers = {"arrays": counts["array_bytes"], "native": counts["native_bytes"]}
    parts = [f"{_bytes_of(value)} {name}" for name, value in layers.items() if value]
    parts += [f"{name} not seen" for name, value in layers.items() if value is None]
    # A handful are the counting's own.
    if counts["python_blocks_kept"] >= max(10, counts["python_blocks_calls"] / 2):
        parts.append(f"{counts['python_blocks_kept']} Python blocks kept by {counts['python_blocks_calls']} calls")
    if counts["python_garbage"]:
        parts.append("garbage in cycles")
    return ", ".join(parts) or "0"


def _bytes_of(value: int) -> str:
    return (
        f"{value:.0f} B"
        if value < 10_000
        else f"{value / 1000:.0f} kB"
        if value < 10_000_000
        else f"{value / 1e6:.0f} MB"
    )


def _interval(interval: Interval) -> str:
    return f"{_number(interval.middle)} [{_number(interval.low)}, {_number(interval.high)}]"


def _number(value: float) -> str:
    """Three digits that mean something, without exponents."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
