"""The rules of a repository's `pullback.toml`: sending them to a service."""

import re
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pullback_cli.uploading import checkout
from pullback_runners.git import git, output_of

if TYPE_CHECKING:
    from pullback_runners.projects.configuration import ProjectFile
    from pullback_service.client import Client, models

_PLACE = re.compile(r"\$\.rules\[(\d+)\]\.?(\w*)")


def replace_rules(
    client: "Client",
    name: str,
    file: "ProjectFile",
    commit: str | None,
    *,
    branch: str | None = None,
    anchor_sha: str | None = None,
    dry_run: bool = False,
) -> "models.RulesAnswer":
    """Put the rules of a file in the place of those that hold; UsageError says which line the service refuses, and why.

    Where a `branch` is said that is not the trunk, nothing is changed.
    """
    from pullback_service.client import ProblemError, models

    rules = [{key: value for key, value in asdict(rule).items() if value is not None} for rule in file.rules]
    parameters = {"trunk": file.detection.trunk, "rules": rules, "commit": commit, "branch": branch}
    if file.detection.anchor is not None:  # a service of an earlier release knows no such key
        parameters |= {"anchor": file.detection.anchor, "anchor_sha": anchor_sha}
    try:
        return client.replace_rules(models.RulesStatement.model_validate(parameters), project=name, dry_run=dry_run)
    except ProblemError as problem:
        for error in problem.errors:
            if place := _PLACE.match(error.path):
                raise file.wrong_rule(int(place[1]), place[2], error.message) from problem
            if error.path == "$.anchor":
                raise file.wrong_anchor(error.message) from problem
        raise


def anchor_sha_of(repository: Path, file: "ProjectFile") -> str | None:
    """The commit of the tag that the file names as anchor; None where it names none, or this clone does not have it."""
    if file.detection.anchor is None or not checkout.is_one(repository):
        return None
    tag = f"refs/tags/{file.detection.anchor}^{{commit}}"
    sha = output_of(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", tag)
    return None if sha is None else sha.strip() or None


def committed_file(repository: Path, revision: str = "HEAD") -> "ProjectFile | None":
    """The `pullback.toml` of a commit, None where it has none; UsageError says what is wrong in it."""
    from pullback_runners.projects.configuration import FILE, parse_project

    output, top = git(repository, "show", f"{revision}:{FILE}"), output_of(repository, "rev-parse", "--show-toplevel")
    if output.returncode != 0 or top is None:
        return None
    return parse_project(output.stdout.decode(errors="replace"), Path(top))


def deleted_file(repository: Path) -> "ProjectFile | None":
    """The `pullback.toml` that this history had last, without its rules; None where it has one, or had none as far as this clone knows."""
    from pullback_runners.errors import UsageError
    from pullback_runners.projects.configuration import FILE

    deleted = output_of(repository, "rev-list", "--max-count=1", "--first-parent", "HEAD", "--", f":/{FILE}")
    try:
        before = committed_file(repository, f"{deleted}^") if deleted else None
    except UsageError:  # whose rules nobody sent
        return None
    return None if before is None else replace(before, detection=type(before.detection)(), rules=())


def send_rules(client: "Client", repository: Path, branch: str | None, projects: Collection[str], *, err: bool) -> None:
    """Send the rules of a checkout of the trunk, where they may be others than those that hold; what is refused is a note."""
    from pullback_runners.errors import UsageError
    from pullback_service.client import ClientError

    if not projects or not checkout.is_one(repository):
        return
    is_needed = True
    try:
        committed = committed_file(repository)
        file = committed or deleted_file(repository)
        if file is None or file.name not in projects:
            return
        is_needed = bool(file.rules) or file.detection != type(file.detection)()
        here = checkout.head(repository)
        on = branch or here.branch
        if on is not None and (committed is not None or _hold_of(client, repository, file, on)):
            anchor_sha = anchor_sha_of(repository, file)
            taken = replace_rules(client, file.name, file, here.sha, branch=on, anchor_sha=anchor_sha)
            if taken.changed:
                count = len(taken.rules)
                rules = "1 rule of pullback.toml is" if count == 1 else f"{count} rules of pullback.toml are"
                typer.echo(f"  {rules} now active", err=err)
    except (UsageError, ClientError) as error:
        if is_needed:  # a service of an earlier release takes no rules
            typer.echo(
                f"  note: the rules of pullback.toml were rejected; the previous rules remain in force: {error}",
                err=err,
            )


def _hold_of(client: "Client", repository: Path, file: "ProjectFile", branch: str) -> bool:
    """True if rules hold that were sent of this history; others are of a file that lies elsewhere."""
    answer = replace_rules(
        client, file.name, file, None, branch=branch, dry_run=True
    )  # a token that uploads may not read
    if not answer.changed or answer.commit is None:
        return False
    return output_of(repository, "merge-base", "--is-ancestor", answer.commit, "HEAD") is not None
