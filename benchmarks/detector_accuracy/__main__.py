"""Accuracy of the detector: synthetic series of known noise, real nightly times, other tools' rules beside it.

Seeds, and kinds of noise, are in two halves: `develop`, which constants are chosen with, and `judged`, which is looked at when
that is done. Nothing here is timed, so a busy machine gives the same figures.
"""

import argparse
import os
import random
import re
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from benchmarks.detector_accuracy import tables
from benchmarks.detector_accuracy.alarm_counts import PULLBACK, STORIES, count_all, share
from benchmarks.detector_accuracy.nightly import look_at_all, read, shifts
from benchmarks.detector_accuracy.nightly_commits import accusations
from benchmarks.detector_accuracy.noises import DEVELOPED_WITH, JUDGED_BY
from benchmarks.detector_accuracy.quick import check
from benchmarks.detector_accuracy.rivals import RIVALS

PAGE = Path(__file__).parents[2] / "docs" / "detection.md"
MARKS = ("<!-- made by benchmarks.detector_accuracy: begin -->", "<!-- made by benchmarks.detector_accuracy: end -->")
SEEDS = {"develop": 1, "judged": 2}

EXAMPLES = """examples:
  python -m benchmarks.detector_accuracy --quick                   what make test-long runs: a few series, counts are asserted
  python -m benchmarks.detector_accuracy --series 200              while developing: minutes
  python -m benchmarks.detector_accuracy --half judged --nightly FOLDER --write     for docs/detection.md
"""


def main(arguments: list[str] | None = None) -> int:
    """Count, print and keep; exit status 1 says that a count of --quick was missed."""
    options = _parser().parse_args(arguments)
    if options.quick:
        missed = check()
        print("\n".join(missed) or "All counts are as they should be.")
        return 1 if missed else 0
    with ProcessPoolExecutor(options.processes) as pool:
        text = "\n".join(_measured(options, pool))
    print(text)
    if options.write:
        begin, end = MARKS
        page = PAGE.read_text()
        new = re.sub(
            f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n\n{text}\n\n{end}", page, flags=re.DOTALL
        )
        PAGE.write_text(new)
    return 0


def _measured(options: argparse.Namespace, pool: Executor) -> list[str]:
    seed = SEEDS[options.half]
    noises = [*DEVELOPED_WITH, *(JUDGED_BY if options.half == "judged" else ())]
    rules = [PULLBACK, *RIVALS]
    each = {rule: options.series if rule == PULLBACK else min(options.rival_series, options.series) for rule in rules}
    counted = count_all(tables.cells(rules, noises, seed), each, pool)
    parts = {
        name: [
            pool.submit(share, name, seed, range(i, min(i + 50, options.series))) for i in range(0, options.series, 50)
        ]
        for name in STORIES
    }
    shares = {name: sum(part.result() for part in of_story) / options.series for name, of_story in parts.items()}
    others = f", {each[rules[1]]:,} for other tools" if each[rules[1]] != options.series else ""
    lines = [
        f"{options.series:,} series of 150 observations in each cell{others}; seeds of the half `{options.half}`; cv 1 %.",
        "",
        "False alarms in 1000 observations:",
        "",
        *tables.false_alarms(counted, rules, noises, seed),
        "",
        "Steps of +1 / +2 / +5 % after 100 observations that are found within ±3, offline:",
        "",
        *tables.recall(counted, rules, seed),
        "",
        *tables.delays(counted, rules, seed),
        "",
        *tables.stories(shares),
    ]
    if options.nightly is not None:
        every = read(options.nightly)
        some = random.Random(0).sample(range(len(every)), min(options.stretches, len(every)))  # noqa: S311 (no secret)
        seen = look_at_all(rules, [every[i] for i in sorted(some)], shifts(every), pool)
        lines += [
            "",
            "Real noise, nightly times of GradBench:",
            "",
            *tables.nightly(seen),
            "",
            tables.nightly_commits(*accusations(options.nightly)),
        ]
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.detector_accuracy",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few series of the first half, and check what is counted"
    )
    parser.add_argument("--half", choices=sorted(SEEDS), default="develop", help="which seeds and kinds of noise")
    parser.add_argument("--series", type=int, default=2000, metavar="N", help="series in each cell (2000)")
    parser.add_argument(
        "--rival-series", type=int, default=2000, metavar="N", help="the same for other tools, which take longer"
    )
    parser.add_argument(
        "--nightly", type=Path, metavar="FOLDER", help="commits.csv and series.csv.gz of GradBench's nightly runs"
    )
    parser.add_argument(
        "--stretches", type=int, default=10**6, metavar="N", help="so many of their stretches, by chance"
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), metavar="N", help="processes that share the work"
    )
    parser.add_argument("--write", action="store_true", help="put the tables into docs/detection.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
