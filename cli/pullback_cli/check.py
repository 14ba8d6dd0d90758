"""`pullback check`: a gate for a change, compared with its merge base."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pullback_cli.checking.ci_context import CiContext, find_base, find_head, read_ci_context
from pullback_cli.options import AsJson, TokenFile
from pullback_cli.run_interrupts import check_output, interrupts
from pullback_cli.server_option import DEFAULT_SERVER, Server
from pullback_cli.usage_errors import RefusalError, needs, note
from pullback_cli.wording import in_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback_cli.checking.ci_context import Head
    from pullback_cli.checking.verdict import FailureKind, Verdict
    from pullback_cli.run_interrupts import Interrupts
    from pullback_service.client import Client, models

USUALLY_FAILING = "regression,missing,wrong-gradient"
NOT_FOUND = 404


@needs("runner")
def check(
    *,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="SHA", help="The commit; default: the head of CI's pull request, else the one checked out."
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BRANCH|SHA",
            help="Base branch or commit: the head is compared with the merge base of both; default: the target of CI's pull request, else the project's main branch.",
        ),
    ] = None,
    wait: Annotated[
        str, typer.Option(help="How long to wait for a measurement in turns; 0 requests none.", metavar="TIME")
    ] = "20m",
    fail_on: Annotated[
        str,
        typer.Option(help="Any of regression, likely, missing, wrong-gradient, ambiguous, budget.", metavar="KIND,…"),
    ] = USUALLY_FAILING,
    comment: Annotated[
        Literal["changed", "always"], typer.Option(help="When a pull request of GitHub gets a comment.")
    ] = "changed",
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comment to a file.")] = None,
    github_check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the check run, as GitHub's API takes it.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the answer as JUnit's XML.")] = None,
    project: Annotated[str | None, typer.Option(help="Default: the one of pullback.toml.")] = None,
    suite: Annotated[
        str | None, typer.Option(help="Suite to measure in turns; default: the suite that was measured.")
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure only this workload, case or glob in turns; may be repeated; default: all of the suite."
        ),
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="Measure only this variant in turns; may be repeated.")
    ] = None,
    repository: Annotated[Path, typer.Option(help="Clone of the project; default: the one of this folder.")] = Path(),
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare a commit with its merge base, and fail on regressions.

    If an agent can measure the project, missing comparisons in turns are requested and awaited. With GITHUB_TOKEN it writes
    the comment and the check run itself.

    Examples:
    pullback check --base main

    pullback check --head "$SHA" --base main --wait 30m --fail-on regression,likely --server https://pullback.example

    pullback check --wait 0 --json | jq -r .sentence
    """
    from pullback_cli.checking.comparison_job import duration_s
    from pullback_cli.checking.verdict import decide
    from pullback_cli.services import client_of, refusal_of
    from pullback_cli.suites import refuse_unknown_suite
    from pullback_service.client import ClientError

    failing = _failing(fail_on)
    duration_s(wait)
    if suite is not None:
        refuse_unknown_suite(suite)
    for file, option in ((markdown, "--markdown"), (github_check, "--github-check"), (junit, "--junit")):
        if file is not None:
            check_output(file, option)
    context = read_ci_context()
    request = _Request(
        project=project or _project(repository),
        head=find_head(head, repository, context),
        base=find_base(base, repository, context),
        suite=suite,
        cases=case or (),
        variants=variant or (),
        wait=wait,
        repository=repository,
        fork=context.fork,
    )
    with client_of(server, token_file) as client, interrupts() as stop:
        try:
            answer, unmeasured, remarks = _ask(client, request, stop)
        except ClientError as error:
            raise refusal_of(error) from error
    verdict = decide(answer, failing, unmeasured, remarks)
    _write(answer, verdict, server, markdown, github_check, junit)
    if context.github_token and context.repository:
        _tell_github(answer, verdict, server, context, comment)
    _show(answer, verdict, failing, as_json=as_json)
    raise typer.Exit(stop.status if stop() and not verdict.failed_on else verdict.status)


@dataclass(frozen=True, slots=True)
class _Request:
    """The head and base of a check, with its limits."""

    project: str
    head: "Head"
    base: str | None
    suite: str | None
    cases: "Sequence[str]"
    variants: "Sequence[str]"
    wait: str
    repository: Path
    fork: str | None


def _failing(text: str) -> "Sequence[FailureKind]":
    from pullback_cli.checking.verdict import STATUSES

    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in STATUSES:
            raise RefusalError(
                f"--fail-on {word!r} is not a kind of finding; give any of {', '.join(STATUSES)}, with commas"
            )
    return [kind for kind in STATUSES if kind in words]


def _project(repository: Path) -> str:
    from pullback_runners.revisions import require_project

    return require_project(repository.resolve()).name


