"""`pullback gradbench`: our engine as a tool of GradBench, one JSON message a line."""

import os
from typing import Annotated

import typer

from pullback_cli import completions

INTERRUPTED = 130


def gradbench(
    tier: Annotated[
        str | None,
        typer.Option(
            help="unfused, fused, stateful or native; without it, the fastest that runs here.",
            autocompletion=completions.tiers,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Device; only cpu is supported.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
    *,
    multithreaded: Annotated[bool, typer.Option("--multithreaded", help="One thread per processor.")] = False,
) -> None:
    """Run as a GradBench tool: one JSON message a line on standard input, one answer a line on standard output.

    All 12 evals and their 28 functions are supported, in double precision. Standard output contains only answers.
    See docs/gradbench.md.

    Examples:
    gradbench run --eval "uv run python/gradbench/gradbench/evals/gmm/run.py" --tool "pullback gradbench"

    echo '{"id": 0, "kind": "evaluate", "module": "hello", "function": "square", "input": 3.0}' | pullback gradbench --tier fused
    """
    # Read by NumPy's BLAS and by our own programs when they are loaded, so before anything is imported.
    number = str(os.cpu_count() or 1) if multithreaded else str(threads)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PULLBACK_NUM_THREADS"):
        os.environ[name] = number
    from pullback_runners.errors import UsageError

    if device != "cpu":
        raise UsageError(f"no device {device!r}: the engine computes on cpu only; leave out --device")
    try:
        from pullback_runners.gradbench import Engine, Tool, converse, private_streams

        with private_streams() as (lines, answers):
            converse(lines, answers, Tool(Engine(tier)).respond)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
