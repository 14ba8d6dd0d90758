"""Our engine against its peers: every selected row, measured, checked and counted.

A process for every engine, pinned to one CPU, one thread each; they take turns batch by batch, and a ratio is the median over
rounds of their CPU time over ours, with a 95 % interval. Everyone's value and gradients must be right first.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads it: closed forms are computed in this process

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.engine_vs_peers import page, results
from benchmarks.engine_vs_peers.measuring import Settings, measure
from benchmarks.engine_vs_peers.rows import ROWS, selected

import pullback as pb
from pullback_runners.errors import UsageError
from pullback_runners.machine.facts import describe_machine
from pullback_runners.peers import PEERS, find_peer

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"

EXAMPLES = """examples:
  python -m benchmarks.engine_vs_peers --list                      the rows and what is asked of them
  python -m benchmarks.engine_vs_peers --only lstm --rounds 5      a quick look at three rows
  python -m benchmarks.engine_vs_peers --only "dense n=32" --peers jax,torch
  python -m benchmarks.engine_vs_peers --json table.json           all rows (about half an hour), kept row by row
  python -m benchmarks.engine_vs_peers --json table.json --only gmm --write-docs
                                                                   one row anew, and the page made of all rows in the file
  python -m benchmarks.engine_vs_peers --json table.json --rounds 0 --write-docs
                                                                   the page alone, of what is in the file
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure rows, print and keep them; exit status 1 says that something asked for was missed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    rows = selected(options.only)
    if not rows:
        parser.error(f"no row has {' or '.join(map(repr, options.only))} in its name; --list shows the names")
    if options.list:
        print("\n".join(f"{row.name:<26} {_asked(row)}" for row in rows))
        return 0
    try:
        peers = tuple(find_peer(name.strip()).name for name in options.peers.split(",") if name.strip())
        facts = _facts()
        kept = results.load(options.json, facts)
    except (UsageError, results.ResultsError) as error:
        parser.error(str(error))
    if options.rounds:
        settings = Settings(options.tier, options.cpu, options.rounds, options.seconds, peers, print)
        for row in rows:
            print(row.name, flush=True)
            kept["rows"][row.name] = measure(row, settings)
            if options.json is not None:
                results.save(options.json, kept)
    shown = rows if options.rounds and not options.write_docs else list(ROWS)
    found = {row.name: results.figures_of(row, kept["rows"].get(row.name)) for row in shown}
    figures = [figure for figure in found.values() if figure is not None]
    without = {name: results.why_none(kept["rows"].get(name)) for name, figure in found.items() if figure is None}
    made = page.tables(figures, facts, without)
    print(made)
    if options.write_docs:
        PAGE.write_text(page.put_into(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    return 0 if not without and all(answer.met for figure in figures for answer in figure.answered) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine_vs_peers",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    best = "native" if "native" in pb.TIERS else "stateful"
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows whose name has this in it")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="LIST", help="names with commas (all)")
    parser.add_argument("--tier", default=best, choices=pb.TIERS, help=f"how our engine runs ({best})")
    parser.add_argument(
        "--rounds", type=int, default=60, metavar="N", help="rounds of a row at most (60); 0 measures nothing"
    )
    parser.add_argument("--seconds", type=float, default=45.0, metavar="S", help="time for the rounds of a row (45)")
    parser.add_argument(
        "--cpu", type=int, default=_last_cpu(), metavar="N", help="the CPU that everyone is pinned to (the last)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep results here; rows measured before stay")
    parser.add_argument(
        "--write-docs", action="store_true", help="put the tables of all kept rows into docs/performance.md"
    )
    parser.add_argument("--list", action="store_true", help="rows and what is asked; nothing is measured")
    return parser


def _last_cpu() -> int | None:
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _asked(row: Any) -> str:
    return "; ".join(f"{ask.ratio:.3g}x {' or '.join(ask.against)}" for ask in row.asks) or "nothing asked"


def _facts() -> dict[str, Any]:
    """Facts that ratios depend on: the machine, and the versions of all engines."""
    machine = describe_machine()["facts"]
    names = ("cpu", "cpus", "python", "numpy", "blas", "scipy", "llvmlite")
    others = [find_peer(name) for name in PEERS if name not in ("numpy", "torch-compile")]
    versions = {peer.name: peer.version() for peer in others if peer.available() is None}
    return {**{name: machine[name] for name in names}, "peers": versions}


if __name__ == "__main__":
    sys.exit(main())
