"""`pullback token`: making, listing and revoking tokens, and codes with which agents get theirs."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_cli.options import AsJson
from pullback_cli.service_database import DEFAULT_DATA, DataFolder, database_url, in_database
from pullback_cli.usage_errors import RefusalError, needs

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

    from pullback_service.caller import Scope
    from pullback_service.tokens.schemas import TokenSummary

app = typer.Typer(no_args_is_help=True)

NO_EXPIRY = 0.0


@app.callback()
def token() -> None:
    """Create, list and revoke access tokens of CI systems, agents and people.

    Works on the service's database: the one of DATABASE_URL, or the one of `pullback up` in --data.

    Examples:
    pullback token create ci --scope upload --project demo

    pullback token list --json

    pullback token revoke ci
    """


@app.command()
@needs("service", "token create")
def create(
    *,
    name: Annotated[str, typer.Argument(help="Name of the token, shown in errors and the audit log.")],
    scope: Annotated[list[str], typer.Option(help="read, upload, agent or admin; repeatable.")],
    project: Annotated[str | None, typer.Option(help="Limit it to one project; default: all.")] = None,
    expires_in_days: Annotated[
        float, typer.Option(min=0, max=3650, help="Days until it expires; 0: never.")
    ] = NO_EXPIRY,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it; it cannot be shown again, because only a digest is stored.

    Examples:
    pullback token create ci --scope upload --project demo --expires-in-days 365 > token

    pullback token create dashboard --scope read --json | jq -r .token
    """
    url = database_url(data)

    from pullback_service.audit.trail import note
    from pullback_service.ids import ProjectId
    from pullback_service.projects.queries import project_by_name
    from pullback_service.tokens import queries
    from pullback_service.tokens.schemas import NewToken, TokenSummary

    scopes = [_scope(given) for given in scope]
    chosen = _chosen(name)

    async def make(session: "AsyncSession") -> NewToken:
        project_id = ProjectId((await project_by_name(session, project)).id) if project is not None else None
        stored, secret = await queries.create_token(
            session,
            name=chosen,
            scopes=scopes,
            created_by="command line",
            project_id=project_id,
            lifetime=timedelta(days=expires_in_days) if expires_in_days else None,
        )
        note(session, subject=f"token {stored.token.id}", project=project, name=chosen, scopes=scopes)
        return NewToken(**TokenSummary.of(stored).model_dump(), token=secret.secret)

    made = in_database(url, "token create", make)
    typer.echo(made.model_dump_json(indent=2) if as_json else made.token)


@app.command("list")
@needs("service", "token list")
def list_(*, data: DataFolder = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """List tokens, including revoked ones; the shown part of a token identifies it, but cannot be used.

    Examples:
    pullback token list

    pullback token list --json | jq '.[] | select(.last_used_at == null)'
    """
    url = database_url(data)

    from pullback_service.tokens import queries
    from pullback_service.tokens.schemas import TokenSummary

    async def read(session: "AsyncSession") -> list[TokenSummary]:
        rows = await queries.list_tokens(session, after_id=None, limit=queries.MOST_TOKENS)
        return [TokenSummary.of(row) for row in rows]

    tokens = in_database(url, "token list", read)
    if as_json:
        typer.echo(json.dumps([found.model_dump(mode="json") for found in tokens], indent=2))
        return
    if not tokens:
        typer.echo("no tokens: create one with `pullback token create NAME --scope upload`")
    for found in tokens:
        typer.echo(_line(found))


@app.command()
@needs("service", "token revoke")
def revoke(
    *,
    name: Annotated[str, typer.Argument(help="Name of a valid token.")],
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Revoke a token and every login made with it, at once.

    Examples:
    pullback token revoke ci

    pullback token revoke ci --data /srv/pullback
    """
    url = database_url(data)

    from pullback_service.audit.trail import note
    from pullback_service.ids import TokenId
    from pullback_service.tokens import queries
    from pullback_service.tokens.schemas import TokenSummary

    async def end(session: "AsyncSession") -> TokenSummary:
        row = await queries.valid_token_by_name(session, name)
        ended = await queries.revoke_token(session, TokenId(row.token.id))
        note(session, subject=f"token {ended.token.id}", project=ended.project, name=name)
        return TokenSummary.of(ended)

    ended = in_database(url, "token revoke", end)
    typer.echo(ended.model_dump_json(indent=2) if as_json else f"token {name} is revoked")


@app.command()
@needs("service", "token enroll")
def enroll(
    *,
    project: Annotated[str | None, typer.Option(help="Take jobs of this project only; default: all.")] = None,
    expires_in_minutes: Annotated[
        float, typer.Option(min=1, max=7 * 24 * 60, help="Minutes until the code expires.")
    ] = 60,
    data: DataFolder = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Create a code with which one agent can enrol once. The agent gets its own token and keeps it in its data folder.

    Examples:
    pullback token enroll > code && pullback agent --server https://pullback.example --token-file code

    pullback token enroll --project demo --expires-in-minutes 10 --json
    """
    url = database_url(data)

    from pullback_service.audit.trail import note
    from pullback_service.ids import ProjectId
    from pullback_service.projects.queries import project_by_name
    from pullback_service.tokens import queries

    async def make(session: "AsyncSession") -> queries.NewSecret:
        project_id = ProjectId((await project_by_name(session, project)).id) if project is not None else None
        note(session, subject="enrolment code", project=project)
        return await queries.create_code(
            session,
            created_by="command line",
            lifetime=timedelta(minutes=expires_in_minutes),
            project_id=project_id,
        )

    made = in_database(url, "token enroll", make)
    ends = made.expires_at.isoformat() if made.expires_at else None
    typer.echo(json.dumps({"code": made.secret, "expires_at": ends}, indent=2) if as_json else made.secret)


def _scope(given: str) -> "Scope":
    from pullback_service.caller import SCOPES

    for known in SCOPES:
        if given == known:
            return known
    raise RefusalError(f"--scope {given!r} is not one of {', '.join(SCOPES)}")


def _chosen(name: str) -> str:
    from pydantic import TypeAdapter, ValidationError

    from pullback_service.name_characters import ChosenName
    from pullback_service.validation_errors import message_of

    try:
        return TypeAdapter[str](ChosenName).validate_python(name)
    except ValidationError as error:
        raise RefusalError(f"{name!r} is not a valid name: {message_of(error.errors()[0])}") from error


def _line(found: "TokenSummary") -> str:
    state = "valid"
    if found.revoked_at is not None:
        state = f"revoked {found.revoked_at:%Y-%m-%d}"
    elif found.expires_at is not None:
        state = f"until {found.expires_at:%Y-%m-%d}"
    used = f"used {found.last_used_at:%Y-%m-%d %H:%M}" if found.last_used_at else "never used"
    scopes = ",".join(found.scopes)
    return f"{found.prefix}…  {found.name}  [{scopes}]  {found.project or 'all projects'}  {state}  {used}"
