"""Programs as scientists write them in plain NumPy: our tiers against jax.jit of the same source.

Value and gradient, double precision unless said. Everyone is in one process, pinned to one CPU, one thread each; they take
turns round by round, and a ratio is the median over rounds of JAX's CPU time over ours. Everyone's gradients must agree first.
"""

import os

os.environ["PULLBACK_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy loads it
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import functools
import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.engine_vs_peers.page import put_into
from benchmarks.engine_vs_peers.ratios import Interval, median_interval, paired_ratio
from benchmarks.programs.rows import CHOSEN, CHOSEN_MEAN, ROWS, Row
from benchmarks.turns import take_turns

import pullback as pb

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
TOLERANCE = {"f8": 1e-8, "f4": 2e-3}

EXAMPLES = """examples:
  python -m benchmarks.programs                             every program, native against JAX (about five minutes)
  python -m benchmarks.programs --only kalman --tiers all   one program in every tier
  python -m benchmarks.programs --json t.json --write-docs  and the table of docs/performance.md
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; exit status 1 says that a ratio asked for was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.programs",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="programs whose name has this in it"
    )
    parser.add_argument("--tiers", default="stateful,native", metavar="LIST", help="tiers with commas, or all")
    parser.add_argument("--seconds", type=float, default=8.0, metavar="S", help="time for the rounds of a program (8)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep results here; programs measured before stay")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args(arguments)
    tiers = pb.TIERS if options.tiers == "all" else tuple(options.tiers.split(","))
    rows = [
        row
        for row in ROWS
        if not options.only or any(t.lower() in f"{row.name} {row.module}".lower() for t in options.only)
    ]
    if not rows:
        parser.error(f"no program has {' or '.join(map(repr, options.only))} in its name")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for row in rows:
        kept[row.name] = measure(row, tiers, options.seconds)
        print(_line(row, kept[row.name]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(kept, indent=1) + "\n")
    if options.write_docs:
        PAGE.write_text(
            put_into(PAGE.read_text(encoding="utf-8"), table(kept), "benchmarks.programs"), encoding="utf-8"
        )
    means = _chosen_mean(kept)
    if means is not None:
        print(f"geometric mean of {len(CHOSEN)}: {means:.3g} (required {CHOSEN_MEAN:g})")
    return 0 if all(_met(row, kept[row.name]) for row in rows) and (means is None or means >= CHOSEN_MEAN) else 1


def measure(row: Row, tiers: Sequence[str], seconds: float) -> dict[str, Any]:
    """Times by participant and round, seconds of the first call, the largest error against JAX, and what fell back."""
    program, arguments = row.program, row.arguments()
    calls: dict[str, Callable[[], Any]] = {}
    first: dict[str, float] = {}
    record: dict[str, Any] = {"first": first, "absent": {}, "fallbacks": None}
    answers: dict[str, Any] = {}
    gradient = pb.value_and_grad(program.loss, wrt=program.wrt)
    plans = {tier: pb.compile(gradient, tier=tier) for tier in tiers if tier != "unfused"}
    participants: dict[str, Callable[[], Any]] = {
        tier: functools.partial(plans.get(tier, gradient), *arguments) for tier in tiers
    }
    try:
        participants["jax"] = _jax_call(row, arguments)
    except ImportError as error:
        record["absent"]["jax"] = str(error)
    for name, call in participants.items():
        start = time.process_time()
        try:
            with warnings.catch_warnings(action="ignore"):
                answers[name] = _leaves(call())
                first[name] = time.process_time() - start
                call()
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is its absence, and said
            record["absent"][name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        calls[name] = call
    if "native" in calls:
        record["fallbacks"] = plans["native"].summary()["fallbacks"]
    record["error"] = _error(answers, row.sizes.get("dtype", "f8"))
    record["seconds"] = take_turns(calls, budget_s=seconds)
    return record


def _jax_call(row: Row, arguments: Sequence[Any]) -> Callable[[], Any]:
    jax, jax_numpy = importlib.import_module("jax"), importlib.import_module("jax.numpy")
    jax.config.update("jax_enable_x64", val=True)
    gradient = jax.jit(jax.value_and_grad(row.jax_loss(jax_numpy), argnums=row.program.wrt))
    # Whole numbers and masks are constants of the program, as they are in ours.
    differentiated = set(row.program.wrt)
    on_device = [
        jax.tree.map(jax_numpy.asarray, value) if place in differentiated or value.dtype.kind == "f" else value
        for place, value in enumerate(arguments)
    ]
    return lambda: jax.block_until_ready(gradient(*on_device))


def _leaves(answer: Any) -> list[Any]:
    value, gradients = answer
    leaves = [value]
    for gradient in gradients if isinstance(gradients, tuple) else (gradients,):
        leaves += [gradient[key] for key in sorted(gradient)] if isinstance(gradient, dict) else [gradient]
    return [np.asarray(leaf, dtype="f8") for leaf in leaves]


def _error(answers: dict[str, list[Any]], dtype: str) -> dict[str, float]:
    """Largest difference of each participant from JAX, or from the first, in units of the largest element."""
    if not answers:
        return {}
    reference = answers.get("jax") or next(iter(answers.values()))
    errors = {
        name: max(
            float(np.max(np.abs(leaf - other)) / max(np.max(np.abs(other)), 1e-30)) if leaf.size else 0.0
            for leaf, other in zip(leaves, reference, strict=True)
        )
        for name, leaves in answers.items()
    }
    wrong = {name: error for name, error in errors.items() if not error <= TOLERANCE[dtype]}
    if wrong:
        raise SystemExit(f"gradients differ: {wrong}; nothing was measured")
    return errors


def _ratio(record: dict[str, Any], tier: str = "native") -> Interval | None:
    times = record["seconds"]
    return paired_ratio(times["jax"], times[tier]) if times.get("jax") and times.get(tier) else None


def _met(row: Row, record: dict[str, Any]) -> bool:
    ratio = _ratio(record)
    return ratio is not None and ratio.middle >= row.ratio


def _chosen_mean(kept: dict[str, Any]) -> float | None:
    ratios = [_ratio(kept[row.name]) for row in ROWS if row.module in CHOSEN and row.name in kept]
    if len(ratios) < len(CHOSEN) or any(ratio is None for ratio in ratios):
        return None
    return float(np.exp(np.mean([np.log(ratio.middle) for ratio in ratios if ratio is not None])))


def _line(row: Row, record: dict[str, Any]) -> str:
    times = {name: median_interval(sample).middle * 1e6 for name, sample in record["seconds"].items() if sample}
    shown = "  ".join(f"{name} {_number(us)} us ({record['first'][name]:.2f} s first)" for name, us in times.items())
    ratio = _ratio(record)
    said = f"{_interval(ratio)} of {row.ratio:g} {'met' if _met(row, record) else 'MISSED'}" if ratio else "no ratio"
    absent = "".join(f"\n    {name}: {why}" for name, why in record["absent"].items())
    fallbacks = f"\n    fallbacks: {record['fallbacks']}" if record["fallbacks"] else ""
    return f"{row.name:<42} {said}\n    {shown}{fallbacks}{absent}"


def table(kept: dict[str, Any]) -> str:
    """The table of docs/performance.md, in Markdown."""
    lines = [
        "| program | native, us | stateful, us | jax, us | jax / native | required | | first call native · jax, s |",
        "|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for row in ROWS:
        record = kept.get(row.name)
        if record is None:
            lines.append(f"| {row.name} | | | | not measured | ≥ {row.ratio:g} | | |")
            continue
        times = {name: _number(median_interval(s).middle * 1e6) for name, s in record["seconds"].items() if s}
        ratio, first = _ratio(record), record["first"]
        firsts = " · ".join(f"{first[name]:.2f}" if name in first else "–" for name in ("native", "jax"))
        cells = [row.name, *(times.get(name, "–") for name in ("native", "stateful", "jax"))]
        cells += [
            _interval(ratio) if ratio else "–",
            f"≥ {row.ratio:g}",
            "met" if _met(row, record) else "**missed**",
            firsts,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    mean = _chosen_mean(kept)
    if mean is not None:
        lines.append("")
        lines.append(
            f"Geometric mean of the eight from the hidden Markov model to ARMA: {mean:.3g} (required ≥ {CHOSEN_MEAN:g})."
        )
    return "\n".join(lines)


def _interval(interval: Interval) -> str:
    return f"{_number(interval.middle)} [{_number(interval.low)}, {_number(interval.high)}]"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
