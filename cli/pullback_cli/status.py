"""`pullback status`: what runs on a data folder, from the state file, the processes and the service's status."""

import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli.options import AsJson, TokenFile
from pullback_cli.paths import DATA
from pullback_cli.usage_errors import needs

if TYPE_CHECKING:
    from pullback_cli.supervision.state_file import UpState


@needs("service")
def status(
    context: typer.Context,
    *,
    server: Annotated[
        str | None, typer.Option(envvar="PULLBACK_SERVER", help="Address of a service; default: the one on --data.")
    ] = None,
    token_file: TokenFile = None,
    data: Annotated[Path, typer.Option(envvar="PULLBACK_DATA", help="Folder that was given to `pullback up`.")] = DATA,
    as_json: AsJson = False,
) -> None:
    """Show what is running and what needs attention: of a service, or of `pullback up` on a folder.

    Examples:
    pullback status

    pullback status --server https://pullback.example --token-file token

    pullback status --json | jq -r .url
    """
    from pullback_cli.supervision.state_file import read_state

    if server is not None and not _typed_only_data(context):
        raise typer.Exit(_of_service(server, token_file, as_json=as_json))
    folder = data.expanduser().absolute()
    state = _state_of(folder, read_state(folder))
    if as_json:
        typer.echo(json.dumps(state, indent=2))
    else:
        _tell(state)
    raise typer.Exit(0 if state["running"] else 1)


def _typed_only_data(context: typer.Context) -> bool:
    """True if the folder was typed, and the service only stands in the environment."""
    typed, from_environment = (context.get_parameter_source(name) for name in ("data", "server"))
    return getattr(typed, "name", "") == "COMMANDLINE" != getattr(from_environment, "name", "")


def _of_service(server: str, token_file: Path | None, *, as_json: bool) -> int:
    """Tell how a service is doing, wherever it runs; returns the exit code."""
    from pullback_cli.services import connected_client
    from pullback_service.client import every

    with connected_client(server, token_file) as service:
        report = service.report_status()
        agents = list(every(service.list_agents))
    silent = [agent for agent in agents if not agent.present]
    if as_json:
        shown = {"url": server, **report.model_dump(mode="json")}
        shown["silent_agents"] = [
            {"name": agent.name, "machine": agent.machine, "last_seen_at": agent.last_seen_at.isoformat()}
            for agent in silent
        ]
        typer.echo(json.dumps(shown, indent=2))
        return 1 if report.findings else 0
    present = ", ".join(agent.name for agent in agents if agent.present) or "none"
    waiting, running = (sum(getattr(chore, state) for chore in report.chores) for state in ("waiting", "running"))
    typer.echo(f"{'all is well' if report.status == 'well' else 'needs attention'}: {server}")
    typer.echo(f"  workers    {report.workers or 'none'}")
    typer.echo(f"  agents     {present}")
    for agent in silent:
        typer.echo(f"  silent     {agent.name} on {agent.machine} since {agent.last_seen_at:%Y-%m-%d %H:%M} UTC")
    typer.echo(
        "  jobs       " + (", ".join(f"{count} {state}" for state, count in report.jobs.by_state.items()) or "none")
    )
    typer.echo(f"  chores     {waiting} waiting, {running} running")
    for finding in report.findings:
        typer.echo(f"  attention  {finding}")
    return 1 if report.findings else 0


def _state_of(folder: Path, state: "UpState | None") -> dict[str, Any]:
    from pullback_cli.supervision.state_file import find_up
    from pullback_service.postgres import EmbeddedPostgres

    postgres = EmbeddedPostgres(folder / "postgres")
    up = find_up(folder)
    running = up is not None
    found: dict[str, Any] = {
        "running": running,
        "ready": False,
        "url": state.url if state and running else None,
        "data": str(folder),
        "version": importlib.metadata.version("pullback"),
        "processes": {},
        "postgres": {"embedded": state.embedded_postgres if state else None, "pid": postgres.pid},
        "agents": [],
        "jobs": {},
        "findings": [],
        "chores": [],
    }
    if state is None:
        return found
    marks = {"up": up or state.up, **state.children}
    found["processes"] = {name: mark.pid for name, mark in marks.items() if mark.process() is not None}
    if running:
        found |= _ask(state.url)
    return found


def _ask(url: str) -> dict[str, Any]:
    """The status of the service; None where it does not answer."""
    from pullback_cli.supervision.service_api import ServiceApi
    from pullback_service.client import ClientError
    from pullback_service.settings import load_settings

    with ServiceApi(url, token=load_settings().token()) as api:
        try:
            report = api.client.report_status()
            return {
                "ready": api.is_ready(),
                "agents": [agent.name for agent in api.client.list_agents().items],
                "jobs": report.jobs.by_state,
                "findings": report.findings,
                "chores": [chore.model_dump(mode="json") for chore in report.chores],
            }
        except ClientError:
            return {"ready": False}


def _tell(found: dict[str, Any]) -> None:
    if not found["running"]:
        typer.echo(
            f"nothing is running on {found['data']}: start it with `pullback up`, or name a service with --server"
        )
        for name, pid in found["processes"].items():
            typer.echo(f"  left behind: {name} (process {pid}); `pullback down` ends it")
        if found["postgres"]["pid"]:
            typer.echo(f"  left behind: Postgres (process {found['postgres']['pid']}); `pullback up` takes it over")
        return
    typer.echo(f"{'ready' if found['ready'] else 'not ready'}: {found['url']}   (pullback {found['version']})")
    typer.echo("  processes  " + ", ".join(f"{name} {pid}" for name, pid in found["processes"].items()))
    postgres = found["postgres"]
    typer.echo(
        "  postgres   " + (f"embedded, process {postgres['pid']}" if postgres["embedded"] else "of DATABASE_URL")
    )
    typer.echo("  agents     " + (", ".join(found["agents"]) or "none"))
    typer.echo("  jobs       " + (", ".join(f"{count} {state}" for state, count in found["jobs"].items()) or "none"))
    waiting, running = (sum(chore[state] for chore in found["chores"]) for state in ("waiting", "running"))
    typer.echo(f"  chores     {waiting} waiting, {running} running")
    typer.echo(f"  data       {found['data']}")
    for finding in found["findings"]:
        typer.echo(f"  attention  {finding}")
