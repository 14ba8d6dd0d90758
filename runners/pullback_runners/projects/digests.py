"""Digests of what is measured of a commit: equal where nothing that is measured differs."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

from pullback_runners.git import git, is_clone

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Of every repository; against it every file is a new one, and `diff-tree` takes the paths that `rev-list` takes."""
COMPILED_SOURCES = (
    *("*.c", "*.cc", "*.cpp", "*.cxx", "*.h", "*.hh", "*.hpp", "*.cu", "*.cuh", "*.f", "*.f90", "*.rs"),
    *(
        "*.pyx",
        "*.pxd",
        "*.pxi",
        "setup.cfg",
        "*CMakeLists.txt",
        "*.cmake",
        "*meson.build",
        "*Cargo.toml",
        "*Cargo.lock",
    ),
)
"""Patterns, as git reads them, of what compiled parts are made of, wherever it lies."""
_BYTECODE = ":(exclude,glob)**/__pycache__/**"
_OF_AN_INSTALLATION = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def commit_digest(repository: Path, sha: str, files: Sequence[str]) -> str | None:
    """Digest of the names, modes and contents of a commit's measured files, and of the targets of links among them; None if git cannot read them."""
    listed = _listed(repository, sha, files)
    followed: set[str] = set()
    while new := _led_to(repository, listed.stdout) - followed:
        followed |= new
        listed = _listed(repository, sha, [*files, *(f":(literal){place}" for place in sorted(followed))])
    return hashlib.sha256(listed.stdout).hexdigest()[:16] if listed.returncode == 0 and listed.stdout else None


def _listed(repository: Path, sha: str, files: Sequence[str]) -> CompletedProcess[bytes]:
    return git(repository, "diff-tree", "-r", "-z", "--no-renames", _EMPTY_TREE, sha, "--", *files, _BYTECODE)


def _led_to(repository: Path, listed: bytes) -> set[str]:
    """The places in a commit that symbolic links among its listed files lead to."""
    fields = listed.split(b"\0")
    results: set[str] = set()
    for about, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, blob, _ = about.split()
        if mode == b"120000":
            target = git(repository, "cat-file", "blob", blob.decode()).stdout
            place = os.path.normpath(os.path.join(os.path.dirname(name), target))  # noqa: PTH118, PTH120 - bytes
            if not place.startswith((b"/", b"..")):
                results.add(os.fsdecode(place))
    return results


def checkout_digest(top: Path, files: Sequence[str]) -> str | None:
    """Digest of the commit that is checked out; None if measured files differ from it, or there is no commit."""
    if not is_clone(top):
        return None
    changed = git(top, "status", "--porcelain", "--untracked-files=all", "--", *files, _BYTECODE)
    return None if changed.stdout or changed.returncode else commit_digest(top, "HEAD", files)


def folder_digest(folder: Path) -> str:
    """Digest of a folder without files that Python generates, or that pip writes to record installations."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and path.name not in _OF_AN_INSTALLATION:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
