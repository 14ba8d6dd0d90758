"""Excerpts of `git log` that are sent to the service, of commits and of a branch. The clone is never changed."""

import subprocess
from pathlib import Path
from typing import Any

from pullback_runners.commits import FIELDS, read_fields
from pullback_runners.git import git, output_of


def reason_of(folder: Path, *arguments: str) -> str:
    """The error message of a git command."""
    try:
        message = git(folder, *arguments).stderr.decode(errors="replace").strip()
    except (OSError, subprocess.SubprocessError):
        message = ""
    return (message or "git failed").splitlines()[0]


def first_parents(folder: Path, revision: str, most: int) -> list[dict[str, Any]] | None:
    """Commits from a revision back along first parents, newest first; where the clone is cut off, so is the list."""
    output = output_of(
        folder,
        "log",
        "-z",
        "--first-parent",
        f"--max-count={most}",
        f"--format={FIELDS}",
        "--end-of-options",
        revision,
        "--",
    )
    if output is None:
        return None
    cut_off = _cut_off(folder)
    commits = [read_fields(each) for each in output.split("\0")[:-1]]
    for each in commits:
        if each["sha"] in cut_off:
            del each["parents"]  # git shows the last commit of a shallow clone without parents, which it has
    return commits


def _cut_off(folder: Path) -> set[str]:
    """Commits at which a shallow clone ends."""
    place = (output_of(folder, "rev-parse", "--git-path", "shallow") or "").strip()
    file = folder / place
    return set(file.read_text().split()) if place and file.is_file() else set()
