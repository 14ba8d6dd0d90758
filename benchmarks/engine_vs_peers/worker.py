"""One participant in a process of its own: `python -m benchmarks.engine_vs_peers.worker`, orders and answers as lines of JSON.

The first order says who it is. It answers with what it computed, for the coordinator to check, and then obeys:

    count            memory of one warm call, layer by layer
    warm seconds     move to a CPU, then say how many calls fill a batch of so many seconds
    batch calls      process CPU seconds of so many calls; with clock="wall", those of the wall's clock

With a number of `threads` in the first order it has as many CPUs, and PyTorch as many threads (`benchmarks.native_threads`).
"""

import gc
import importlib
import itertools
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.engine_vs_peers.roofline import open_limit
from benchmarks.engine_vs_peers.rows import OURS

import pullback as pb
from pullback_runners.allocations import count_allocations
from pullback_runners.errors import VariantError
from pullback_runners.measurement.gradient_check import array_of, bytes_of, check_restored
from pullback_runners.peers import PreparedCase, find_peer
from pullback_runners.workloads import Case, Inputs, ValueAndGradients, Workload, find_workload

WARM_CALLS = 3
HELD = 64
"""Results that are held at once: more than anyone recycles, and few enough that it is not new pages that are measured."""

WARM_S = 0.5
"""Calls that take longer than this are warm after one."""

MOST_COUNTED_CALLS = 100
COUNTED_S = 2.0
"""Calls that are counted together take no longer than this; two at least."""


Answer = dict[str, Any]


def main() -> int:
    """Obey orders until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what an engine prints is no answer

    def answer(content: Answer) -> None:
        channel.write(json.dumps(content) + "\n")

    orders = map(json.loads, sys.stdin)
    first = next(orders, None)
    if first is None:
        return 0
    _move_to(first["cpu"])
    if "threads" in first:
        _allow(first["threads"], first["engine"])
    try:
        call, introduction = _introduced(first)
        answer(introduction)
        for order in orders:
            answer(_obey(order, call, keep=first["keep"]))
    except VariantError as error:
        answer({"failed": error.message})
    except Exception as error:  # noqa: BLE001 - whatever an engine raises is this participant's failure
        answer({"failed": f"{type(error).__name__}: {error}".splitlines()[0]})
    return 0


def _introduced(order: dict[str, Any]) -> tuple[Callable[[], Any], Answer]:
    """Make the call ready, run it once, and write down what it computed."""
    if order["resource"] is not None:
        limit = open_limit(order["resource"])
        return limit.call, {"amount": limit.amount}
    case = Case.of_document(order["case"])
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    if order["kind"] == "pullback":
        # A Python number in, a Python number out.
        inputs |= {name: float(inputs[name]) for name in workload.wrt}
    before = bytes_of(inputs)
    start = time.process_time()
    if order["engine"] == OURS:
        prepared = ours(workload, case, inputs, kind=order["kind"], tier=order["tier"])
        version = pb.__version__ if hasattr(pb, "__version__") else "here"
    else:
        peer = find_peer(order["engine"])
        bind = peer.prepare_pullback if order["kind"] == "pullback" else peer.prepare
        prepared = bind(workload, case, inputs)
        version = peer.version()
    value, gradients = prepared.differentiated(prepared.call())
    first_call_s = time.process_time() - start
    complaint = check_restored(before, inputs)
    if complaint:
        raise VariantError("gradient", complaint)
    arrays: dict[str, Any] = {name: array_of(gradient) for name, gradient in gradients.items()}
    np.savez(Path(order["result"]), value=np.asarray(value), **arrays)
    return prepared.call, {"version": version, "first_call_s": first_call_s, "plan": _plan_of(prepared)}


class OurPlan(PreparedCase):
    """A prepared call of ours that keeps its plan, for the summary."""

    plan: Any = None


def ours(workload: Workload, case: Case, inputs: Inputs, *, kind: str, tier: str) -> PreparedCase:
    """Our engine as its guide says to use it: one plan, called with the arguments."""
    function = workload(**dict(case.params))
    names = workload.wrt
    if kind == "pullback":
        (name,) = names
        rest = {other: value for other, value in inputs.items() if other != name}
        layer = pb.compile(lambda x: function(**{name: x}, **rest), tier=tier)
        value, pullback = layer.vjp(inputs[name])
        return OurPlan(partial(pullback, 1.0), lambda result: (value, {name: _only(result)}))

    def differentiated(result: Any) -> ValueAndGradients:
        value, gradients = result
        return value, dict(zip(names, gradients, strict=True)) if len(names) > 1 else {names[0]: _only(gradients)}

    plan = pb.compile(pb.value_and_grad(function, wrt=names if len(names) > 1 else names[0]), tier=tier)
    prepared = OurPlan(partial(plan, *inputs.values()), differentiated)
    object.__setattr__(prepared, "plan", plan)
    return prepared


def _only(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def _plan_of(prepared: PreparedCase) -> dict[str, Any] | None:
    plan = getattr(prepared, "plan", None)
    if plan is None:
        return None
    summary = plan.summary()
    return {key: summary.get(key) for key in ("arrays", "bytes", "state_bytes", "kernels", "fallbacks", "transient")}


def _obey(order: dict[str, Any], call: Callable[[], Any], *, keep: bool) -> Answer:
    match order["do"]:
        case "count":
            return _counted(call)
        case "warm":
            _move_to(order["cpu"])
            return {"calls": _calls_per_batch(call, order["seconds"])}
        case "batch":
            if order.get("clock") == "wall":
                return {"seconds": time_dropped(call, order["calls"], time.perf_counter_ns)}
            return {"seconds": (time_kept if keep else time_dropped)(call, order["calls"])}
        case unknown:
            raise ValueError(f"no order {unknown!r}")


def _allow(threads: int, engine: str) -> None:
    """Set an engine's number of threads: JAX counts the CPUs it may use; later calls to PyTorch are ignored."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if engine.startswith("torch"):
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(threads)
        torch.set_num_threads = lambda _: None


