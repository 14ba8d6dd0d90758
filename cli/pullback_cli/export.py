"""`pullback export`: what a service knows, as CSV, JSON lines or Parquet."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pullback_cli.options import TokenFile
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.usage_errors import RefusalError, needs, note


class ExportKind(StrEnum):
    """The kinds of data that can be exported."""

    POINTS = "points"
    SERIES = "series"
    FACETS = "facets"
    COMPARISON = "comparison"
    MATRIX = "matrix"
    PROJECTS = "projects"
    COMMITS = "commits"
    BRANCHES = "branches"
    REPORTS = "reports"
    MACHINES = "machines"
    FACTS = "facts"
    AGENTS = "agents"
    JOBS = "jobs"
    BOARDS = "boards"
    TOKENS = "tokens"
    AUDIT = "audit"


def _known(what: str) -> str:
    if what not in list(ExportKind):
        raise typer.BadParameter(f"{what!r} is not one of {', '.join(ExportKind)}.")
    return what


class Form(StrEnum):
    """The file formats of an export."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Names = list[str] | None


@needs("runner")
def export(
    what: Annotated[
        str,  # the help would print choices, cut in the middle of their names
        typer.Argument(
            metavar="WHAT",
            callback=_known,
            help="points of series over commits, series, facets (counts of them), comparison of two commits, matrix (the "
            "newest state); or a list: projects, commits, branches, reports, machines, facts (how those of a machine "
            "changed), agents, jobs, boards, tokens, audit.",
        ),
    ],
    *,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; default: to a pipe.")] = None,
    form: Annotated[Form | None, typer.Option("--format", help="Default: from the file name; csv for a pipe.")] = None,
    project: Annotated[
        str | None, typer.Option(help="Needed for points, comparison, matrix, commits and branches.")
    ] = None,
    workload: Annotated[
        Names, typer.Option(help="May be repeated, like most of these options: any value matches.")
    ] = None,
    case: Annotated[Names, typer.Option(help="Label of a case.")] = None,
    variant: Annotated[Names, typer.Option(help="native, jax, external, …")] = None,
    kind: Annotated[Names, typer.Option(help="tier, peer or external. jobs: run or compare.")] = None,
    metric: Annotated[Names, typer.Option(help="time, array_bytes, …")] = None,
    machine: Annotated[Names, typer.Option(help="Name, host or class. jobs, facts: the id.")] = None,
    device: Annotated[Names, typer.Option(help="cpu, gpu, …")] = None,
    dtype: Annotated[Names, typer.Option(help="f4, f8, …")] = None,
    param: Annotated[Names, typer.Option(help="A parameter of the case, n=1000.")] = None,
    search: Annotated[
        str | None, typer.Option(help="Words of case, variant, metric or machine, or their prefixes.")
    ] = None,
    branch: Annotated[str | None, typer.Option(help="Only commits of this branch.")] = None,
    since: Annotated[str | None, typer.Option("--from", help="points: first commit, or a branch.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="points: last commit, or a branch.")] = None,
    start: Annotated[str | None, typer.Option(help="points: earliest time, 2026-01-31T00:00:00Z.")] = None,
    end: Annotated[str | None, typer.Option(help="points: latest time.")] = None,
    last: Annotated[int | None, typer.Option(min=1, help="points: newest N commits of each series.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="points: one row per report, with one value per process.")] = False,
    base: Annotated[str | None, typer.Option(help="comparison: the reference; default: the parent of --head.")] = None,
    head: Annotated[str | None, typer.Option(help="comparison: the candidate, a commit or branch.")] = None,
    merge_base: Annotated[
        bool, typer.Option("--merge-base", help="comparison: from the merge base of --base and --head.")
    ] = False,
    base_machine: Annotated[
        str | None, typer.Option(help="comparison: the machine of the reference, to compare two machines.")
    ] = None,
    head_machine: Annotated[str | None, typer.Option(help="comparison: the machine of the candidate.")] = None,
    outcome: Annotated[Names, typer.Option(help="comparison: slower, more, ambiguous, …")] = None,
    commit: Annotated[str | None, typer.Option(help="jobs, reports: only at this commit, by its full hash.")] = None,
    state: Annotated[str | None, typer.Option(help="jobs: queued, running, done, failed, lost, …")] = None,
    suite: Annotated[str | None, typer.Option(help="jobs: only of this suite.")] = None,
    origin: Annotated[str | None, typer.Option(help="jobs: asked, backfill or idle.")] = None,
    awaiting_approval: Annotated[
        bool, typer.Option("--awaiting-approval", help="jobs: only jobs of forks that wait for approval.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
) -> None:
    """Export results of a service to a file, with units, machines and commits. The file is written whole or not at all.

    In CSV, text that a spreadsheet would run as a formula is prefixed with an apostrophe. Parquet needs the service's extra
    `parquet`.

    Examples:
    pullback export points --project demo --metric time --variant native --last 100 -o times.csv

    pullback export points --project demo --raw -o everything.parquet --server https://pullback.example

    pullback export comparison --project demo --base main --head topic --merge-base --outcome slower -o slower.csv

    pullback export comparison --project demo --head main --base-machine old --head-machine new -o machines.csv

    pullback export matrix --project demo --metric time --format json | jq -r .case

    pullback export jobs --project demo --state failed -o failed.csv

    pullback export commits --project demo --branch main -o history.parquet

    pullback export facts --machine 3 --format json | jq -r .after
    """
    from pullback_cli.exporting.address import address, format_of, parameters
    from pullback_cli.exporting.download import download

    given = {
        "project": project,
        "workload": workload,
        "case": case,
        "variant": variant,
        "kind": kind,
        "metric": metric,
        "machine": machine,
        "device": device,
        "dtype": dtype,
        "param": param,
        "q": search,
        "branch": branch,
        "from": since,
        "to": until,
        "start": start,
        "end": end,
        "last": last,
        "raw": raw,
        "base": base,
        "head": head,
        "merge_base": merge_base,
        "base_machine": base_machine,
        "head_machine": head_machine,
        "outcome": outcome,
        "commit": commit,
        "state": state,
        "suite": suite,
        "origin": origin,
        "awaiting_approval": awaiting_approval,
    }
    fields = parameters(ExportKind(what).value, given)
    written = format_of(output, None if form is None else form.value)
    if output is None and written == "parquet" and sys.stdout.isatty():
        raise RefusalError("Parquet cannot be printed to a terminal: name a file with -o")
    got = download(server, token_file, address(ExportKind(what).value, given), [*fields, ("format", written)], output)
    rows = {"csv": got.lines - 1, "json": got.lines}.get(written)  # Parquet's are known only to who can read it
    if output is not None:
        typer.echo(f"{output}: {'' if rows is None else f'{rows} rows, '}{got.size} bytes of {written}")
    elif rows == 0:
        note("0 rows")
