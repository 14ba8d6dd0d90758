"""Gain of native programs by threads: rows of `benchmarks.engine_vs_peers` on one thread and on several, with peers.

    python -m benchmarks.native_threads                    # all rows, about five minutes
    python -m benchmarks.native_threads --only dense lstm  # rows whose name has one of these
    python -m benchmarks.native_threads --threads 4 --peers jax
    python -m benchmarks.native_threads --kernels          # the pool alone: what a call costs, arithmetic, memory

Everyone is a process of its own for each number of threads, with as many CPUs as threads; all are alive and take turns. What is
measured is the wall's time, so nothing else may run: the load is printed. A peer that is far behind takes part in few rounds.
Ratios are of neighbouring batches, medians of all rounds and their 95 % interval: `gain` is our time on one thread over that
on several, the others are the time of the fastest peer over ours, both with as many threads. `CPU` is our processor time on
several threads over that on one: what is above one is waiting, and memory or caches that are shared.
"""

import argparse
import contextlib
import ctypes
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from benchmarks.engine_vs_peers.process import ONE_THREAD, Participant, ParticipantError
from benchmarks.engine_vs_peers.ratios import fastest, paired_ratio
from benchmarks.engine_vs_peers.rows import OURS, Row, selected

import pullback as pb
from pullback.backends.llvm.builder.function import Function, Index
from pullback.backends.llvm.builder.llvm_module import Module
from pullback.backends.native.emission import Emission
from pullback.backends.native.linking import LoadedProgram, load
from pullback.backends.native.threads import counts
from pullback.backends.native.threads.sharing import share
from pullback_runners.peers import find_peer

#: By row, the peers that have been its fastest; `--peers` asks others.
PEERS = {
    "dense n=512 f4": ("numpy", "jax", "torch"),
    "dense n=2048 f4": ("numpy", "jax", "torch"),
    "conv 32x64x56x56": ("jax", "torch", "torch-compile"),
    "lstm T=50 512/32": ("numpy", "jax", "torch"),
    "lstm T=50 128/32": ("jax", "torch"),
    "mlp 784-512-512-10 B=128": ("numpy", "jax", "torch", "torch-compile"),
    "poly9 n=1e7": ("numpy", "jax", "torch-compile", "numba"),
    "gmm d=10 k=25 n=1000": ("jax",),
}

BATCH_S = 0.03
"""A batch lasts at least this long, or one call."""
BREATH_S = 0.003
"""Between two turns, for threads of the last one that spin until they sleep."""
LEAST_ROUNDS, MOST_ROUNDS, ROW_S = 5, 30, 15.0
"""Rounds of a row, and how long they last together."""
GUEST_ROUNDS = 2
FAR_BEHIND = 1.5
"""A participant this many times slower than the fastest peer with as many threads ends after `GUEST_ROUNDS`."""


# --- rows ---------------------------------------------------------------------------------------------------------------
@dataclass
class Member:
    """A participant with a number of threads, and what was measured of it."""

    engine: str
    threads: int
    process: Participant
    calls: int = 1
    seconds: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def name(self) -> str:
        """The name that is printed."""
        return f"{self.engine} x{self.threads}"


