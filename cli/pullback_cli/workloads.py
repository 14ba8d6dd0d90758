"""`pullback workloads`: what can be measured, at which sizes, and by whom."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli import completions
from pullback_cli.options import AsJson
from pullback_cli.run_interrupts import print_refusals
from pullback_cli.usage_errors import needs

if TYPE_CHECKING:
    from pullback_runners.workloads import Workload

USAGE = 2


@needs("runner")
def workloads(
    name: Annotated[
        str | None, typer.Argument(help="A workload; default: all.", autocompletion=completions.workloads)
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--workloads", help="A Python file with workloads of your own.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the workloads and how many cases each has in every suite.

    With a name: its mathematics, its cases, and the peers it is written for.

    Examples:
    pullback workloads

    pullback workloads lstm

    pullback workloads --workloads mine.py --json
    """
    from pullback_runners.suites import SUITES
    from pullback_runners.workloads import find_workload, known_workloads, load_workload_files

    _, errors = load_workload_files(file or ())
    refused = [str(error) for error in errors]
    if name is not None:  # it may be in a file that was refused: then that is the reason
        print_refusals(refused)
    shown = known_workloads() if name is None else [find_workload(name)]
    suites = tuple(suite.name for suite in SUITES.values() if suite.sizes is None)  # the others have sizes of these
    if as_json:
        typer.echo(json.dumps([_document(each, suites) for each in shown]))
    elif name is None:
        _print_all(shown, suites)
    else:
        _print_one(shown[0], suites)
    if name is None:
        print_refusals(refused)
    if refused:
        raise typer.Exit(USAGE)


def _document(workload: "Workload", suites: Sequence[str]) -> dict[str, Any]:
    return {
        "name": workload.name,
        "description": workload.sentence,
        "derivatives": list(workload.derivatives),
        "peers": _peers(workload),
        "suites": {
            suite: [{"name": case.name, **case.document()} for case in workload.cases(suite)] for suite in suites
        },
    }


def _peers(workload: "Workload") -> list[str]:
    """Peers with a form of the workload, installed or not."""
    from pullback_runners.peers import PEERS, find_peer

    written = [peer for peer in PEERS if find_peer(peer).offers(workload)]
    return [*written, *(own for own in workload.variants if own not in written)]


def _print_all(listed: Sequence["Workload"], suites: Sequence[str]) -> None:
    width = max(len(each.name) for each in listed)
    typer.echo(f"{'workload':<{width}}  {'  '.join(f'{suite:>8}' for suite in suites)}  what it is")
    for each in listed:
        counts = "  ".join(f"{len(each.cases(suite)):>8}" for suite in suites)
        typer.echo(f"{each.name:<{width}}  {counts}  {each.sentence}")


def _print_one(workload: "Workload", suites: Sequence[str]) -> None:
    typer.echo(workload.mathematics)
    typer.echo(f"\nderivatives: {', '.join(workload.derivatives)}   peers: {', '.join(_peers(workload)) or 'none'}")
    for suite in suites:
        typer.echo(f"\n{suite}")
        for case in workload.cases(suite):
            typer.echo(f"  {case.name}")
