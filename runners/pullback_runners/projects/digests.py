"""Digests of what is measured of a commit: equal where nothing that is measured differs."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pullback_runners.projects.git import git, is_clone

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Of every repository; against it every file is a new one, and `diff-tree` takes the paths that `rev-list` takes."""
_BYTECODE = ":(exclude,glob)**/__pycache__/**"
_OF_AN_INSTALLATION = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def commit_digest(repository: Path, sha: str, files: Sequence[str]) -> str | None:
    """Of the names, modes and contents of a commit's measured files; None where git does not tell."""
    listed = git(repository, "diff-tree", "-r", "-z", "--no-renames", _EMPTY_TREE, sha, "--", *files, _BYTECODE)
    return hashlib.sha256(listed.stdout).hexdigest()[:16] if listed.returncode == 0 and listed.stdout else None


def checkout_digest(top: Path, files: Sequence[str]) -> str | None:
    """Of the commit that is checked out; None where measured files differ from it, or it is none."""
    if not is_clone(top):
        return None
    changed = git(top, "status", "--porcelain", "--untracked-files=all", "--", *files, _BYTECODE)
    return None if changed.stdout or changed.returncode else commit_digest(top, "HEAD", files)


def folder_digest(folder: Path) -> str:
    """Of everything in a folder that Python does not make by itself, nor pip to know its installations by."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and path.name not in _OF_AN_INSTALLATION:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
