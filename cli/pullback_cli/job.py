"""`pullback job`: asking for measurements, watching them, deciding about them."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pullback_cli.refusals import RefusalError, needs
from pullback_cli.upload import DEFAULT_SERVER, Server, TokenFile
from pullback_cli.uploading.gitlog import first_parents, reason_of

if TYPE_CHECKING:
    from pullback_cli.calling import Service

JOBS = "/api/v1/jobs"
MOST_COMPLETED = 100
COMPLETION_TIMEOUT_S = 2.0  # somebody waits at a prompt
FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

State = Literal["queued", "leased", "running", "done", "failed", "cancelled", "lost"]
AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Requires = Annotated[
    list[str] | None, typer.Option("--require", help="name=value among the agent's labels; repeatable: device=cpu.")
]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def job() -> None:
    """Ask a service for measurements, watch them, and decide about them.

    Ids, states and suites complete with the tab key after `pullback --install-completion`.

    Examples:
    pullback job create --project demo --suite standard

    pullback job list --project demo --state queued
    """


def _ids_that(*states: str) -> Callable[[str], list[tuple[str, str]]]:
    """A completion of job ids in some of the states; without an answer of the service there is none."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        from pullback_cli.calling import Service  # noqa: PLC0415 - httpx is of an extra

        file = os.environ.get("PULLBACK_TOKEN_FILE")
        server = os.environ.get("PULLBACK_SERVER", DEFAULT_SERVER)
        try:
            with Service(server, Path(file) if file else None, timeout_s=COMPLETION_TIMEOUT_S) as service:
                found = service.items(JOBS, most=MOST_COMPLETED)
        except RefusalError:
            return []
        return [
            (str(each["id"]), f"{each['state']} {each['project']} {each['commit']['sha'][:10]} {each['suite']}")
            for each in found
            if str(each["id"]).startswith(incomplete) and (not states or each["state"] in states)
        ]

    return complete


def _suites(incomplete: str) -> list[str]:
    return [name for name in ("quick", "standard", "full") if name.startswith(incomplete)]


def _ids(*states: str) -> Any:
    return typer.Argument(help="Ids of jobs.", autocompletion=_ids_that(*states))


Suite = Annotated[
    str, typer.Option(help="quick, standard or full; a part of one: quick:poly9*", autocompletion=_suites)
]


@app.command("list")
@needs("runner", "job list")
def list_(
    *,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    commit: Annotated[str | None, typer.Option(help="Only at this commit, by its full hash.")] = None,
    state: Annotated[State | None, typer.Option(help="Only in this state.")] = None,
    suite: Annotated[str | None, typer.Option(help="Only of this suite.", autocompletion=_suites)] = None,
    kind: Annotated[Literal["run", "compare"] | None, typer.Option(help="Only of this kind.")] = None,
    origin: Annotated[
        Literal["asked", "backfill", "idle"] | None, typer.Option(help="Only those somebody, or something, wanted.")
    ] = None,
    machine: Annotated[int | None, typer.Option(min=1, help="Only those this machine tried, by its id.")] = None,
    awaiting_approval: Annotated[
        bool, typer.Option("--awaiting-approval", help="Only jobs of forks that wait for an administrator.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most jobs to show.")] = 50,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first.

    Examples:
    pullback job list

    pullback job list --project demo --state failed --json | jq -r '.[].failure_message'

    pullback job list --awaiting-approval
    """
    with _service(server, token_file) as service:
        jobs = service.items(
            JOBS,
            most=limit,
            project=project,
            commit=commit,
            state=state,
            suite=suite,
            kind=kind,
            origin=origin,
            machine_id=machine,
            awaits_approval=True if awaiting_approval else None,
        )
    if as_json:
        typer.echo(json.dumps(jobs, indent=2))
        return
    if not jobs:
        typer.echo("there are no such jobs: ask for one with `pullback job create`")
    for each in jobs:
        typer.echo(_line(each))


@app.command()
@needs("runner", "job show")
def show(
    *,
    job_id: Annotated[int, typer.Argument(metavar="ID", help="Id of a job.", autocompletion=_ids_that())],
    log: Annotated[bool, typer.Option("--log", help="Print the log of its newest attempt, and nothing else.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Print the log while it is written, until the job has ended.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a job, its attempts and its result.

    With --follow the exit code is 0 where the job is done, and 1 where it failed, was cancelled or lost.

    Examples:
    pullback job show 12

    pullback job show 12 --log | tail

    pullback job show 12 --follow && echo "there is a result"
    """
    if follow:
        raise typer.Exit(_followed(job_id, server, token_file))
    with _service(server, token_file) as service:
        if log:
            for piece in service.text(f"{JOBS}/{job_id}/log"):
                typer.echo(piece, nl=False)
            return
        found = service.get(f"{JOBS}/{job_id}")
    typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(_described(found)))


