"""`pullback channel`: where a project sends its notifications."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pullback_cli.jobs.output import show_json
from pullback_cli.service_commands import service_command
from pullback_cli.usage_errors import RefusalError, note

if TYPE_CHECKING:
    from pullback_service.client import Client, models

app = typer.Typer(no_args_is_help=True)

LOOK_S = 0.5
SHOWN_DELIVERIES = 20
NOT_DELIVERED = 1

Project = Annotated[str | None, typer.Option(help="Project of the channel, if several projects have one of this name.")]
ChannelName = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name or id of a channel.")]


@app.callback()
def channel() -> None:
    """Set where a project sends its notifications, and see what was delivered.

    Needs a token of the scope admin, where the service asks for one.

    Examples:
    pullback channel add team --project demo --webhook https://hooks.example/pullback > secret

    pullback channel test team
    """


def _show_made(made: "models.NewChannel") -> None:
    typer.echo(made.secret or f"channel {made.id}: try it with `pullback channel test {made.id}`")


@app.command()
@service_command("channel add", _show_made)
def add(
    service: "Client",
    *,
    name: Annotated[str, typer.Argument(help="Name of the channel.")],
    project: Annotated[str, typer.Option(help="Project whose notifications it gets.")],
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Send signed JSON to this address; -: read it from standard input."),
    ] = None,
    slack: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Incoming webhook of Slack, or of a service that accepts the same messages; -: as above.",
        ),
    ] = None,
    email: Annotated[list[str] | None, typer.Option(metavar="ADDRESS", help="Send e-mails there; repeatable.")] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these, repeatable: confirmed, culprit, grown, resolved, withdrawn, likely, wrong_gradient, missing."
        ),
    ] = None,
) -> "models.NewChannel":
    """Create a channel. For a webhook, print the key of its signatures, which cannot be shown again.

    Examples:
    pullback channel add team --project demo --webhook https://hooks.example/pullback > secret

    pullback channel add chat --project demo --slack - --event confirmed --event resolved < address

    pullback channel add list --project demo --email bench@example.org --json
    """
    from pydantic import ValidationError

    from pullback_service.client import models

    kind, target = _target(webhook, slack, email)
    fields = {"project": project, "name": name, "kind": kind, **target, **({"events": event} if event else {})}
    try:
        statement = models.ChannelRequest.model_validate(fields)
    except ValidationError as error:
        raise RefusalError(_refusal(error)) from error
    return service.create_channel(statement)


def _line(each: "models.ChannelSummary") -> str:
    state: str = each.state
    if each.switched_off_at is not None:
        state = f"off since {each.switched_off_at:%Y-%m-%d %H:%M}: {each.switched_off_because}"
    elif each.failing_since is not None:
        state = f"failing since {each.failing_since:%Y-%m-%d %H:%M}"
    last = f"last sent {each.last_sent_at:%Y-%m-%d %H:%M}" if each.last_sent_at else "nothing sent yet"
    waiting = f"  {each.waiting} waiting" if each.waiting else ""
    events = "usual events" if each.events is None else ",".join(each.events)
    return f"{each.id}  {each.project}  {each.name}  {each.kind}  {each.target}  [{events}]  {state}  {last}{waiting}"


def _show_found(channels: "list[models.ChannelSummary]") -> None:
    if not channels:
        typer.echo("there are no channels: make one with `pullback channel add`")
    for each in channels:
        typer.echo(_line(each))


@app.command("list")
@service_command("channel list", _show_found)
def list_(
    service: "Client",
    *,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
) -> "list[models.ChannelSummary]":
    """List channels with their targets and the state of their deliveries.

    Examples:
    pullback channel list --project demo

    pullback channel list --json | jq '.[] | select(.state != "on")'
    """
    from pullback_service.client import every

    return list(every(service.list_channels, project=project))


@app.command()
@service_command("channel show")
def show(service: "Client", *, channel: ChannelName, project: Project = None, as_json: bool) -> None:
    """Show the last messages of a channel, newest first, with the answers of the receiver.

    Examples:
    pullback channel show team

    pullback channel show team --project demo --json | jq '.[] | select(.state == "failed")'
    """
    listed = _channel(service, channel, project)
    deliveries = service.list_deliveries(listed.id, limit=SHOWN_DELIVERIES).items
    if as_json:
        show_json(deliveries)
        return
    typer.echo(_line(listed))
    for each in deliveries:
        answer = f"  {each.answer}" if each.answer else ""
        typer.echo(f"  {each.created_at:%Y-%m-%d %H:%M}  {each.state}  {each.event}  {each.title or ''}{answer}")


@app.command("test")
@service_command("channel test")
def try_out(
    service: "Client",
    *,
    channel: ChannelName,
    project: Project = None,
    wait: Annotated[float, typer.Option(min=0, max=600, help="Seconds to wait for the answer.")] = 60,
    as_json: bool,
) -> None:
    """Send a test message and wait for the answer. If it arrives, a channel that was switched off is switched on again.

    Examples:
    pullback channel test team

    pullback channel test team --project demo --wait 10 --json
    """
    listed = _channel(service, channel, project)
    sent = service.test_channel(listed.id)
    until = time.monotonic() + wait
    while sent.state == "waiting" and time.monotonic() < until:
        time.sleep(LOOK_S)
        newest = service.list_deliveries(listed.id, limit=SHOWN_DELIVERIES).items
        sent = next((each for each in newest if each.id == sent.id), sent)
    if as_json:
        show_json(sent)
    elif sent.state == "sent":
        typer.echo(f"arrived: {sent.answer}")
    if sent.state != "sent":
        late = f"the test was not sent within {wait:g} s: is a `pullback worker` running?"
        note(late if sent.state == "waiting" else f"the test did not arrive: {sent.answer}")
        raise typer.Exit(NOT_DELIVERED)


def _show_removed(removed: "models.ChannelSummary") -> None:
    typer.echo(f"channel {removed.name} of {removed.project} is removed")


@app.command()
@service_command("channel remove", _show_removed)
def remove(service: "Client", *, channel: ChannelName, project: Project = None) -> "models.ChannelSummary":
    """Remove a channel; waiting messages are discarded.

    Examples:
    pullback channel remove team

    pullback channel remove 3 --json
    """
    return service.remove_channel(_channel(service, channel, project).id)


def _target(webhook: str | None, slack: str | None, email: list[str] | None) -> tuple[str, dict[str, Any]]:
    given = [(kind, value) for kind, value in (("webhook", webhook), ("slack", slack), ("email", email)) if value]
    if len(given) != 1:
        raise RefusalError("say where to send: one of --webhook, --slack and --email")
    kind, value = given[0]
    if isinstance(value, list):
        return kind, {"to": value}
    return kind, {"url": sys.stdin.readline().strip() if value == "-" else value}


def _refusal(error: Any) -> str:
    from pullback_service.validation_errors import message_of

    first = error.errors(include_input=False)[0]  # the address of a webhook is a secret
    option = {"to": "--email", "url": "--webhook or --slack", "events": "--event", "name": "the name"}
    where = str(first["loc"][0]) if first["loc"] else ""
    return f"{option.get(where, where)}: {message_of(first)}"


def _channel(service: "Client", named: str, project: str | None) -> "models.ChannelSummary":
    """The channel of a name or of an id."""
    from pullback_service.client import every

    channels = list(every(service.list_channels, project=project))
    results = [each for each in channels if each.name == named] or [each for each in channels if str(each.id) == named]
    if not results:
        raise RefusalError(f"there is no channel {named!r}: `pullback channel list` shows them")
    if len(results) > 1:
        raise RefusalError(
            f"several projects have a channel {named!r} ({', '.join(each.project for each in results)}): say --project, or its id"
        )
    return results[0]
