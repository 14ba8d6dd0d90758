"""Tiers: the same mathematics executed in our engine's several ways."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback_runners.errors import VariantError
from pullback_runners.peers import QueuedCall
from pullback_runners.variants.prepared import PreparedVariant
from pullback_runners.workloads import CPU, UNFUSED, Case, Inputs, ValueAndGradients, Workload

OLDEST_NUMPY = (2, 1)
"""The engine's own requirement, which the environment of a commit may not meet."""

MOST_LINES = 400
"""The most lines of a program in a report; differences between two commits are nearly always in the first hundred."""


def listing_of(page: str) -> list[str]:
    """The program and its memory out of the page that a plan explains itself by, line by line."""
    lines = page.splitlines()
    start = next((number for number, line in enumerate(lines) if line == "# program"), len(lines))
    remaining = lines[start : start + MOST_LINES]
    left = len(lines) - start - len(remaining)
    return [*remaining, f"and {left} lines more"] if left else remaining


@contextmanager
def open_tier(tier: str, workload: Workload, case: Case, inputs: Inputs) -> Iterator[PreparedVariant]:
    """Differentiate a case's function by our engine in `tier`.

    The engine is imported here and not at the top: it may be another commit's, put in front of the path by the worker,
    and may lack what this case needs. Entering the tier is not part of the call, since a program enters it once.
    """
    _refuse_older_numpy()
    pb: Any = importlib.import_module("pullback")
    _refuse_unavailable(pb, tier, workload, case.device)
    names = workload.derivatives
    differentiate: Any = workload.differentiated(pb, **dict(case.params))
    planned = tier != UNFUSED and hasattr(pb, "compile")
    if planned:  # what a program does that calls a gradient many times; the tape runs as it stands
        differentiate = pb.compile(differentiate, tier=tier)
    arguments = tuple(inputs.values())
    on_device = case.device != CPU
    if on_device:
        arguments = pb.put(arguments, case.device)

    def call() -> Any:
        return differentiate(*arguments)

    def differentiated(result: Any) -> ValueAndGradients:
        value, gradients = pb.fetch(result) if on_device else result
        return value, dict(zip(names, gradients, strict=True))

    def plan() -> dict[str, Any] | None:
        if not hasattr(pb, "compile"):
            return None
        compiled = differentiate if planned else pb.compile(differentiate, tier=tier)
        compiled(*arguments)
        summary = dict(compiled.summary())
        return summary if summary.get("hash") is None else {**summary, "listing": listing_of(compiled.explain())}

    with pb.tier(tier):
        yield PreparedVariant(_awaited(call) if on_device else call, differentiated, plan)


def _refuse_older_numpy() -> None:
    if tuple(map(int, np.__version__.split(".")[:2])) < OLDEST_NUMPY:
        raise VariantError(
            "unavailable",
            f"Pullback's engine needs NumPy {'.'.join(map(str, OLDEST_NUMPY))} or newer; "
            f"the environment of this commit has {np.__version__}",
        )


def _refuse_unavailable(engine: Any, tier: str, workload: Workload, device: str) -> None:
    """Raise VariantError where this engine, or this machine, cannot run the tier."""
    offered = tuple(getattr(engine, "TIERS", ()))
    if tier not in offered:
        raise VariantError(
            "unavailable", f"this engine cannot run tier {tier!r}, it offers {', '.join(offered) or 'none'}"
        )
    if tier == "native":
        reason = importlib.import_module("pullback.backends.native.availability").why_not()
        if reason is not None:  # what would be measured is another tier
            raise VariantError("unavailable", f"this engine cannot run tier 'native' here: {reason}")
    if not workload.has_numpy:
        raise VariantError("unavailable", f"workload {workload.name} has no NumPy form")
    if device == CPU:
        return
    if not hasattr(engine, "put"):
        raise VariantError("unavailable", f"this engine has no arrays on {device}")
    if importlib.util.find_spec("torch") is None:
        raise VariantError("unavailable", f"torch not installed, which the engine's arrays on {device} need")


def _awaited(call: Callable[[], Any]) -> QueuedCall:
    """The call with the wait for its result: the engine queues on PyTorch's stream."""
    from pullback_runners.peers.torch.adapter import queued_call  # noqa: PLC0415 - of a device alone

    return queued_call(importlib.import_module("torch"), call)
