"""Git repositories, asked without running anything of theirs."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from pullback_runners.tail import tail_of

_TIMEOUT_S = 120
_LOOK_S = 0.25
_FAREWELL_S = 5.0
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
    return subprocess.run(  # noqa: S603 - git with our own arguments
        _command(repository, arguments),
        check=False,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=timeout_s,
        env=_environment(),
    )


def watched_git(
    repository: Path, *arguments: str, watch: Callable[[], None], timeout_s: float
) -> "subprocess.CompletedProcess[bytes]":
    """Run git as `git` does, and call `watch` now and then; what that raises ends git and all it has started.

    Of what it writes the end of standard error is returned.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - git with our own arguments
            _command(repository, arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=_environment(),
            start_new_session=True,
        )
        try:
            status = _wait(process, watch, timeout_s)
        except BaseException:
            _end(process)
            raise
        return subprocess.CompletedProcess(process.args, status, b"", tail_of(errors))


def _wait(process: "subprocess.Popen[bytes]", watch: Callable[[], None], timeout_s: float) -> int:
    deadline = time.monotonic() + timeout_s
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(_LOOK_S, timeout_s))
        watch()
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(process.args, timeout_s)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its session, which may first remove files that are not whole."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_FAREWELL_S)


def _command(repository: Path, arguments: Sequence[str]) -> list[str]:
    settings = (
        f"safe.directory={repository.resolve()}",
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "log.showSignature=false",
    )
    flags = [part for setting in settings for part in ("-c", setting)]
    return ["git", "--no-optional-locks", *flags, "-C", str(repository), *arguments]


def _environment() -> dict[str, str]:
    # Nobody is there to answer when a remote asks for a password.
    return {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **variables_elsewhere(), "GIT_TERMINAL_PROMPT": "0"}


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
    output = git(repository, "rev-parse", "--show-toplevel") if is_clone(repository) else None
    top = output.stdout.decode(errors="surrogateescape").removesuffix("\n") if output and output.returncode == 0 else ""
    return Path(top) if top else repository


def is_bare(repository: Path) -> bool:
    """True if a repository has no files checked out."""
    return is_clone(repository) and git(repository, "rev-parse", "--is-bare-repository").stdout.strip() == b"true"


def last_line(done: "subprocess.CompletedProcess[bytes]") -> str:
    """The last line that a command wrote, or how it ended."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"git ended with status {done.returncode}"
