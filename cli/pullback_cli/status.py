"""`pullback status`: what runs on a data folder, by the state file, the processes and the service's own word."""

import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli.places import DATA
from pullback_cli.refusals import needs

if TYPE_CHECKING:
    from pullback_cli.supervision.state import UpState


@needs("service")
def status(
    *,
    data: Annotated[Path, typer.Option(envvar="PULLBACK_DATA", help="Folder that was given to `pullback up`.")] = DATA,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what runs on a data folder, and what is stuck and wants attention; exit code 1 when nothing runs.

    Examples:
    pullback status

    pullback status --json | jq -r .url
    """
    from pullback_cli.supervision.state import read_state  # noqa: PLC0415 - psutil is of an extra

    folder = data.expanduser().absolute()
    found = _look(folder, read_state(folder))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _tell(found)
    raise typer.Exit(0 if found["running"] else 1)


def _look(folder: Path, state: "UpState | None") -> dict[str, Any]:
    from pullback_service.postgres import EmbeddedPostgres  # noqa: PLC0415 - heavy, and an extra

    postgres = EmbeddedPostgres(folder / "postgres")
    running = state is not None and state.up.process() is not None
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
    marks = {"up": state.up, **state.children}
    found["processes"] = {name: mark.pid for name, mark in marks.items() if mark.process() is not None}
    if running:
        found |= _ask(state.url)
    return found


def _ask(url: str) -> dict[str, Any]:
    """What the service says of itself; nothing where it does not answer."""
    from pullback_cli.supervision.service_api import ServiceApi  # noqa: PLC0415 - httpx is of an extra
    from pullback_service.client import ClientError  # noqa: PLC0415 - as above
    from pullback_service.settings import load_settings  # noqa: PLC0415 - heavy, and an extra

    with ServiceApi(url, token=load_settings().token()) as api:
        try:
            said = api.client.report_status()
            return {
                "ready": api.is_ready(),
                "agents": [agent.name for agent in api.client.list_agents().items],
                "jobs": said.jobs.by_state,
                "findings": said.findings,
                "chores": [chore.model_dump(mode="json") for chore in said.chores],
            }
        except ClientError:
            return {"ready": False}


def _tell(found: dict[str, Any]) -> None:
    if not found["running"]:
        typer.echo(f"nothing runs on {found['data']}: start it with `pullback up`")
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
