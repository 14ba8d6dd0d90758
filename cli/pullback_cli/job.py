"""`pullback job`: asking for measurements, watching them, deciding about them."""

import re
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pullback_cli.completions import suites
from pullback_cli.jobs.id_completion import ids_that
from pullback_cli.jobs.output import show_job, show_jobs, show_json, show_whole
from pullback_cli.options import AsJson, TokenFile
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.service_commands import service_command
from pullback_cli.suites import refuse_unknown_suite
from pullback_cli.uploading.git_log import first_parents, reason_of
from pullback_cli.usage_errors import RefusalError, needs, note
from pullback_cli.wording import in_options

if TYPE_CHECKING:
    from pullback_service.client import Client, models

LARGEST_PAGE = 1000
# Kinds of problems that are one job's own: the others can be decided about all the same.
_OF_ONE_JOB = frozenset({"conflict", "not-found"})
FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

State = Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
Requires = Annotated[
    list[str] | None, typer.Option("--require", help="name=value among the agent's labels; repeatable: device=cpu.")
]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def job() -> None:
    """Request measurements from a service, watch and manage them.

    Ids, states and suites complete with the tab key after `pullback --install-completion`.

    Examples:
    pullback job create --project demo --suite standard

    pullback job list --project demo --state queued
    """


def _ids(*states: str) -> Any:
    return typer.Argument(help="Ids of jobs.", autocompletion=ids_that(*states))


Suite = Annotated[
    str, typer.Option(help="quick, standard, full or trial; a part of one: quick:poly9*", autocompletion=suites)
]


def _show_found(jobs: "Sequence[models.JobSummary]") -> None:
    if not jobs:
        typer.echo("no jobs match; create one with `pullback job create`")
    show_jobs(jobs)


@app.command("list")
@service_command("job list", _show_found)
def list_(
    service: "Client",
    *,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    commit: Annotated[str | None, typer.Option(help="Only at this commit, by its full hash.")] = None,
    state: Annotated[State | None, typer.Option(help="Only in this state.")] = None,
    suite: Annotated[str | None, typer.Option(help="Only of this suite.", autocompletion=suites)] = None,
    kind: Annotated[Literal["run", "compare"] | None, typer.Option(help="Only of this kind.")] = None,
    origin: Annotated[
        Literal["asked", "backfill", "idle", "confirm", "bisect", "anchor"] | None,
        typer.Option(help="Only those requested this way."),
    ] = None,
    machine: Annotated[
        int | None, typer.Option(min=1, help="Only jobs that this machine attempted, by its id.")
    ] = None,
    awaiting_approval: Annotated[
        bool, typer.Option("--awaiting-approval", help="Only jobs of forks that wait for an administrator.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of jobs to show.")] = 50,
) -> "list[models.JobSummary]":
    """List jobs, newest first.

    Examples:
    pullback job list

    pullback job list --project demo --state failed --json | jq -r '.[].failure_message'

    pullback job list --awaiting-approval
    """
    from pullback_service.client import every

    pages = every(
        service.list_jobs,
        limit=min(limit, LARGEST_PAGE),
        project=project,
        commit=commit,
        state=state,
        suite=suite,
        kind=kind,
        origin=origin,
        machine_id=machine,
        awaits_approval=True if awaiting_approval else None,
    )
    return list(islice(pages, limit))