def measure(row: Row, numbers: Sequence[int], peers: Sequence[str]) -> list[Member]:
    """Measure wall times of all members, in turns."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        started: list[tuple[Member, Path]] = []
        for engine in (OURS, *peers):
            reason = None if engine == OURS else find_peer(engine).available()
            if reason is not None:
                print(f"    {reason}", flush=True)
                continue
            for threads in numbers:
                result = Path(folder) / f"{len(started)}.npz"
                process = Participant(_order(row, engine, threads, result), _environment(engine, threads))
                stack.callback(process.end)
                if not started:  # what it finds out about this machine (which products are BLAS's) holds for the others
                    process.answer()
                started.append((Member(engine, threads, process), result))
        members: list[Member] = []
        expected: dict[str, np.ndarray] = {}
        for member, result in started:
            try:
                if member is not started[0][0]:
                    member.process.answer()
                with np.load(result) as found:
                    given = {name: found[name] for name in found}
                expected = expected or given
                _compare(member, given, expected)
                member.calls = member.process.ask(do="warm", seconds=BATCH_S, cpu=None)["calls"]
            except ParticipantError as error:
                print(f"    {member.name}: {error}", flush=True)
                continue
            members.append(member)
        _take_turns(members)
        return members


def _order(row: Row, engine: str, threads: int, result: Path) -> dict[str, object]:
    return {
        "engine": engine,
        "resource": None,
        "case": row.case.document(),
        "kind": row.kind,
        "keep": False,
        "tier": "native",
        "cpu": None,
        "threads": threads,
        "result": str(result),
    }


def _environment(engine: str, threads: int) -> dict[str, str]:
    """As many threads as said, in the words of every engine; JAX counts the CPUs that it may run on."""
    own = {} if engine == OURS else dict(find_peer(engine).environment)
    if threads > 1:
        own.pop("XLA_FLAGS", None)
    return {**own, **dict.fromkeys(ONE_THREAD, str(threads))}


def _compare(member: Member, given: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Compare results: ours are equal to the last bit on any number of threads; a peer that differs is left out."""
    for name, array in expected.items():
        if member.engine == OURS:
            if not np.array_equal(given[name], array):
                raise ParticipantError(f"{name} differs from that of one thread")
        elif np.linalg.norm(given[name] - array) > 1e-2 * np.linalg.norm(array):
            raise ParticipantError(f"{name} is off by more than 1 %")


def _take_turns(members: list[Member]) -> None:
    end, order = time.monotonic() + ROW_S, list(members)
    for round_ in range(MOST_ROUNDS):
        if round_ >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for member in order:
            if round_ >= GUEST_ROUNDS and _is_far_behind(member, members):
                continue
            time.sleep(BREATH_S)
            member.seconds.append(member.process.ask(do="batch", calls=member.calls, clock="wall")["seconds"])
        order.append(order.pop(0))
    for member in members:
        if member.engine == OURS:
            member.cpu_s = member.process.ask(do="batch", calls=member.calls)["seconds"]


def _is_far_behind(member: Member, members: Sequence[Member]) -> bool:
    if member.engine == OURS:
        return False
    alike = [min(one.seconds) for one in members if one.engine != OURS and one.threads == member.threads]
    return min(member.seconds) > FAR_BEHIND * min(alike)


def page_of(row: Row, members: Sequence[Member], numbers: Sequence[int]) -> str:
    """A row of the table."""
    ours = {member.threads: member for member in members if member.engine == OURS}
    one, several = ours[numbers[0]], ours[numbers[-1]]
    gain = paired_ratio(one.seconds, several.seconds)
    cells = [
        row.name,
        *(f"{statistics.median(ours[number].seconds) * 1e6:.0f}" for number in numbers),
        f"{gain.middle:.2f} [{gain.low:.2f}, {gain.high:.2f}]",
        f"{several.cpu_s / one.cpu_s:.2f}",
    ]
    for number in numbers:
        rounds = len(ours[number].seconds)
        times: dict[str, Sequence[float]] = {
            m.engine: m.seconds
            for m in members
            if m.engine != OURS and m.threads == number and len(m.seconds) == rounds
        }
        if not times:
            cells.append("")
            continue
        best = fastest(times)
        found = paired_ratio(times[best], ours[number].seconds)
        cells.append(f"{best} {found.middle:.2f} [{found.low:.2f}, {found.high:.2f}]")
    return "| " + " | ".join(cells) + " |"


def measure_rows(texts: Sequence[str], threads: int, peers: Sequence[str]) -> None:
    """Measure all rows, and print each when it is measured."""
    numbers = (1, threads)
    rows = [row for row in selected(list(texts)) if row.name in PEERS or (texts and row.kind == "gradient")]
    print(
        f"| row | {' | '.join(f'us x{n}' for n in numbers)} | gain | CPU | {' | '.join(f'peer x{n}' for n in numbers)} |"
    )
    print("|---" * (5 + len(numbers) * 2 - 2) + "|", flush=True)
    for row in rows:
        members = measure(row, numbers, peers or PEERS.get(row.name, row.peers))
        if {member.threads for member in members if member.engine == OURS} != set(numbers):
            continue
        print(page_of(row, members, numbers), flush=True)
        others = [f"{m.name} {statistics.median(m.seconds) * 1e6:.0f}" for m in members if m.engine != OURS]
        print(f"    {', '.join(others)}; rounds {len(members[0].seconds)}", file=sys.stderr, flush=True)


