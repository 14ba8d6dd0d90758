"""`pullback incident`: what changed since which commit, and deciding about it."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pullback_cli.service_commands import service_command
from pullback_cli.usage_errors import RefusalError

if TYPE_CHECKING:
    from pullback_service.client import Client, models

LARGEST_PAGE = 1000
SHORT_HASH = 10

STATES = ("suspected", "confirming", "confirmed", "refuted", "unconfirmed", "likely", "resolved", "merged")
Kind = Literal["worse", "better", "unsteady", "wrong_gradient", "failed", "missing"]
VerdictWord = Literal["real", "noise", "expected", "fixed", "none"]
IncidentId = Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of an incident.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def incident() -> None:
    """List and show incidents, record verdicts on them, and have them measured again.

    Examples:
    pullback incident list --project demo --state confirmed

    pullback incident verdict 7 expected --note "exact sums take longer"

    pullback incident bisect 7
    """


def _show_found(items: "list[models.IncidentSummary]") -> None:
    if not items:
        typer.echo(
            "there are no such incidents; only commits of the trunk are watched (`pullback project set --trunk`)"
        )
    for each in items:
        typer.echo(_line(each))


def _line(each: "models.IncidentSummary | models.IncidentDetail") -> str:
    text = f"  {each.verdict.verdict}" if each.verdict else ""
    assigned = f"  {each.assignee}" if each.assignee else ""
    return f"{each.id}  {each.state}{text}{assigned}  {each.project}  {each.sentence}"


def _show_whole(detail: "models.IncidentDetail") -> None:
    typer.echo(_line(detail))
    typer.echo(f"  last without  {detail.reference.sha}")
    typer.echo(f"  first with    {detail.commit.sha}")
    if detail.merged_into is not None:
        typer.echo(f"  part of       incident {detail.merged_into}")
    if detail.bisection is not None:
        typer.echo(f"  bisection     {_searched(detail.bisection)}")
    for each in detail.evidence:
        what = " ".join(part for part in (each.case, each.variant, each.metric) if part)
        typer.echo(f"  {each.standing:<10} {what} on {each.machine}: {_known_by(each)}{_size(each)}")
    for event in detail.events:
        told = ", announced" if event.told else ""
        by = "" if event.actor is None else f" by {event.actor}"
        because = f": {event.details['because']}" if "because" in event.details else ""
        typer.echo(f"  {event.at.isoformat(timespec='seconds')}  {event.event}{by}{told}{because}")
    if detail.kind in {"worse", "unsteady"}:
        cases = " ".join(f"--case '{case}'" for case in sorted({each.case for each in detail.evidence})[:8])
        typer.echo(
            f"  the same here: pullback compare --against {detail.reference.sha[:SHORT_HASH]} "
            f"--candidate {detail.commit.sha[:SHORT_HASH]} --suite standard {cases}"
        )


def _searched(bisection: "models.BisectionSummary") -> str:
    if bisection.state == "running":
        waits = f", job {bisection.job_id}" if bisection.job_id is not None else ""
        return f"goes on, {bisection.jobs} jobs so far{waits}"
    share = "" if bisection.share is None else f", which explains {bisection.share:.0%}"
    return f"{bisection.state}: {bisection.culprit}{share}, by {bisection.jobs} jobs"


_KNOWN_BY = {
    "exact": "counted",
    "paired": "measured in turns",
    "levels": "later uploads",
    "budget": "over its budget",
    "absence": "missing",
    "anchor": "in turns with the anchor",
    "failure": "failed",
}


def _known_by(each: "models.IncidentChange") -> str:
    groups = "" if each.n is None else f", {each.n} groups"
    return f"{_KNOWN_BY.get(each.evidence, each.evidence)}{groups}"


def _size(each: "models.IncidentChange") -> str:
    """Such as `, 1024 B, then 2048 B`, of counts and budgets; or the factor, as `, 1.04 times`."""
    from math import exp

    if each.evidence in {"exact", "budget"} and each.before is not None and each.after is not None:
        unit = f" {each.unit}" if each.unit and each.evidence == "exact" else ""
        return f", {each.before:g}{unit}, then {each.after:g}{unit}"
    return "" if each.log_ratio is None else f", {exp(each.log_ratio):.4g} times"


@app.command("list")
@service_command("incident list", _show_found)
def list_(
    service: "Client",
    *,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(help=f"Only in this state: {', '.join(STATES)}; repeatable.", autocompletion=lambda: [*STATES]),
    ] = None,
    kind: Annotated[Kind | None, typer.Option(help="Only of this kind; improvements are `better`.")] = None,
    since: Annotated[str | None, typer.Option(help="Only found since then: 2026-01-31T12:00:00Z.")] = None,
    assignee: Annotated[str | None, typer.Option(help="Only those assigned to this person.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of incidents to show.")] = 50,
) -> "list[models.IncidentSummary]":
    """List incidents, newest first.

    Examples:
    pullback incident list

    pullback incident list --project demo --state confirmed --state likely --kind worse

    pullback incident list --assignee ada

    pullback incident list --json | jq -r '.[].sentence'
    """
    from pullback_service.client import every

    pages = every(
        service.list_incidents,
        limit=min(limit, LARGEST_PAGE),
        project=project,
        state=state or None,
        kind=kind,
        since=since,
        assignee=assignee,
    )
    return list(islice(pages, limit))


@app.command()
@service_command("incident show", _show_whole)
def show(service: "Client", *, incident_id: IncidentId) -> "models.IncidentDetail":
    """Show an incident: its changes with their evidence, its events, and the verdicts of people.

    Examples:
    pullback incident show 7

    pullback incident show 7 --json | jq '.evidence[] | {case, metric, log_ratio}'
    """
    return service.read_incident(incident_id)


@app.command()
@service_command("incident verdict", _show_whole)
def verdict(
    service: "Client",
    *,
    incident_id: IncidentId,
    said: Annotated[
        VerdictWord,
        typer.Argument(metavar="VERDICT", help="real, noise, expected, fixed, or `none` to revoke the verdict."),
    ],
    note: Annotated[str | None, typer.Option(help="Why, for others.")] = None,
    link: Annotated[str | None, typer.Option(help="Link to the discussion: https://….")] = None,
) -> "models.IncidentDetail":
    """Record a verdict on an incident; it replaces the one before.

    `expected` accepts the new level, `fixed` says that the code is fixed: both resolve the incident. `noise` refutes it, and
    until the next level, its series are suspected only of changes at least twice as large. `real` is recorded. `none` revokes the verdict.
    Needs a token of the scope upload.

    Examples:
    pullback incident verdict 7 expected --note "exact sums take longer"

    pullback incident verdict 7 noise --json

    pullback incident verdict 7 none
    """
    from pullback_service.client import models

    if said == "none":
        return service.revoke_verdict(incident_id)
    wanted = models.VerdictRequest.model_validate({"verdict": said, "note": note, "link": link})
    return service.give_verdict(incident_id, wanted)


@app.command()
@service_command("incident assign", _show_whole)
def assign(
    service: "Client",
    *,
    incident_id: IncidentId,
    person: Annotated[str | None, typer.Argument(metavar="PERSON", help="Person to assign.")] = None,
    nobody: Annotated[bool, typer.Option("--none", help="Leave the incident without an assignee.")] = False,
) -> "models.IncidentDetail":
    """Assign an incident to a person. Needs a token of the scope upload.

    Examples:
    pullback incident assign 7 ada

    pullback incident assign 7 --none --json
    """
    from pullback_service.client import models

    if nobody == (person is not None):
        raise RefusalError("incident assign: give a person, or --none to remove the assignee")
    return service.assign_incident(incident_id, models.AssigneeRequest(assignee=person))


@app.command()
@service_command("incident confirm", _show_whole)
def confirm(service: "Client", *, incident_id: IncidentId) -> "models.IncidentDetail":
    """Measure an incident again in turns, now, even if it was measured before; an existing job that waits or runs is kept.

    It does not count towards the machine's minutes of the day. Needs a token of the scope upload.

    Examples:
    pullback incident confirm 7

    pullback job show --follow $(pullback incident confirm 7 --json | jq .job_id)
    """
    return service.confirm_incident(incident_id)


@app.command()
@service_command("incident bisect", _show_whole)
def bisect(service: "Client", *, incident_id: IncidentId) -> "models.IncidentDetail":
    """Search for the commit that caused a confirmed incident, again if it was searched before.

    Agents measure one commit after the other (`pullback job list --origin bisect`), and the incident says what was found. On this
    machine, without a service: `pullback bisect`. Needs a token of the scope upload.

    Examples:
    pullback incident bisect 7

    pullback incident bisect 7 --json | jq .bisection
    """
    return service.bisect_incident(incident_id)