def _ask(
    client: "Client", request: _Request, stop: "Interrupts"
) -> "tuple[models.CheckAnswer, str | None, Sequence[str]]":
    """The answer, why what was to be measured was not, and what else to know."""
    from pullback_cli.checking.comparison_job import JobWait, has_to_wait, measure, tell_base, tell_head

    answer = _answer(client, request)
    if answer.head.authored_at is None and tell_head(client, request.project, request.head.sha, request.repository):
        answer = _answer(client, request)
    learnt, doubt = tell_base(client, request.project, answer.against, request.repository)
    if learnt:
        answer = _answer(client, request)
    unmeasured = None
    if has_to_wait(answer, request.wait, request.cases, request.variants):
        patience = JobWait(request.wait, note, stop)
        unmeasured = measure(
            client,
            answer,
            request.repository,
            patience,
            suite=request.suite,
            cases=request.cases,
            variants=request.variants,
            fork=request.fork,
        )
        answer = _answer(client, request)
    return answer, unmeasured, [each for each in (request.head.remark, doubt) if each is not None]


def _answer(client: "Client", request: _Request) -> "models.CheckAnswer":
    """The service's answer; of an unknown commit or branch, that nothing can be said, and how to send it."""
    from pullback_service.client import ProblemError, models

    try:
        return client.check_commit(
            project=request.project,
            head=request.head.sha,
            base=request.base,
            suite=request.suite,
            case=[*request.cases] or None,
            variant=[*request.variants] or None,
        )
    except ProblemError as problem:
        if problem.status != NOT_FOUND or not {each.path for each in problem.errors} & {"query.head", "query.base"}:
            raise
        return models.CheckAnswer.model_validate(
            {
                "project": request.project,
                "against": request.base or "",
                "head": {
                    "sha": request.head.sha,
                    "series": 0,
                    **dict.fromkeys(("title", "author", "authored_at", "branch")),
                },
                "base": None,
                "counts": dict.fromkeys(models.CheckCounts.model_fields, 0),
                "lacks": [in_options(str(problem))],
                "suite": request.suite or "",
                **dict.fromkeys(("equal_code", "can_measure", "wants_job"), False),
                **{name: [] for name in ("findings", "jobs", "notes")},
                "not_in_turns": 0,
            }
        )


def _write(
    answer: "models.CheckAnswer",
    verdict: "Verdict",
    server: str,
    markdown: Path | None,
    github_check: Path | None,
    junit: Path | None,
) -> None:
    from pullback_cli.checking import verdict_formats
    from pullback_runners.report.files import write_text

    if markdown is not None:
        write_text(verdict_formats.markdown_of(answer, verdict, server), markdown, "--markdown")
    if github_check is not None:
        write_text(
            verdict_formats.as_text(verdict_formats.check_run_of(answer, verdict, server)),
            github_check,
            "--github-check",
        )
    if junit is not None:
        write_text(verdict_formats.junit_of(answer, verdict), junit, "--junit")


def _tell_github(
    answer: "models.CheckAnswer",
    verdict: "Verdict",
    server: str,
    context: CiContext,
    when: Literal["changed", "always"],
) -> None:
    """Write the check run and the comment; what GitHub does not take is said, and changes nothing of the answer."""
    from pullback_cli.checking import verdict_formats
    from pullback_cli.checking.github import GitHub, GitHubError
    from pullback_cli.checking.verdict import has_changes

    with GitHub(context) as github:
        try:
            github.write_check_run(verdict_formats.check_run_of(answer, verdict, server))
            note("the check run is written")
        except GitHubError as error:
            note(str(error))
        if context.pull_request is None:
            return
        try:
            done = github.write_comment(
                context.pull_request,
                verdict_formats.markdown_of(answer, verdict, server),
                marker=verdict_formats.marker_of(answer.project),
                only_if_there=when == "changed" and not has_changes(answer),
            )
        except GitHubError as error:
            note(str(error))
        else:
            if done is not None:
                note(f"the comment is {done}")


def _show(answer: "models.CheckAnswer", verdict: "Verdict", failing: "Sequence[FailureKind]", *, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from pullback_cli.checking import verdict_formats

    if as_json:
        typer.echo(verdict_formats.as_text(verdict_formats.json_of(answer, verdict, failing)), nl=False)
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)

    def say(text: str) -> None:
        console.print(Text(verdict_formats.line(text)), soft_wrap=True)

    say(verdict.sentence)
    rows = verdict_formats.rows_of(answer.findings)
    if rows:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_row(*(Text(heading, style="bold") for heading in verdict_formats.HEADINGS))
        for row in rows:
            style = verdict_formats.STYLES[row.finding]
            table.add_row(
                Text(row.finding, style=style), *(Text(getattr(row, name)) for name in verdict_formats.HEADINGS[1:])
            )
        console.print()
        console.print(table)
        console.print()
    for remark in verdict.remarks:
        say(remark)
    command = verdict_formats.reproduce(answer)
    if command is not None:
        say(f"The same here: {command}")