@app.command()
@needs("runner", "job create")
def create(
    *,
    project: Annotated[str, typer.Option(help="Project to measure.")],
    suite: Suite = "standard",
    commit: Annotated[str, typer.Option(help="Hash, tag or branch.")] = "HEAD",
    against: Annotated[
        str | None, typer.Option(help="Compare with this commit; the same one (A/A) shows the noise.")
    ] = None,
    fork: Annotated[
        str | None, typer.Option(help="Repository the commit comes from, where it is not the project's: untrusted.")
    ] = None,
    priority: Annotated[int, typer.Option(min=-1000, max=1000, help="Higher ones run first.")] = 0,
    requires: Requires = None,
    machine: Annotated[int | None, typer.Option(min=1, help="The one machine to run it, by its id.")] = None,
    timeout_s: Annotated[float, typer.Option(min=1, help="The work is ended after so many seconds.")] = 3600,
    force: Annotated[bool, typer.Option("--force", help="Make another one even if one stands.")] = False,
    repository: Annotated[Path, typer.Option(help="Clone to look commits up in.")] = Path(),
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask for a measurement; what waits, runs or is done already is returned as it stands.

    Examples:
    pullback job create --project demo

    pullback job create --project demo --commit HEAD --against main --suite quick --require device=cpu

    pullback job create --project demo --commit "$SHA" --fork someone/gradients
    """
    body: dict[str, object] = {
        "project": project,
        "commit": {**_commit(repository, commit), **({} if fork is None else {"fork": fork})},
        "suite": suite,
        "kind": "run" if against is None else "compare",
        "priority": priority,
        "requires": dict(_pair(text) for text in requires or ()),
        "timeout_s": timeout_s,
        "machine_id": machine,
    }
    if against is not None:
        body["reference"] = _commit(repository, against)
    with _service(server, token_file) as service:
        made = service.post(JOBS, body, force=force)
    typer.echo(json.dumps(made, indent=2) if as_json else _line(made))


@app.command()
@needs("runner", "job cancel")
def cancel(
    *,
    ids: Annotated[list[int], _ids("queued", "leased", "running")],
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Cancel jobs: waiting ones at once, running ones with their next heartbeat; finished ones stay as they are.

    Examples:
    pullback job cancel 12

    pullback job cancel $(pullback job list --state queued --json | jq '.[].id')
    """
    _decide("cancel", ids, server, token_file, as_json=as_json)


@app.command()
@needs("runner", "job retry")
def retry(
    *,
    ids: Annotated[list[int], _ids("failed", "lost", "cancelled")],
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Queue failed, lost or cancelled jobs again, each with three more attempts; their history stays.

    Examples:
    pullback job retry 12

    pullback job retry 12 13 14 --json
    """
    _decide("retry", ids, server, token_file, as_json=as_json)


@app.command()
@needs("runner", "job approve")
def approve(
    *,
    ids: Annotated[list[int], _ids("queued")],
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Let jobs of forks run, on machines that accept untrusted ones; look at their commits first.

    Needs a token of the scope admin.

    Examples:
    pullback job approve 12

    pullback job list --awaiting-approval
    """
    _decide("approve", ids, server, token_file, as_json=as_json)


@app.command()
@needs("runner", "job priority")
def priority(
    *,
    job_id: Annotated[
        int, typer.Argument(metavar="ID", help="Id of a job.", autocompletion=_ids_that("queued", "leased", "running"))
    ],
    value: Annotated[
        int, typer.Argument(metavar="PRIORITY", min=-1000, max=1000, help="Higher ones run first; negative after --.")
    ],
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Let a job run sooner or later than others.

    Examples:
    pullback job priority 12 100

    pullback job priority --json 12 -- -50
    """
    with _service(server, token_file) as service:
        changed = service.patch(f"{JOBS}/{job_id}", {"priority": value})
    typer.echo(json.dumps(changed, indent=2) if as_json else _line(changed))


@app.command()
@needs("runner", "job backfill")
def backfill(
    *,
    project: Annotated[str, typer.Option(help="Project to measure.")],
    branch: Annotated[str, typer.Option(help="Branch whose commits are measured.")] = "main",
    suite: Suite = "standard",
    requires: Requires = None,
    order: Annotated[
        Literal["newest", "bisect"], typer.Option(help="From the newest backwards, or the widest gap first.")
    ] = "newest",
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most of these jobs that wait or run at once.")] = 20,
    depth: Annotated[int, typer.Option(min=1, max=5000, help="How many commits back to look.")] = 500,
    priority: Annotated[int, typer.Option(min=-1000, max=1000, help="Behind the jobs somebody asked for.")] = -100,
    timeout_s: Annotated[float, typer.Option(min=1, help="Each is ended after so many seconds.")] = 3600,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Make no job; say which would be made.")] = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask for the commits of a branch that have no results; asking again makes nothing twice.

    Examples:
    pullback job backfill --project demo --dry-run

    pullback job backfill --project demo --branch main --suite standard --require device=cpu --order bisect --limit 50
    """
    body = {
        "project": project,
        "branch": branch,
        "suite": suite,
        "requires": dict(_pair(text) for text in requires or ()),
        "order": order,
        "limit": limit,
        "depth": depth,
        "priority": priority,
        "timeout_s": timeout_s,
        "dry_run": dry_run,
    }
    with _service(server, token_file) as service:
        answer = service.post("/api/v1/backfills", body)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    under_way = f", {answer['under_way']} jobs under way" if answer["under_way"] else ""
    typer.echo(f"{answer['missing']} of {answer['looked_at']} commits have no results of {suite}{under_way}")
    for each in answer["jobs"]:
        made = f"job {each['job_id']}" if each["job_id"] is not None else "would get a job"
        typer.echo(f"  {each['commit'][:10]}  {each['title'] or ''}  {made}".replace("    ", "  "))


def _followed(job_id: int, server: str, token_file: Path | None) -> int:
    from pullback_cli.following import follow  # noqa: PLC0415 - httpx is of an extra
    from pullback_cli.uploading.sending import client_of  # noqa: PLC0415 - as above
    from pullback_service.client import models  # noqa: PLC0415 - as above

    attempt, state, reason = 1, "queued", ""
    with client_of(server, token_file) as client:
        for news in follow(client, job_id):
            if isinstance(news, models.LogEvent):
                if news.attempt != attempt:
                    typer.echo(f"pullback job show: attempt {news.attempt} began", err=True)
                    attempt = news.attempt
                typer.echo(news.text, nl=False)
            else:
                state = news.state
                reason = f": {news.failure_message}" if news.failure_message else ""
    typer.echo(f"pullback job show: job {job_id} is {state}{reason}", err=True)
    return 0 if state == "done" else 1


def _service(server: str, token_file: Path | None) -> "Service":
    from pullback_cli.calling import Service  # noqa: PLC0415 - httpx is of an extra

    return Service(server, token_file)


def _decide(decision: str, ids: Sequence[int], server: str, token_file: Path | None, *, as_json: bool) -> None:
    """Decide the same about several jobs; the first that cannot be is the last."""
    with _service(server, token_file) as service:
        changed = [service.post(f"{JOBS}/{job_id}/{decision}") for job_id in ids]
    if as_json:
        typer.echo(json.dumps(changed, indent=2))
        return
    for each in changed:
        typer.echo(_line(each))


def _commit(repository: Path, revision: str) -> dict[str, object]:
    """What the clone here knows of a commit; of a full hash it need not know anything."""
    found = first_parents(repository, revision, 1)
    if found:
        return found[0]
    if FULL_HASH.fullmatch(revision):
        return {"sha": revision}
    reason = reason_of(repository, "rev-parse", revision)
    raise RefusalError(f"git cannot read {repository} ({reason}): name a branch or commit this clone has")


def _line(job: dict[str, Any]) -> str:
    state = "awaits approval" if job["awaits_approval"] else job["state"]
    against = f" against {job['reference'][:10]}" if job["reference"] else ""
    asked = "" if job["origin"] == "asked" else f"  {job['origin']}"
    why = f"  {job['failure_kind']}: {_first_line(job['failure_message'])}" if job["failure_message"] else ""
    return (
        f"{job['id']}  {state}  {job['project']}  {job['commit']['sha'][:10]}{against}  {job['suite']}  "
        f"priority {job['priority']}{asked}  {job['attempts']} of {job['max_attempts']} attempts{why}"
    )


def _described(job: dict[str, Any]) -> list[str]:
    lines = [_line(job), f"  commit     {job['commit']['sha']}  {job['commit']['title'] or ''}".rstrip()]
    if job["requires"]:
        lines.append("  requires   " + ", ".join(f"{name}={value}" for name, value in job["requires"].items()))
    if job["trust"] == "untrusted":
        lines.append(f"  trust      untrusted, approved by {job['approved_by'] or 'nobody yet'}")
    lines.append(f"  asked for  {job['created_at']}" + (f", ended {job['finished_at']}" if job["finished_at"] else ""))
    for each in job["history"]:
        why = f"  {each['failure_kind']}: {_first_line(each['failure_message'])}" if each["failure_message"] else ""
        phase = f" ({each['phase']})" if each["phase"] and each["ended_at"] is None else ""
        lines.append(
            f"  attempt {each['number']}  {each['state']}{phase}  machine {each['machine_id']}  {each['leased_at']}{why}"
        )
    if job["report_id"]:
        lines.append(f"  result     /reports/{job['report_id']}")
    return lines


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise RefusalError(f"--require {text!r} is not of the form name=value, for example device=cpu")
    return name, value
