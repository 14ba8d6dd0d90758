"""`pullback rules`: send the rules of the repository's `pullback.toml` to a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_cli.jobs.output import show_json
from pullback_cli.service_commands import service_command
from pullback_cli.usage_errors import RefusalError

if TYPE_CHECKING:
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_service.client import Client, models


@service_command("rules")
def rules(
    service: "Client",
    *,
    project: Annotated[
        str | None, typer.Option(help="Name of the project in the service; default: the one in the file.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Send nothing; show the rules in force.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Change nothing; compare the incidents of the last 90 days announced under the file with those that were announced.",
        ),
    ] = False,
    repository: Annotated[Path, typer.Option(help="Folder with pullback.toml; default: the current one.")] = Path(),
    as_json: bool,
) -> None:
    """Send the rules of pullback.toml, and show those in force.

    The rules that are sent replace all previous ones of the project: a rule removed from the file is removed from the service. Needs a token of the scope
    upload. `pullback upload` sends them from a checkout of the trunk.

    Examples:
    pullback rules --dry-run

    pullback rules

    pullback rules --show --project demo --json | jq '.rules[] | select(.budget != null)'
    """
    from pullback_cli.uploading.rules import replace_rules

    file = None if show and project else _file(repository)
    name = project or (file.name if file else "")
    if show or file is None:
        answer = service.read_rules(project=name)
    else:
        anchor_sha = _anchor_sha(repository, file)
        answer = replace_rules(service, name, file, _commit(repository, file), anchor_sha=anchor_sha, dry_run=dry_run)
    if as_json:
        show_json(answer)
        return
    if answer.older:
        typer.echo(f"nothing was changed: the rules in force are of a later commit, {(answer.commit or '')[:10]}")
    _show(answer, dry_run=dry_run)


def _file(repository: Path) -> "ProjectFile":
    from pullback_runners.projects.configuration import FILE, find_project

    project_row = find_project(repository)
    if project_row is None:
        raise RefusalError(
            f"there is no {FILE} in {repository.resolve()}: change to the repository, or show the rules in force with --show --project NAME"
        )
    return project_row


def _anchor_sha(repository: Path, file: "ProjectFile") -> str | None:
    """The commit of the anchor; UsageError where the file names a tag that this clone does not have."""
    from pullback_cli.uploading.rules import anchor_sha_of

    sha = anchor_sha_of(repository, file)
    if sha is None and file.detection.anchor is not None:
        raise file.wrong_anchor(
            f"there is no tag {file.detection.anchor!r} in this clone: `git fetch --tags`, or name another one"
        )
    return sha


def _commit(repository: Path, file: "ProjectFile") -> str | None:
    """The commit that is checked out, if it has the file as it is."""
    from pullback_cli.uploading import checkout
    from pullback_cli.uploading.rules import committed_file
    from pullback_runners.errors import UsageError

    try:
        committed = committed_file(repository) if checkout.is_one(repository) else None
    except UsageError:  # an earlier state of the file, which nobody sends
        return None
    return checkout.head(repository).sha if committed is not None and committed.text == file.text else None


def _show(answer: "models.RulesAnswer", *, dry_run: bool) -> None:
    hold = "would hold" if dry_run else "hold"
    typer.echo(f"{answer.project}: {len(answer.rules)} rules {hold}; {answer.trunk} is watched{_anchored(answer)}")
    for rule in answer.rules:
        typer.echo(f"  {rule.number}  {_in_words(rule)}")
    if answer.last_90_days is None:
        return
    told = sum(each.told for each in answer.last_90_days)
    would = sum(each.would_be_told for each in answer.last_90_days)
    typer.echo(f"{told} incidents of the last 90 days were announced; with these rules it would be {would}")
    for each in answer.last_90_days:
        sign = "=" if each.told == each.would_be_told else "+" if each.would_be_told else "-"
        typer.echo(f"  {sign} {'new' if each.id is None else each.id}  {each.sentence}")


def _anchored(answer: "models.RulesAnswer") -> str:
    if answer.anchor is None:
        return ""
    at = answer.anchor_sha[:10] if answer.anchor_sha else "its commit is not known yet"
    return f", and compared with {answer.anchor} ({at}) once a week"


def _in_words(rule: "models.RuleSummary") -> str:
    globs = [
        f"{key} {value}"
        for key in ("workload", "case", "variant", "metric", "machine")
        if (value := getattr(rule, key))
    ]
    says = [
        f"{key} = {getattr(rule, key)}" for key in ("at_least", "budget", "watch") if getattr(rule, key) is not None
    ]
    if rule.tell is not None:
        says.append(f"tell = {', '.join(rule.tell) or 'nobody'}")
    since = f"since {rule.since:%Y-%m-%d %H:%M}" if rule.since else "new"
    by = f" by {rule.commit[:10]}" if rule.commit else ""
    return f"{', '.join(globs) or 'everything'}: {', '.join(says)}  ({since}{by})"