# --- the pool alone -----------------------------------------------------------------------------------------------------
ROUNDS = 30
BLOCKS = 32
NUMBERS = 1 << 24
TURNS = 100_000  # of the loop in registers, in each block


def nothing(_function: Function, _pointers: Sequence[str], _block: Index) -> None:
    """An empty block."""


def in_registers(function: Function, pointers: Sequence[str], block: Index) -> None:
    """A chain of multiplications and additions: 8 doubles, as long as they are latent."""
    type_ = "<8 x double>"
    multiply_add = function.module.declare("llvm.fma.v8f64", type_, type_, type_, type_)
    value = function.slot(type_, "zeroinitializer")
    with function.loop(0, TURNS):
        now = function.load(type_, value)
        function.store(type_, function.call(type_, multiply_add, (type_, now), (type_, now), (type_, now)), value)
    function.store(type_, function.load(type_, value), function.element(pointers[1], block, type_), align=8)


def over_memory(function: Function, pointers: Sequence[str], block: Index) -> None:
    """The sum of a part of an array."""
    type_ = "<8 x double>"
    first = function.mul(block, NUMBERS // 8 // BLOCKS)
    total = function.slot(type_, "zeroinitializer")
    with function.loop(first, function.add(first, NUMBERS // 8 // BLOCKS), at_least_once=True) as index:
        read = function.load(type_, function.element(pointers[0], index, type_), align=8)
        function.store(type_, function.value(f"fadd {type_} {function.load(type_, total)}, {read}"), total)
    function.store(type_, function.load(type_, total), function.element(pointers[1], block, type_), align=8)


def program(build: Callable[[Function, Sequence[str], Index], None]) -> LoadedProgram:
    """A program whose only kernel is this one."""
    module = Module(512)
    function = module.function("program", [("ptr", "x"), ("ptr", "y")], internal=False)
    share(Emission(module, function), "kernel", "kernel", ["%x", "%y"], BLOCKS, build)
    return load(module.text())


def measure_kernels(threads: int) -> None:
    """The same kernel on one thread and on several, taking turns."""
    x, y = np.ones(NUMBERS), np.empty(8 * BLOCKS)
    print(f"{'kernel':16} {'one us':>10} {'several us':>10} {'gain':>6} {'helped':>7}")
    for build in (nothing, in_registers, over_memory):
        loaded = program(build)
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("program"))
        taken: dict[int, list[float]] = {1: [], threads: []}
        helped = counts().helped
        for _ in range(ROUNDS):
            for number, times in taken.items():
                with pb.threads(number):
                    run(x.ctypes.data, y.ctypes.data)  # threads are awake then
                    start = time.perf_counter()
                    run(x.ctypes.data, y.ctypes.data)
                    times.append((time.perf_counter() - start) * 1e6)
        one, several = statistics.median(taken[1]), statistics.median(taken[threads])
        share_of_others = (counts().helped - helped) / (2 * ROUNDS * BLOCKS)
        print(f"{build.__name__:16} {one:10.1f} {several:10.1f} {one / several:6.2f} {share_of_others:7.0%}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="rows whose name has one of these")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=[], help="instead of those that have been the fastest of a row")
    parser.add_argument("--kernels", action="store_true", help="the pool alone, without programs")
    arguments = parser.parse_args()
    load_average = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{arguments.threads} threads against one, {os.cpu_count()} processors{load_average}\n", flush=True)
    if arguments.kernels:
        measure_kernels(arguments.threads)
    else:
        measure_rows(arguments.only, arguments.threads, arguments.peers)


if __name__ == "__main__":
    main()
