"""The change that CI is about: the head and the base of its pull request, and the identifiers that GitHub needs."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_cli.usage_errors import RefusalError
from pullback_runners.git import output_of

_REVISION = re.compile(r"[~^@{]|^HEAD$")


@dataclass(frozen=True, slots=True)
class CiContext:
    """The head and the base as GitHub Actions or GitLab CI name them; None where they do not.

    `fork` is where the head comes from, where that is not the project's own repository; `repository` is GitHub's `owner/name`.
    """

    head: str | None = None
    base: str | None = None
    fork: str | None = None
    repository: str | None = None
    pull_request: int | None = None
    github_token: str | None = None
    github_api: str = "https://api.github.com"


def read_ci_context(environment: Mapping[str, str] | None = None) -> CiContext:
    """Read the environment. CI checks out a merge of a pull request with its base; its head is in the event."""
    variables = os.environ if environment is None else environment
    event = _event(variables.get("GITHUB_EVENT_PATH"))
    request = event.get("pull_request")
    request = request if isinstance(request, dict) else {}
    head = request.get("head")
    number = request.get("number")
    return CiContext(
        head=(head.get("sha") if isinstance(head, dict) else None)
        or variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")
        or None,
        base=variables.get("GITHUB_BASE_REF") or variables.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or None,
        fork=_fork_at_github(request, variables.get("GITHUB_REPOSITORY")) or _fork_at_gitlab(variables),
        repository=variables.get("GITHUB_REPOSITORY") or None,
        pull_request=number if isinstance(number, int) else None,
        github_token=variables.get("GITHUB_TOKEN", "").strip() or None,
        github_api=(variables.get("GITHUB_API_URL") or "https://api.github.com").rstrip("/"),
    )


def _event(path: str | None) -> Mapping[str, Any]:
    try:
        content = json.loads(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError):
        return {}  # no event that we can read is no event
    return content if isinstance(content, dict) else {}


def _fork_at_github(request: Mapping[str, Any], repository: str | None) -> str | None:
    """The repository that a pull request comes from, where it is another; one that is gone was another as well."""
    head = request.get("head")
    if not isinstance(head, dict) or "repo" not in head:
        return None
    name = head["repo"].get("full_name") if isinstance(head["repo"], dict) else None
    return None if name == repository is not None else str(name or "a fork that is gone")


def _fork_at_gitlab(environment: Mapping[str, str]) -> str | None:
    source, target = (environment.get(f"CI_MERGE_REQUEST_{each}PROJECT_PATH") for each in ("SOURCE_", ""))
    return source if source and source != target else None


@dataclass(frozen=True, slots=True)
class Head:
    """The commit that is checked, and the one that is checked out where that is another."""

    sha: str
    checked_out: str | None = None

    @property
    def remark(self) -> str | None:
        """A remark where another commit is checked out than the one that is checked."""
        if self.checked_out is None:
            return None
        return (
            f"Checked is {self.sha[:10]}, the head of the pull request; checked out is {self.checked_out[:10]}. Results that were "
            f"uploaded of {self.checked_out[:10]} are not those of the head: check out the head (`ref:` of actions/checkout)."
        )


def find_head(given: str | None, repository: Path, context: CiContext) -> Head:
    """The commit to check: as it was said, else the head of the pull request, else what is checked out."""
    if given is not None:
        return Head(_resolved(repository, given) or given)
    here = _resolved(repository, "HEAD")
    if context.head is not None:
        return Head(context.head, here if here not in {None, context.head} else None)
    if here is None:
        raise RefusalError(f"check: {repository} is no git checkout with commits; name the commit with --head")
    return Head(here)


def find_base(given: str | None, repository: Path, context: CiContext) -> str | None:
    """The base of the head, as the service knows it: a branch, or a hash."""
    if given is not None and _REVISION.search(given):  # a revision of this clone, `HEAD~1`, and no name for others
        result = _resolved(repository, given)
        if result is None:
            raise RefusalError(f"check: {repository} has no revision {given!r}; give --base a branch or a commit")
        return result
    return given or context.base


def _resolved(repository: Path, revision: str) -> str | None:
    output = output_of(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return output.strip() if output else None
