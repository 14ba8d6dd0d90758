"""`pullback log`: tell the service what a branch is, so that results stand where their commits do."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pullback_cli.refusals import RefusalError, needs

if TYPE_CHECKING:
    import httpx

FIELDS = "%H%x1f%P%x1f%an%x1f%aI%x1f%s"
MOST = 500


@needs("runner")
def log(
    *,
    project: Annotated[str, typer.Option(help="Project the commits belong to.")],
    server: Annotated[
        str, typer.Option(envvar="PULLBACK_SERVER", help="Address of the service.")
    ] = "http://127.0.0.1:8000",
    repository: Annotated[Path, typer.Option(help="Clone or mirror to read; nothing in it is changed.")] = Path(),
    branch: Annotated[
        list[str] | None, typer.Option(help="Branch to tell of; repeatable; default: the one checked out.")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(help="Commit the branch ends at, where no branch of that name is checked out, as in CI."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, max=5000, help="How many commits back.")] = MOST,
    token_file: Annotated[
        Path | None, typer.Option(envvar="PULLBACK_TOKEN_FILE", help="File with a token of the scope upload.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Send an excerpt of `git log --first-parent`: parents, authors, times and titles, no content.

    Results that were or will be uploaded stand at their commits' places; a branch that lost commits is shown as pushed
    by force. Telling the same again changes nothing.

    Examples:
    pullback log --project demo

    pullback log --project demo --branch main --revision "$SHA" --server https://pullback.example --token-file token
    """
    import httpx  # noqa: PLC0415 - an extra

    if not server.startswith(("http://", "https://")):
        raise RefusalError(f"--server {server!r} is no address: for example http://127.0.0.1:8000")
    names = branch or [_checked_out(repository)]
    if revision is not None and len(names) != 1:
        raise RefusalError("--revision is the end of one branch: name one with --branch")
    headers = {"Authorization": f"Bearer {_token(token_file)}"} if token_file is not None else {}
    receipts = []
    with httpx.Client(base_url=server.rstrip("/"), headers=headers, timeout=30) as client:
        for name in names:
            commits = commits_back_from(repository, revision or name, most)
            body = {"project": project, "branch": name, "commits": commits}
            try:
                answer = client.post("/api/v1/commits", json=body)
            except httpx.TransportError as error:
                raise RefusalError(f"{server} does not answer ({error}): check --server") from error
            if not answer.is_success:
                raise RefusalError(f"{server} refused branch {name}: {_detail(answer)}")
            receipts.append(answer.json())
    if as_json:
        typer.echo(json.dumps(receipts, indent=2))
        return
    for receipt in receipts:
        told = receipt["branch"]
        gaps = f", {told['gaps']} gaps" if told["gaps"] else ""
        typer.echo(f"{told['name']}: {receipt['new_commits']} new commits, {told['commits']} known{gaps}")


def _checked_out(repository: Path) -> str:
    found = _git(repository, "symbolic-ref", "--quiet", "--short", "HEAD", remedy="name the branch with --branch")
    return found.strip()


def commits_back_from(repository: Path, revision: str, most: int) -> list[dict[str, object]]:
    """Commits from a revision back along first parents, newest first; where the clone is cut off, so is the list."""
    remedy = "name a branch or commit this clone has"
    said = _git(
        repository,
        "log",
        "--first-parent",
        f"--max-count={most}",
        f"--format={FIELDS}",
        "--end-of-options",
        revision,
        "--",
        remedy=remedy,
    )
    cut_off = set(_git(repository, "rev-parse", "--git-path", "shallow", remedy=remedy).split())
    shallow = {
        sha for path in cut_off if (repository / path).is_file() for sha in (repository / path).read_text().split()
    }
    commits: list[dict[str, object]] = []
    for line in said.splitlines():
        sha, parents, author, authored_at, title = line.split("\x1f")
        told: dict[str, object] = {"sha": sha, "author": author, "authored_at": authored_at, "title": title}
        # git shows the last commit of a shallow clone without parents, which it has.
        commits.append(told if sha in shallow else told | {"parents": parents.split()})
    return commits


def _git(repository: Path, *arguments: str, remedy: str) -> str:
    from pullback_runners.agent.engines import git  # noqa: PLC0415 - an extra

    done = git(repository, *arguments)
    if done.returncode != 0:
        said = (done.stderr.decode(errors="replace").strip() or "git failed").splitlines()[0]
        raise RefusalError(f"git cannot read {repository} ({said}): {remedy}")
    return done.stdout.decode(errors="replace")


def _token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusalError(f"the token file {file} cannot be read: name a file that holds a token") from error


def _detail(answer: "httpx.Response") -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"it answered {answer.status_code}"
