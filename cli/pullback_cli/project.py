"""`pullback project`: making, listing and changing projects."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pullback_cli.completions import suites
from pullback_cli.options import AsJson
from pullback_cli.service_database import DEFAULT_DATA, DataFolder, database_url, in_database
from pullback_cli.suites import refuse_unknown_suite
from pullback_cli.usage_errors import RefusalError, needs

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

    from pullback_service.projects.schemas import ProjectSummary

app = typer.Typer(no_args_is_help=True)

PublicRead = Annotated[bool | None, typer.Option("--public/--private", help="Allow reading without a token.")]


@app.callback()
def project() -> None:
    """Create, list and change projects.

    Works on the service's database: the one of DATABASE_URL, or the one of `pullback up` in --data.

    Examples:
    pullback project create demo

    pullback project set demo --public
    """


@app.command()
@needs("service", "project create")
def create(
    *,
    name: Annotated[str, typer.Argument(help="Name that uploads refer to.")],
    public: PublicRead = None,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Create a project, so that tokens that may not create projects can upload to it.

    Examples:
    pullback project create demo

    pullback project create group/demo --public --json
    """
    url = database_url(data)

    from pydantic import ValidationError

    from pullback_service.audit.trail import note
    from pullback_service.projects import queries
    from pullback_service.projects.schemas import ProjectRequest, ProjectSummary
    from pullback_service.validation_errors import message_of

    try:
        wanted = ProjectRequest(name=name, public_read=bool(public))
    except ValidationError as error:
        raise RefusalError(f"{name!r} cannot be a name: {message_of(error.errors()[0])}") from error

    async def make(session: "AsyncSession") -> ProjectSummary:
        made = await queries.create_project(session, wanted.name, public_read=wanted.public_read)
        note(session, subject=f"project {wanted.name}", project=made.name, public_read=wanted.public_read)
        return ProjectSummary.model_validate(made)

    _tell(in_database(url, "project create", make), as_json=as_json)


@app.command("list")
@needs("service", "project list")
def list_(*, data: DataFolder = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """List projects.

    Examples:
    pullback project list

    pullback project list --json | jq -r '.[].name'
    """
    url = database_url(data)

    from pullback_service.projects import queries
    from pullback_service.projects.schemas import ProjectSummary

    async def read(session: "AsyncSession") -> list[ProjectSummary]:
        return [ProjectSummary.model_validate(found) for found in await queries.list_projects(session)]

    projects = in_database(url, "project list", read)
    if as_json:
        typer.echo(json.dumps([found.model_dump(mode="json") for found in projects], indent=2))
        return
    if not projects:
        typer.echo("there are no projects: make one with `pullback project create NAME`")
    for found in projects:
        _tell(found, as_json=False)


@app.command("set")
@needs("service", "project set")
def set_(
    *,
    name: Annotated[str, typer.Argument(help="Name of the project.")],
    public: PublicRead = None,
    mirror: Annotated[
        str | None, typer.Option(help="Folder of a clone on the workers' machine, whose branches they read; '': none.")
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(help="https or ssh address that agents fetch commits from; '': each agent's own clone."),
    ] = None,
    trunk: Annotated[
        str | None,
        typer.Option(
            help="Branch that is watched for changes; '': the backfill branch, else main, master or the first branch."
        ),
    ] = None,
    raw_days: Annotated[
        int | None,
        typer.Option(
            min=0, max=36_500, help="Days to keep process values before only their spread is kept; 0: for ever."
        ),
    ] = None,
    body_days: Annotated[
        int | None, typer.Option(min=0, max=36_500, help="Days to keep uploaded files; 0: for ever.")
    ] = None,
    backfill: Annotated[
        str | None,
        typer.Option(
            metavar="SUITE",
            help="Measure commits without results with this suite, step by step; '': none.",
            autocompletion=suites,
        ),
    ] = None,
    backfill_branch: Annotated[str, typer.Option(help="Branch for --backfill.")] = "main",
    backfill_order: Annotated[
        Literal["newest", "bisect"], typer.Option(help="From the newest backwards, or the widest gap first.")
    ] = "newest",
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Change only the settings that are given.

    Examples:
    pullback project set demo --public

    pullback project set demo --repository https://git.example/group/demo

    pullback project set demo --trunk master

    pullback project set demo --private --mirror /srv/demo.git --json

    pullback project set demo --raw-days 180 --body-days 365 --backfill standard --backfill-order bisect
    """
    url = database_url(data)

    from pullback_service.audit.trail import note
    from pullback_service.deferred_chores import defer_detection
    from pullback_service.ids import ProjectId
    from pullback_service.projects import queries
    from pullback_service.projects.schemas import BackfillPolicy, ProjectSummary

    changes = _places(mirror, repository, trunk)
    if public is not None:
        changes["public_read"] = public
    for column, days in (("raw_days", raw_days), ("body_days", body_days)):
        if days is not None:
            changes[column] = days or None
    if backfill:
        refuse_unknown_suite(backfill)
    if backfill is not None:
        policy = BackfillPolicy(branch=backfill_branch, suite=backfill, order=backfill_order) if backfill else None
        changes["backfill"] = policy.model_dump() if policy else None
    if not changes:
        raise RefusalError(
            "nothing to change: say --public or --private, or name a --repository, --mirror, --trunk, --raw-days, --body-days or a --backfill"
        )

    async def change(session: "AsyncSession") -> ProjectSummary:
        project_row = await queries.project_by_name(session, name)
        for setting, value in changes.items():
            setattr(project_row, setting, value)
        await session.flush()
        if changes.keys() & {"trunk", "backfill"}:
            await defer_detection(session, ProjectId(project_row.id))
        note(session, subject=f"project {name}", project=name, **changes)
        return ProjectSummary.model_validate(project_row)

    _tell(in_database(url, "project set", change), as_json=as_json)


def _places(mirror: str | None, repository: str | None, trunk: str | None) -> dict[str, Any]:
    """The addresses of a repository as they are stored, for the workers and for agents, and the branch that is watched."""
    from pydantic import ValidationError

    from pullback_service.projects.schemas import ProjectChange
    from pullback_service.validation_errors import message_of

    places: dict[str, Any] = {}
    if mirror is not None:
        places["mirror"] = str(Path(mirror).absolute()) if mirror else None
    for setting, value in (("repository", repository), ("trunk", trunk)):
        if value is not None:
            try:
                places[setting] = getattr(ProjectChange.model_validate({setting: value or None}), setting)
            except ValidationError as error:
                raise RefusalError(f"--{setting} {value!r}: {message_of(error.errors()[0])}") from error
    return places


def _tell(found: "ProjectSummary", *, as_json: bool) -> None:
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    who = "public" if found.public_read else "private"
    typer.echo(f"{found.name}  {who}  {found.reports} reports, {found.commits} commits, {found.points} points")
