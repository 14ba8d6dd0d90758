"""The worker: one process that holds one variant of one case.

To be timed it is forked from a group's zygote, for all else run as `python -P -m pullback_runners.measurement.worker`. It
reads orders, one JSON object a line, from its standard input and answers each with one line. The first order says what to
hold and what for:

    examine       check the gradient, count memory, describe the plan; answer, then obey `value` (of the function at other arguments)
    instructions  check the gradient, let valgrind count some calls; answer and end
    time          check the gradient, answer `ready`, then obey `warm` (pin, warm up, calibrate), `renew` (go on in a fork, see
                  `renewing`), `turn` (one slice), `beside` (the other times of a call on a device) and `end` (check the gradient again)

End of input ends the worker, so none outlives the process that started it.
"""

import contextlib
import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TextIO

from pullback_runners.allocations import count_allocations
from pullback_runners.allocations.gpu import memory_held
from pullback_runners.errors import UsageError, VariantError
from pullback_runners.measurement.call_times import time_beside
from pullback_runners.measurement.clocks import clock_of
from pullback_runners.measurement.finite_differences import with_numbers
from pullback_runners.measurement.gradient_check import GradientCheck, array_of, bytes_of, check_restored
from pullback_runners.measurement.instructions import call_counted
from pullback_runners.measurement.oracles import keep_gradient, last_file, oracle_of, read_gradient
from pullback_runners.measurement.renewal import Renewal, die_with_parent
from pullback_runners.measurement.sides import enter_side
from pullback_runners.measurement.slices import Clock, calibrate_calls, run_delay_ns, time_slice, timer_ns
from pullback_runners.measurement.third_gradient import heard
from pullback_runners.peers import QueuedCall
from pullback_runners.variants import PreparedVariant, awaited, open_variant, value_of
from pullback_runners.workloads import CPU, Case, Inputs, find_workload, load_workload_file

WARM_UP_S = 0.02
"""Calls are made for so long, and at least `WARM_UP_CALLS`, before anything is timed or counted."""

WARM_UP_CALLS = 3

RENEWED_WARM_UP_S = 0.003
"""A fork is warm but for the pages that it writes to, which are copied when it first does, and for the caches."""

Answer = dict[str, Any]


def main() -> int:
    """Obey orders until the input ends."""
    answer = take_standard_output()
    die_with_parent()
    orders = map(json.loads, take_standard_input())
    first = next(orders, None)
    if first is None:
        return 0
    try:
        if first["subject"]["objects"] is not None:
            os.environ["PULLBACK_CACHE_DIR"] = first["subject"]["objects"]
        import_subject(first["subject"])
        with _checked_variant(first) as checked:
            prepared, check = checked.prepared, checked.first
            clock = clock_of(case := Case.of_document(first["case"]))
            if first["task"] == "examine":
                examined = _examine(prepared, clock)
                checked.again()
                on_device = {} if case.device == CPU else {"libraries": _libraries(), "device_memory": memory_held()}
                answer({"gradient": check.document(), "refuted": check.refuted, **examined, **on_device})
                for order in orders:
                    answer(_value(checked, Path(order["at"]), first))
            elif first["task"] == "instructions":
                _warm_up(prepared.call, clock)
                call_counted(prepared.call)
                answer({"counted": True})
            else:
                # CPU time says the same beside the other members of a group, which start at the same time; wall time does not.
                _warm_up(prepared.call, clock)
                filling = calibrate_calls(prepared.call) if clock == "cpu" else None
                answer({"ready": True, "gradient": check.document()})
                # What a GPU's driver holds does not live on in a fork, however many threads there are.
                forks = case.device == CPU
                renewal = Renewal(lambda: _warm_up(prepared.call, clock, RENEWED_WARM_UP_S), forks=forks)
                waited_ns = run_delay_ns()
                for order in orders:
                    late_ns = _since(waited_ns) if order["do"] == "turn" else None
                    renews = order["do"] == "renew"
                    done = renewal.renew(order["apart"]) if renews else _obey(order, checked, clock, filling)
                    answer({**done, "late_ns": late_ns})
                    waited_ns = run_delay_ns()
    except VariantError as error:
        answer({"failed": {"kind": error.kind, "message": error.message, "refuted": error.refuted}})
    except UsageError as error:
        answer({"failed": {"kind": "exception", "message": str(error)}})
    except Exception as error:  # noqa: BLE001 - whatever a workload or an engine raises is this case's failure
        answer({"failed": {"kind": "exception", "message": _sentence(error, first)}})
    return 0


def take_standard_input() -> TextIO:
    """Keep standard input for orders; a workload that reads it is at its end, and takes no order."""
    orders = os.fdopen(os.dup(0), encoding="utf-8")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - no path of ours
        os.dup2(nothing.fileno(), 0)
    return orders


