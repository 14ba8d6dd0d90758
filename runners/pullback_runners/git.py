"""Git repositories, asked without running anything of theirs."""

import os
import subprocess
from pathlib import Path
from typing import IO

_TIMEOUT_S = 120
_OF_ONE_REPOSITORY = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE"),
        *("GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_CONFIG"),
    }
)
"""The variables that `git rev-parse --local-env-vars` lists, without those of settings of a command line, which git too keeps for a submodule."""


def variables_elsewhere() -> dict[str, str]:
    """The variables of this process without those of a repository that a hook of git runs in: they win over the folder that is named."""
    return {name: value for name, value in os.environ.items() if name not in _OF_ONE_REPOSITORY}


def git(
    repository: Path,
    *arguments: str,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    timeout_s: float = _TIMEOUT_S,
) -> "subprocess.CompletedProcess[bytes]":
    """Run git on a repository that may belong to another user, with nothing of that repository executed.

    It takes no lock to note what it saw: somebody works there meanwhile, whose commands would find it locked.
    """
    settings = (
        f"safe.directory={repository.resolve()}",
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "log.showSignature=false",
    )
    flags = [part for setting in settings for part in ("-c", setting)]
    return subprocess.run(  # noqa: S603 - git with our own arguments
        ["git", "--no-optional-locks", *flags, "-C", str(repository), *arguments],  # noqa: S607 - whichever git the user has
        check=False,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=timeout_s,
        # Nobody is there to answer when a remote asks for a password.
        env={"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **variables_elsewhere(), "GIT_TERMINAL_PROMPT": "0"},
    )


def output_of(repository: Path, *arguments: str) -> str | None:
    """The output of git without its last newline, or None if it refuses, does not end or is not there."""
    try:
        done = git(repository, *arguments)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Commits of old are in whatever their authors wrote.
    return done.stdout.decode(errors="replace").rstrip("\n") if done.returncode == 0 else None


def is_clone(folder: Path) -> bool:
    """True if git is installed and takes this folder for a repository with at least one commit."""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode == 0
    except FileNotFoundError:
        return False


def top_of(repository: Path) -> Path:
    """The folder at the top of a clone, of which any folder may be named; a bare clone, or none, is its own."""
    found = git(repository, "rev-parse", "--show-toplevel") if is_clone(repository) else None
    top = found.stdout.decode(errors="surrogateescape").removesuffix("\n") if found and found.returncode == 0 else ""
    return Path(top) if top else repository


def is_bare(repository: Path) -> bool:
    """True if a repository has no files checked out."""
    return is_clone(repository) and git(repository, "rev-parse", "--is-bare-repository").stdout.strip() == b"true"


def last_line(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The last line that a command wrote, or how it ended."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"git ended with status {done.returncode}"
