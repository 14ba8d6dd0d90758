"""The `pullback.toml` that a commit is measured by, read without a checkout."""

import shutil
from pathlib import Path

from pullback_runners.errors import UsageError
from pullback_runners.git import git, is_bare
from pullback_runners.projects.checkouts import LARGEST_SETTINGS_BYTES, is_too_large, write_commit
from pullback_runners.projects.configuration import FILE, ProjectFile, parse_project, read_project


def project_of_commit(repository: Path, sha: str, scratch: Path) -> tuple[ProjectFile, Path | None]:
    """The project as a commit's own file says it, and where the files lie that it names: None where that is the commit.

    A commit that is older than the file is measured by the current one with its workloads: that of the files checked out,
    or of HEAD where there are none, whose files are written below `scratch`.
    """
    text = _text(repository, sha)
    if text is not None:
        return parse_project(text, repository), None
    if not is_bare(repository) and (repository / FILE).is_file():
        return read_project(repository / FILE), repository
    text = _text(repository, "HEAD")
    if text is None:
        raise UsageError(
            f"commit {sha[:10]} has no {FILE}, nor has HEAD of its repository; `pullback init` writes one, commit that"
        )
    shutil.rmtree(scratch, ignore_errors=True)  # an earlier step of the job may have written it
    write_commit(repository, "HEAD", scratch)
    return parse_project(text, scratch), scratch


def listed_submodules(repository: Path, sha: str) -> tuple[str, ...]:
    """The submodules that a commit needs, as its file lists them; none if the file cannot be read, which who builds it says."""
    try:
        text = _text(repository, sha) or _text(repository, "HEAD")
        return () if text is None else parse_project(text, repository).build.submodules
    except UsageError:
        return ()


def _text(repository: Path, revision: str) -> str | None:
    file = f"{revision}:{FILE}"
    if is_too_large(repository, file):
        raise UsageError(f"{FILE} of {revision[:10]} is larger than {LARGEST_SETTINGS_BYTES >> 10} KiB; shorten it")
    output = git(repository, "cat-file", "blob", file)
    return output.stdout.decode(errors="replace") if output.returncode == 0 else None
