"""One row: start everyone, check everyone, then let them take turns batch by batch."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.engine_vs_peers.process import Participant, ParticipantError
from benchmarks.engine_vs_peers.rows import OURS, Row

from pullback_runners.measurement.gradient_check import TOLERANCE, array_of, relative_error
from pullback_runners.peers import find_peer
from pullback_runners.workloads import Case, find_workload

BATCH_S = 0.003
"""A batch lasts at least this long, or one call."""

LEAST_ROUNDS = 5
GUEST_ROUNDS = 5
"""Rounds of a participant that no ratio is asked against."""


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    tier: str
    cpu: int | None
    rounds: int
    seconds: float
    """Time for the rounds of one row; fewer rounds are made when they last longer, but never fewer than five."""
    peers: tuple[str, ...]
    say: Callable[[str], None]


def measure(row: Row, settings: Settings) -> dict[str, Any]:
    """Measure a row; gives the record to store: raw times by participant and round, counts, versions, absences."""
    record: dict[str, Any] = {
        "kind": row.kind,
        "keep": row.keep,
        "tier": settings.tier,
        "participants": {},
        "absent": {},
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        members = dict(_started(row, settings, record, Path(folder), stack))
        if OURS not in members:
            return record
        _calibrate(members, record, settings.cpu)
        _take_turns(row, members, settings, record)
    record["counts"] = _counted(row, settings)
    return record


def _started(
    row: Row, settings: Settings, record: dict[str, Any], folder: Path, stack: contextlib.ExitStack
) -> Iterator[tuple[str, Participant]]:
    """Start participants side by side, since imports and compilation take longest; those whose answer is right stay."""
    entrants: list[tuple[str, str | None, Case]] = [(OURS, OURS, row.case)]
    entrants += [(name, OURS, case) for name, case in row.own_others.items()]
    entrants += [(peer, peer, row.case) for peer in row.peers if peer in settings.peers]
    if row.work is not None:
        entrants.append((row.work.resource, None, row.case))
    started: list[tuple[str, str | None, Case, Path, Participant]] = []
    for number, (name, engine, case) in enumerate(entrants):
        reason = find_peer(engine).available() if engine not in (OURS, None) else None
        if reason is not None:
            record["absent"][name] = reason
            continue
        result = folder / f"{number}.npz"
        member = Participant(_orders(row, settings, engine, name, case, result), _environment(engine))
        stack.callback(member.end)
        started.append((name, engine, case, result, member))
    expected: dict[str, Any] = {}
    for name, engine, case, result, member in started:
        try:
            introduction = member.answer()
            if engine is not None:
                if case.name not in expected:
                    expected[case.name] = _expected(case)
                introduction["error"] = _error(result, expected[case.name], case)
        except ParticipantError as error:
            record["absent"][name] = str(error)
            settings.say(f"  {name}: {error}")
            continue
        record["participants"][name] = {**introduction, "engine": engine, "case": case.document(), "seconds": []}
        settings.say(f"  {name}: ready")
        yield name, member


def _orders(
    row: Row, settings: Settings, engine: str | None, name: str, case: Case, result: Path | None
) -> dict[str, Any]:
    return {
        "engine": engine,
        "resource": name if engine is None else None,
        "case": case.document(),
        "kind": row.kind,
        "keep": row.keep and engine is not None,
        "tier": settings.tier,
        "cpu": _starting_cpu(result, settings.cpu),
        "result": str(result),
    }


def _starting_cpu(result: Path | None, cpu: int | None) -> int | None:
    """A CPU to start on, since pools of threads are made as large as there are CPUs; they are taken in turns."""
    if cpu is None or result is None or not result.stem.isdecimal():
        return cpu
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[int(result.stem) % len(cpus)]


def _environment(engine: str | None) -> dict[str, str]:
    return {} if engine in (OURS, None) else dict(find_peer(str(engine)).environment)


def _expected(case: Case) -> dict[str, Any]:
    """Value and gradients by the closed form in double precision, no engine's."""
    workload = find_workload(case.workload)
    value, gradients = workload.closed_form(case, workload.draw_inputs(case))
    return {"value": np.asarray(value), **{name: array_of(gradient) for name, gradient in gradients.items()}}


def _error(result: Path, expected: dict[str, Any], case: Case) -> float:
    """Largest relative error of a participant's value and gradients; a wrong one takes no part."""
    with np.load(result) as found:
        if set(found) != set(expected):
            raise ParticipantError(f"computed {sorted(found)} instead of {sorted(expected)}")
        errors = {name: relative_error(found[name], expected[name]) for name in expected}
    worst = max(errors, key=lambda name: np.inf if np.isnan(errors[name]) else errors[name])
    if not errors[worst] <= TOLERANCE[case.dtype]:
        raise ParticipantError(
            f"{worst} is off by {errors[worst]:.2g} of its size; {TOLERANCE[case.dtype]:.0e} is accepted"
        )
    return errors[worst]


def _calibrate(members: dict[str, Participant], record: dict[str, Any], cpu: int | None) -> None:
    for name in list(members):
        try:
            record["participants"][name]["calls"] = members[name].ask(do="warm", seconds=BATCH_S, cpu=cpu)["calls"]
        except ParticipantError as error:
            _leave(name, members, record, error)


def _take_turns(row: Row, members: dict[str, Participant], settings: Settings, record: dict[str, Any]) -> None:
    """Batches in rotating order, so that what a neighbour does to one participant it does to the next one too."""
    asked = {name for ask in row.asks for name in ask.against} | {OURS, *([row.work.resource] if row.work else [])}
    order = list(members)
    spent = 0.0
    for round_ in range(settings.rounds):
        if round_ >= LEAST_ROUNDS and spent > settings.seconds:
            break
        for name in [name for name in order if name in members]:
            if round_ >= GUEST_ROUNDS and name not in asked:
                continue
            entry = record["participants"][name]
            try:
                seconds = members[name].ask(do="batch", calls=entry["calls"])["seconds"]
            except ParticipantError as error:
                _leave(name, members, record, error)
                continue
            entry["seconds"].append(seconds)
            spent += seconds * entry["calls"]
        order.append(order.pop(0))


def _leave(name: str, members: dict[str, Participant], record: dict[str, Any], error: ParticipantError) -> None:
    """Take a member out of a row, which goes on without it; its times so far are dropped."""
    del members[name]
    del record["participants"][name]
    record["absent"][name] = str(error)


def _counted(row: Row, settings: Settings) -> dict[str, Any] | None:
    """Memory of our engine in a process of its own, since hooks change the heap's layout."""
    with tempfile.TemporaryDirectory() as folder:
        orders = _orders(row, settings, OURS, OURS, row.case, Path(folder) / "result.npz")
        member = Participant(orders, {}, counting=True)
        try:
            member.answer()
            return member.ask(do="count")
        except ParticipantError as error:
            settings.say(f"  counting: {error}")
            return None
        finally:
            member.end()
