"""Results at GitHub: the check run of a commit, and the one comment of its pull request, changed in place."""

from collections.abc import Iterator
from typing import Any, Self

import httpx

from pullback_cli.checking.ci_context import CiContext

TIMEOUT_S = 30.0
PAGE = 100
MOST_PAGES = 20
_RETRIES = 2  # of connections that could not be made


class GitHubError(Exception):
    """GitHub refused something; the sentence says what, and what may help."""


class GitHub:
    """The API of GitHub for one repository: https://docs.github.com/rest."""

    def __init__(self, context: CiContext) -> None:
        self._account: tuple[str | None] | None = None
        self._repository = f"/repos/{context.repository}"
        self._http = httpx.Client(
            base_url=context.github_api,
            timeout=TIMEOUT_S,
            transport=httpx.HTTPTransport(retries=_RETRIES),
            headers={
                "Authorization": f"Bearer {context.github_token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "pullback",
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def write_check_run(self, check_run: dict[str, Any]) -> None:
        """Make a check run. Needs a token of a GitHub App, as that of a workflow is, with `checks: write`."""
        self._ask("POST", f"{self._repository}/check-runs", check_run, needs="checks: write")

    def write_comment(self, pull_request: int, text: str, *, marker: str, only_if_there: bool) -> str | None:
        """Change our comment of a pull request, or make it; returns what was done, None where nothing was to do."""
        ours = next((each for each in self._comments(pull_request) if self._is_ours(each, marker)), None)
        needs = "pull-requests: write"
        if ours is not None:
            if ours["body"] == text:
                return None
            self._ask("PATCH", f"{self._repository}/issues/comments/{ours['id']}", {"body": text}, needs=needs)
            return "changed"
        if only_if_there:
            return None
        self._ask("POST", f"{self._repository}/issues/{pull_request}/comments", {"body": text}, needs=needs)
        return "written"

    def _comments(self, pull_request: int) -> Iterator[dict[str, Any]]:
        for page in range(1, MOST_PAGES + 1):
            path = f"{self._repository}/issues/{pull_request}/comments?per_page={PAGE}&page={page}"
            result = self._ask("GET", path, needs="pull-requests: write")
            if not isinstance(result, list):
                raise GitHubError(f"GitHub answered GET {path} with something other than a list")
            yield from result
            if len(result) < PAGE:
                return

    def _is_ours(self, comment: dict[str, Any], marker: str) -> bool:
        """True if a comment is ours: anybody can write the marker, but not as the account of this token."""
        user = comment.get("user") or {}
        if not str(comment.get("body") or "").startswith(marker):
            return False
        return user.get("login") == self._login() if self._login() else user.get("type") == "Bot"

    def _login(self) -> str | None:
        """The account of the token; None of an app, which may not ask, and whose comments are those of a bot."""
        if self._account is None:
            answer = self._send("GET", "/user")
            self._account = (answer.json().get("login") if answer.is_success else None,)
        return self._account[0]

    def _ask(self, method: str, path: str, body: Any = None, *, needs: str) -> Any:
        answer = self._send(method, path, body)
        if answer.is_success:
            try:
                return answer.json()
            except ValueError as error:
                raise GitHubError(f"GitHub answered {method} {path} with something other than JSON") from error
        message = _message(answer)
        help_ = f"; the workflow's token needs `permissions: {{{needs}}}`, and has none in a workflow of a fork"
        raise GitHubError(
            f"GitHub refused {method} {path.partition('?')[0]} ({answer.status_code} {message})"
            + (help_ if answer.status_code in {401, 403, 404} else "")
        )

    def _send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise GitHubError(
                f"{self._http.base_url} does not answer ({str(error) or type(error).__name__})"
            ) from error


def _message(answer: httpx.Response) -> str:
    try:
        said = answer.json()
    except ValueError:
        said = {}
    text = said.get("message") if isinstance(said, dict) else None
    return " ".join(str(text or answer.reason_phrase).split())[:200]