def take_standard_output() -> Callable[[Answer], None]:
    """Keep standard output for answers; what a workload prints goes to standard error instead of into the protocol."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def answer(content: Answer) -> None:
        channel.write(json.dumps(content) + "\n")
        channel.flush()

    return answer


def import_subject(subject: dict[str, Any]) -> None:
    """Import what is measured, from its own folders rather than what is installed, before any workload does; on its side, if it has one."""
    if subject["side"] is not None:
        enter_side(subject["side"])
    paths = subject["paths"]
    if sys.path[: len(paths)] != paths:
        sys.path[:0] = paths
    folders = {Path(path).resolve() for path in paths}
    for name in subject["imports"]:
        module = importlib.import_module(name)
        imported = Path(module.__file__ or next(iter(module.__path__)))  # a namespace package has folders alone
        if folders and not folders & set(imported.resolve().parents):
            raise VariantError("unavailable", f"{name} came from {imported} and not from {', '.join(paths)}")


@dataclass(frozen=True)
class CheckedVariant:
    """A variant whose first gradient was right and left its arguments alone."""

    prepared: PreparedVariant
    first: GradientCheck
    again: Callable[[], object]
    """Check one more call, and keep it where others check: memory kept between calls, forks and threads may go wrong later."""
    value_at: Callable[[Path], float]
    """The value where the arguments are those in a file."""


@contextlib.contextmanager
def _checked_variant(order: dict[str, Any]) -> Iterator[CheckedVariant]:
    """Draw the arguments, open the variant and check its gradient; a wrong one raises."""
    for path in order["workload_files"]:
        load_workload_file(Path(path), beside_own=False)
    case = Case.of_document(order["case"])
    workload = find_workload(case.workload)
    inputs = workload.draw_inputs(case)
    before = bytes_of(inputs)
    gradient_file = Path(order["kept"]) if order.get("kept") else None
    first_kept = gradient_file if order.get("task") == "time" else None
    examines, outside = order.get("task") == "examine", bool(order.get("outside"))
    left = gradient_file if examines and outside else None
    oracle = oracle_of(order["variant"], workload, case, inputs, first_kept, order.get("reference"), left)
    with open_variant(order["variant"], workload, case, inputs) as opened:
        prepared = opened

        def check(result: Any, when: str) -> GradientCheck:
            found = prepared.differentiated(result)
            complaint = check_restored(before, inputs)
            if complaint:
                raise VariantError("gradient", f"{complaint}{when}")
            done = oracle(found)
            if done.complaint:
                witness = heard(order["variant"], found, workload, case, inputs) if workload.has_oracle else ""
                # Who changes an answer that was right has refuted nobody.
                raise VariantError("gradient", f"{done.complaint}{when}{witness}", None if when else done.refuted)
            if gradient_file is not None and (outside or (examines and not workload.has_oracle)):
                keep_gradient(found, gradient_file if examines else last_file(gradient_file))
            return done

        result = prepared.call()
        first = check(result, "")
        if prepared.may_be_late:
            prepared = replace(prepared, call=awaited(prepared.call, result))
        del result
        yield CheckedVariant(
            prepared,
            first,
            lambda: check(prepared.call(), ", in a call after the first"),
            partial(_value_at, cache(partial(value_of, order["variant"], workload, case)), inputs),
        )


def _value_at(function: Callable[[], Callable[[Inputs], Any]], inputs: Inputs, file: Path) -> float:
    moved = {name: with_numbers(inputs[name], numbers) for name, numbers in read_gradient(file)[1].items()}
    return float(array_of(function()({**inputs, **moved})))


def _value(checked: CheckedVariant, file: Path, order: dict[str, Any]) -> Answer:
    try:
        return {"value": checked.value_at(file)}
    except Exception as error:  # noqa: BLE001 - the next arguments may suit the function
        return {"raised": _sentence(error, order)}


def _examine(prepared: PreparedVariant, clock: Clock) -> Answer:
    _warm_up(prepared.call, clock)
    counts = count_allocations(prepared.call)
    plan = None
    # A plan is a description; an engine that cannot give one still has a right gradient.
    with contextlib.suppress(Exception):
        plan = prepared.plan()
    return {"counts": counts.document(), "plan": plan}


def _libraries() -> dict[str, str]:
    from pullback_runners.measurement.libraries import device_libraries  # noqa: PLC0415 - 3 MB that only a device needs

    return device_libraries()


def _obey(order: dict[str, Any], checked: CheckedVariant, clock: Clock, filling: float | None) -> Answer:
    prepared = checked.prepared
    match order["do"]:
        case "warm":
            if order["cpus"]:
                _pin(order["cpus"])
            _warm_up(prepared.call, clock, WARM_UP_S if filling is None else RENEWED_WARM_UP_S)
            if filling is None:
                filling = calibrate_calls(prepared.call, clock=clock)
            gc.collect()
            return {"filling": filling, "timer_ns": timer_ns(clock)}
        case "turn":
            return time_slice(prepared.call, order["calls"])._asdict()
        case "beside":
            call = prepared.call
            return {"beside": time_beside(call, order["calls"])._asdict() if isinstance(call, QueuedCall) else {}}
        case "end":
            checked.again()
            return {"checked": True}
        case unknown:
            raise ValueError(f"no order {unknown!r}")


def _since(waited_ns: int | None) -> int | None:
    """Nanoseconds that this process has waited for a CPU since then, when it was to go on."""
    now_ns = run_delay_ns()
    return None if waited_ns is None or now_ns is None else now_ns - waited_ns


def _pin(cpus: list[int]) -> None:
    """Let all threads of this process use these CPUs alone: XLA computes in one that it started before."""
    os.sched_setaffinity(0, cpus)
    with contextlib.suppress(FileNotFoundError):  # where a system does not list threads
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - names are wanted
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cpus)


def _warm_up(call: Callable[[], Any], clock: Clock, least_s: float = WARM_UP_S) -> None:
    now = time.process_time if clock == "cpu" else time.monotonic
    until = now() + least_s
    calls = 0
    while calls < WARM_UP_CALLS or now() < until:
        call()
        calls += 1


def _sentence(error: Exception, order: dict[str, Any]) -> str:
    """The exception's message, with its places in the workload's file and in what is measured if it was raised there."""
    lines = str(error).strip().splitlines()
    place = ""
    with contextlib.suppress(Exception):  # it may be the workload that cannot be found
        place = find_workload(order["case"]["workload"]).place_of(error, order["subject"]["top"])
    return f"{type(error).__name__}{f': {lines[0]}' if lines else ''}{place}"


if __name__ == "__main__":
    sys.exit(main())