def _move_to(cpu: int | None) -> None:
    """Pin every thread of this process."""
    if cpu is not None:
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - names are all that is wanted
            os.sched_setaffinity(int(thread), {cpu})


def time_dropped(call: Callable[[], Any], calls: int, clock: Callable[[], int] = time.process_time_ns) -> float:
    """Process CPU seconds a call; every result is dropped before the next call. One call before warms the caches again."""
    if calls > 1:
        call()
    turns = itertools.repeat(None, calls)
    start = clock()
    for _ in turns:
        call()
    return (clock() - start) / calls / 1e9


def time_kept(call: Callable[[], Any], calls: int) -> float:
    """As `time_dropped`, but results stay alive, up to `HELD` of them, until the clock has stopped."""
    if calls > 1:
        call()
    clock, duration_ns, left = time.process_time_ns, 0, calls
    while left:
        turns = itertools.repeat(None, min(left, HELD))
        left -= min(left, HELD)
        start = clock()
        held = [call() for _ in turns]
        duration_ns += clock() - start
        del held
    return duration_ns / calls / 1e9


def _warm(call: Callable[[], Any]) -> None:
    start = time.process_time()
    for _ in range(WARM_CALLS):
        call()
        if time.process_time() - start > WARM_S:
            break


def _calls_per_batch(call: Callable[[], Any], seconds: float) -> int:
    _warm(call)
    calls = 1
    while True:
        each = time_dropped(call, calls)
        if each * calls >= seconds / 2:
            return max(1, round(seconds / each))
        calls *= 2


def _counted(call: Callable[[], Any]) -> Answer:
    """Layers of memory of a warm call, and what many calls leave behind in Python's own."""
    _warm(call)
    counts = count_allocations(call).document()
    gc.collect()
    gc.disable()
    calls = max(2, min(MOST_COUNTED_CALLS, int(COUNTED_S / time_dropped(call, 1))))
    _left_behind(call, calls)
    (blocks_before, _), (blocks, garbage) = _left_behind(call, calls), _left_behind(call, calls)
    tracemalloc.start()
    call()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    call()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gc.enable()
    return {
        **{name: metric["value"] for name, metric in counts.items()},
        "python_blocks_kept": blocks - blocks_before,
        "python_garbage": garbage,
        "python_blocks_calls": calls,
        "traced_peak_bytes": peak - before,
        "traced_kept_bytes": after - before,
    }


def _left_behind(call: Callable[[], Any], calls: int) -> tuple[int, int]:
    """Python's blocks after many calls, and the objects in cycles among them, which only the collector frees.

    It is run before the reading: it empties CPython's free lists too, which hold up to 2000 tuples of every length.
    """
    for _ in itertools.repeat(None, calls):
        call()
    garbage = gc.collect()
    return sys.getallocatedblocks(), garbage


if __name__ == "__main__":
    sys.exit(main())
