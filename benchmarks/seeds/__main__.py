"""The requirements of the four seeds that time, measured: every row of the table, every way of doing its work.

The ways of a row take turns in this process (one BLAS thread, process CPU time), so ratios hold on a busy machine and
absolute times do not. Before a row is timed its ways must agree in their results. Per way:

  us/call    median
  ratio      to the unfused tape, median and its 95 % interval;  numpy  to the hand-written form, likewise
  arrays     that NumPy allocates in one call after the first, numbers included, and their bytes
  growth     of the rows at two sizes: time at the larger over time at the smaller
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.seeds import fused_layers, needed_work, overwriting, recurrence
from benchmarks.seeds.row import BASELINE, BY_HAND, Growth, Row
from benchmarks.turns import Call, Median, ratio, take_turns

from pullback import trees
from pullback_runners.allocations.arrays import ArrayCounter

ROWS: tuple[Row | Growth, ...] = (*fused_layers.ROWS, *needed_work.ROWS, *recurrence.ROWS, *overwriting.ROWS)

EXAMPLES = """examples:
  python -m benchmarks.seeds                       all rows, about a minute
  python -m benchmarks.seeds --only s2             the rows whose name has "s2" in it
  python -m benchmarks.seeds --seconds 600 --json seeds.json
  python -m benchmarks.seeds --list                names and requirements, nothing is measured
"""


@dataclass(frozen=True, slots=True)
class RowMeasurement:
    """One way of doing the work of a row."""

    row: str
    way: str
    us: Median
    to_unfused: Median | None
    to_numpy: Median | None
    growth: Median | None
    arrays: int
    nbytes: int
    rounds: int


def measure(row: Row | Growth, budget_s: float) -> Iterator[RowMeasurement]:
    """All ways of a row, at the larger size where there are two."""
    larger = row.ways(row.sizes[1]) if isinstance(row, Growth) else row.ways()
    smaller = row.ways(row.sizes[0]) if isinstance(row, Growth) else {}
    calls = {**{f"{way} smaller": call for way, call in smaller.items()}, **larger}
    _require_agreement(row.name, larger)
    counts = {way: _count(call) for way, call in larger.items()}
    seconds = take_turns(calls, budget_s=budget_s)
    for way in larger:
        own = seconds[way]
        yield RowMeasurement(
            row.name,
            way,
            Median.of([1e6 * duration for duration in own]),
            ratio(own, seconds[BASELINE]) if way != BASELINE else None,
            ratio(own, seconds[BY_HAND]) if BY_HAND in larger and way != BY_HAND else None,
            ratio(own, seconds[f"{way} smaller"]) if isinstance(row, Growth) else None,
            *counts[way],
            len(own),
        )


def _count(call: Call) -> tuple[int, int]:
    """Arrays and bytes of a call in steady state; what it gave before is dropped, so that it may be used again."""
    counter = ArrayCounter()
    call()
    with counter.window():
        call()
    count = counter.read()
    return count.allocations, count.requested_bytes


def _require_agreement(row: str, ways: Mapping[str, Call]) -> None:
    """Refuse to time what computes something else; torch's layers have weights of their own."""
    results = {way: _flat(call()) for way, call in ways.items() if not way.startswith("torch")}
    expected = results[BASELINE]
    for way, result in results.items():
        if result.shape != expected.shape or not np.allclose(result, expected, rtol=1e-3, atol=1e-3):
            raise SystemExit(f"{row}: {way} does not compute what {BASELINE} does; nothing of this row is timed")


def _flat(result: Any) -> Any:
    """All numbers of a result, one after the other."""
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in trees.flatten(result)[0]])


def _table(row: Row | Growth, ways: Sequence[RowMeasurement]) -> str:
    width = 26
    head = f"{row.name}: {row.requirement}\n{'':{width}}{'us/call':>11}  {'to unfused':<22}  {'to numpy':<22}"
    head += f"  {'growth':<22}" if isinstance(row, Growth) else ""
    lines = [f"{head}  {'arrays':>6}  {'bytes':>9}"]
    for way in ways:
        growth = f"  {_shown(way.growth):<22}" if isinstance(row, Growth) else ""
        lines.append(
            f"  {way.way:<{width - 2}}{way.us.middle:>11.1f}  {_shown(way.to_unfused):<22}  {_shown(way.to_numpy):<22}"
            f"{growth}  {way.arrays:>6}  {way.nbytes:>9}"
        )
    return "\n".join(lines)


def _shown(median: Median | None) -> str:
    return "" if median is None else f"{median.middle:.2f} [{median.low:.2f}, {median.high:.2f}]"


def main() -> int:
    """Measure the rows that were asked for, print them as they come, and write them where that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.seeds",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="the rows whose name has this in it")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="time for all rows together (60)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure to this file as well")
    parser.add_argument("--list", action="store_true", help="names and requirements of the rows")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only.lower() in row.name.lower()]
    if not rows:
        parser.error(f"no row has {arguments.only!r} in its name; --list shows the names")
    if arguments.list:
        print("\n".join(f"{row.name:<32} {row.requirement}" for row in rows))
        return 0
    measured: list[RowMeasurement] = []
    for row in rows:
        ways = list(measure(row, arguments.seconds / len(rows)))
        print(f"{_table(row, ways)}\n", flush=True)
        measured.extend(ways)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(way) for way in measured], indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
