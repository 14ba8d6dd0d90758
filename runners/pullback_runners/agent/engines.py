"""The engine of a commit, as files in a folder of our own.

Only `engine/` of the commit is taken: harness and workloads are the installed ones, so that two commits are measured
alike. It is read out of the object store with `git archive` rather than checked out as a worktree: nothing is
registered in the user's repository, no hook and no filter of that repository runs, a read-only clone is enough, and a
killed agent leaves nothing behind but its own folder.

A folder without git (a downloaded archive, or git not installed) offers one engine only, the files as they are. Their
identity is a hash of their content, which no commit of git has.
"""

import hashlib
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Protocol

from pullback_runners.agent.errors import JobFailedError
from pullback_runners.projects.repositories import git, is_clone, last_line, top_of

ENGINE = "engine"
_PACKAGE = Path("pullback") / "__init__.py"


class EngineSource(Protocol):
    """Where the engines of commits come from."""

    is_exact: bool
    """Whether what is extracted is the commit itself, rather than files that only name themselves."""

    def extract(self, sha: str, target: Path) -> Path:
        """Put the engine of a commit below `target` and return its folder; JobFailedError when it cannot be had."""


class GitEngines:
    """Engines out of a clone."""

    is_exact = True

    def __init__(self, repository: Path) -> None:
        self.repository = top_of(repository)  # below it git takes the engine's path for one relative to the folder

    def extract(self, sha: str, target: Path) -> Path:
        """Read `engine/` of the commit out of the object store."""
        if not self._holds(f"{sha}^{{commit}}"):
            fetched = git(self.repository, "fetch", "--quiet", "--no-tags", "--recurse-submodules=no", "origin", sha)
            if not self._holds(f"{sha}^{{commit}}"):
                # Another clone may have it, and this one may soon: the commit is not to blame. The remedy comes first, for
                # lists of jobs cut a sentence short.
                said = f" (git says: {_without_places(last_line(fetched))})" if fetched.returncode else ""
                raise JobFailedError(
                    "infra",
                    f"push commit {sha[:10]} to the origin of the clone that measures, which lacks it and cannot fetch it{said}",
                    retryable=True,
                )
        if not self._holds(f"{sha}:{ENGINE}"):
            raise JobFailedError("build", f"commit {sha} has no {ENGINE}/ folder")
        with tempfile.TemporaryFile() as archive:
            done = git(self.repository, "archive", "--format=tar", sha, ENGINE, stdout=archive.fileno())
            if done.returncode != 0:
                raise JobFailedError(
                    "infra",
                    f"the {ENGINE}/ of commit {sha} cannot be written to {tempfile.gettempdir()} ({last_line(done)}); "
                    "free some space or set TMPDIR",
                    retryable=True,
                )
            archive.seek(0)
            with tarfile.open(fileobj=archive) as tar:
                _unpack_files(tar, target)
        return _checked(target / ENGINE, f"commit {sha}")

    def _holds(self, named: str) -> bool:
        return git(self.repository, "cat-file", "-e", named).returncode == 0


class FolderEngine:
    """The one engine of a folder without git."""

    is_exact = False

    def __init__(self, engine: Path) -> None:
        self.engine = engine

    def extract(self, sha: str, target: Path) -> Path:  # noqa: ARG002 - the files are used where they are
        """Return the folder itself, if the commit asked for is its content."""
        if sha != content_hash(self.engine):
            # As of a clone without it: another agent may have the commit.
            raise JobFailedError(
                "infra",
                f"{self.engine} is not under git and its files are not those of {sha}; give a clone instead",
                retryable=True,
            )
        return _checked(self.engine, f"folder {self.engine}")


def engine_source(repository: Path) -> EngineSource:
    """Choose by what the folder is: a git clone, or a folder with an engine in it."""
    if is_clone(repository):
        return GitEngines(repository)
    nested = repository / ENGINE
    return FolderEngine(nested if (nested / _PACKAGE).is_file() else repository)


def content_hash(engine: Path) -> str:
    """Forty hexadecimal digits that stand for the Python files of an engine; as long as a commit's, equal to none."""
    digest = hashlib.sha256(b"pullback engine files\0")
    for path in sorted(engine.rglob("*.py")):
        digest.update(path.relative_to(engine).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:40]


def _unpack_files(tar: tarfile.TarFile, target: Path) -> None:
    """Write regular files only: an engine needs no links, and a link could lead anywhere.

    Python's own extraction filters do the same from 3.11.4 on; Debian 12 has 3.11.2.
    """
    for member in tar:
        path = target / member.name
        if member.isfile() and target.resolve() in path.resolve().parents and (content := tar.extractfile(member)):
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)


def _checked(engine: Path, what: str) -> Path:
    if not (engine / _PACKAGE).is_file():
        raise JobFailedError("build", f"{what} has no {ENGINE}/{_PACKAGE}")
    return engine


def _without_places(text: str) -> str:
    """Without folders and addresses: whoever may read a job is not to learn where its agent keeps things, or a remote's password."""
    return " ".join("…" if "/" in word else word for word in text.split())