@app.command()
@needs("runner", "job show")
def show(
    *,
    job_id: Annotated[int, typer.Argument(metavar="ID", help="Id of a job.", autocompletion=ids_that())],
    log: Annotated[bool, typer.Option("--log", help="Print the log of its newest attempt, and nothing else.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print the log while it is written, until the job has ended.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a job, its attempts and its result.

    Examples:
    pullback job show 12

    pullback job show 12 --log | tail

    pullback job show 12 --follow && echo "there is a result"
    """
    from pullback_cli.jobs.log_output import log_of
    from pullback_cli.services import connected_client

    if follow:
        raise typer.Exit(_followed(job_id, server, token_file))
    with connected_client(server, token_file) as service:
        if log:
            for piece in log_of(service, job_id, follow=False):
                typer.echo(piece.text, nl=False)
            return
        result = service.read_job(job_id)
    (show_json if as_json else show_whole)(result)


@app.command()
@service_command("job create", show_job)
def create(
    service: "Client",
    *,
    project: Annotated[str, typer.Option(help="Project to measure.")],
    suite: Suite = "standard",
    commit: Annotated[str, typer.Option(help="Hash, tag or branch.")] = "HEAD",
    case: Annotated[
        list[str] | None, typer.Option(help="Name of a case, or a glob over names: lstm*; repeatable.")
    ] = None,
    variant: Annotated[list[str] | None, typer.Option(help="Variant to measure; repeatable.")] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with this commit; the same one (A/A) shows the noise.")
    ] = None,
    effort: Annotated[int, typer.Option(min=1, max=8, help="Multiple of the usual comparison time.")] = 1,
    fork: Annotated[
        str | None, typer.Option(help="Repository that the commit comes from, if it is not the project's: untrusted.")
    ] = None,
    priority: Annotated[int, typer.Option(min=-1000, max=1000, help="Higher ones run first.")] = 0,
    requires: Requires = None,
    machine: Annotated[int | None, typer.Option(min=1, help="The only machine to run it on, by its id.")] = None,
    timeout_s: Annotated[float, typer.Option(min=1, help="Time limit of the job, in seconds.")] = 3600,
    force: Annotated[bool, typer.Option("--force", help="Create a job even if an identical one exists.")] = False,
    repository: Annotated[Path, typer.Option(help="Clone to look commits up in.")] = Path(),
) -> "models.JobDetail":
    """Request a measurement; an identical job that waits, runs or is done is returned instead.

    Examples:
    pullback job create --project demo

    pullback job create --project demo --commit HEAD --against main --suite quick --require device=cpu

    pullback job create --project demo --against main --case 'lstm*' --effort 2

    pullback job create --project demo --commit "$SHA" --fork someone/gradients
    """
    from pullback_service.client import models

    refuse_unknown_suite(suite)
    fields: dict[str, object] = {
        "project": project,
        "commit": {**_commit(repository, commit), **({} if fork is None else {"fork": fork})},
        "suite": suite,
        "cases": case or [],
        "variants": variant or [],
        "kind": "run" if against is None else "compare",
        "priority": priority,
        "requires": dict(_pair(text) for text in requires or ()),
        "timeout_s": timeout_s,
        "machine_id": machine,
    }
    if effort != 1:  # a service of an earlier release knows no such key
        if against is None:
            raise RefusalError("--effort is of comparisons; name the other commit with --against")
        fields["effort"] = effort
    if against is not None:
        fields["reference"] = _commit(repository, against)
    return service.create_job(models.JobRequest.model_validate(fields), force=force)


@app.command()
@service_command("job cancel")
def cancel(service: "Client", *, ids: Annotated[list[int], _ids("queued", "leased", "running")], as_json: bool) -> None:
    """Cancel jobs: waiting ones at once, running ones with their next heartbeat; finished jobs are refused.

    Examples:
    pullback job cancel 12

    pullback job cancel $(pullback job list --state queued --json | jq '.[].id')
    """
    _decide(service.cancel_job, ids, as_json=as_json)


@app.command()
@service_command("job retry")
def retry(service: "Client", *, ids: Annotated[list[int], _ids("failed", "lost", "cancelled")], as_json: bool) -> None:
    """Queue failed, lost or cancelled jobs again, each with three more attempts; earlier attempts are kept.

    Examples:
    pullback job retry 12

    pullback job retry 12 13 14 --json
    """
    _decide(service.retry_job, ids, as_json=as_json)


@app.command()
@service_command("job approve")
def approve(service: "Client", *, ids: Annotated[list[int], _ids("queued")], as_json: bool) -> None:
    """Approve jobs of forks, for machines that accept untrusted ones; review their commits first.

    Needs a token of the scope admin.

    Examples:
    pullback job approve 12

    pullback job list --awaiting-approval
    """
    _decide(service.approve_job, ids, as_json=as_json)


@app.command()
@service_command("job priority", show_job)
def priority(
    service: "Client",
    *,
    job_id: Annotated[
        int, typer.Argument(metavar="ID", help="Id of a job.", autocompletion=ids_that("queued", "leased", "running"))
    ],
    value: Annotated[
        int, typer.Argument(metavar="PRIORITY", min=-1000, max=1000, help="Higher ones run first; negative after --.")
    ],
) -> "models.JobDetail":
    """Change the priority of a job.

    Examples:
    pullback job priority 12 100

    pullback job priority --json 12 -- -50
    """
    from pullback_service.client import models

    return service.change_job(job_id, models.JobChange(priority=value))


def _show_backfill(answer: "models.BackfillAnswer") -> None:
    under_way = f", {answer.under_way} jobs under way" if answer.under_way else ""
    typer.echo(f"{answer.missing} of {answer.looked_at} commits have no results of {answer.suite}{under_way}")
    for each in answer.jobs:
        made = f"job {each.job_id}" if each.job_id is not None else "would get a job"
        typer.echo("  ".join(part for part in ("", each.commit[:10], each.title, made) if part is not None))


@app.command()
@service_command("job backfill", _show_backfill)
def backfill(
    service: "Client",
    *,
    project: Annotated[str, typer.Option(help="Project to measure.")],
    branch: Annotated[str, typer.Option(help="Branch of the commits.")] = "main",
    suite: Suite = "standard",
    requires: Requires = None,
    order: Annotated[
        Literal["newest", "bisect"], typer.Option(help="From the newest backwards, or the widest gap first.")
    ] = "newest",
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of these jobs queued or running.")] = 20,
    depth: Annotated[int, typer.Option(min=1, max=5000, help="How many commits back to look.")] = 500,
    priority: Annotated[
        int, typer.Option(min=-1000, max=1000, help="Lower than that of jobs requested by hand.")
    ] = -100,
    timeout_s: Annotated[float, typer.Option(min=1, help="Time limit of each job, in seconds.")] = 3600,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Create no jobs; print those that would be created.")
    ] = False,
) -> "models.BackfillAnswer":
    """Request measurements of the commits of a branch that have no results; safe to repeat.

    Examples:
    pullback job backfill --project demo --dry-run

    pullback job backfill --project demo --branch main --suite standard --require device=cpu --order bisect --limit 50
    """
    from pullback_service.client import models

    refuse_unknown_suite(suite)
    wanted = models.BackfillRequest(
        project=project,
        branch=branch,
        suite=suite,
        requires=dict(_pair(text) for text in requires or ()),
        order=order,
        limit=limit,
        depth=depth,
        priority=priority,
        timeout_s=timeout_s,
        dry_run=dry_run,
    )
    return service.create_backfill(wanted)


def _followed(job_id: int, server: str, token_file: Path | None) -> int:
    from pullback_cli.jobs.log_output import log_of
    from pullback_cli.services import client_of, refusal_of
    from pullback_service.client import ClientError

    attempt = 1
    try:
        with client_of(server, token_file) as client:
            for piece in log_of(client, job_id, follow=True):
                if piece.text and piece.attempt != attempt:
                    note(f"attempt {piece.attempt} began")
                    attempt = piece.attempt
                typer.echo(piece.text, nl=False)
            job = client.read_job(job_id)
    except ClientError as error:
        raise refusal_of(error) from error
    reason = f": {job.failure_message}" if job.failure_message else ""
    note(f"job {job_id} is {job.state}{reason}")
    return 0 if job.state == "done" else 1


def _decide(decision: "Callable[[int], models.JobDetail]", ids: Sequence[int], *, as_json: bool) -> None:
    """Decide the same about several jobs; what was done is shown, also where some of them could not be decided about."""
    from pullback_service.client import ProblemError

    changed: list[models.JobDetail] = []
    refused: list[str] = []
    try:
        for job_id in ids:
            try:
                changed.append(decision(job_id))
            except ProblemError as problem:
                if problem.slug not in _OF_ONE_JOB:
                    raise
                refused.append(in_options(str(problem)))
    finally:
        if changed or as_json:
            (show_json if as_json else show_jobs)(changed)
    if refused:
        raise RefusalError(" ".join(refused))


def _commit(repository: Path, revision: str) -> dict[str, object]:
    """The commit as the clone here knows it; of a full hash it need not know anything."""
    listed = first_parents(repository, revision, 1)
    if listed:
        return listed[0]
    if FULL_HASH.fullmatch(revision):
        return {"sha": revision}
    reason = reason_of(repository, "rev-parse", revision)
    raise RefusalError(f"git cannot read {repository} ({reason}): name a branch or commit this clone has")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise RefusalError(f"--require {text!r} is not of the form name=value, for example device=cpu")
    return name, value
