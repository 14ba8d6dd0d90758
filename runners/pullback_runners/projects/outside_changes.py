"""Files outside of a commit's folder that its build changed: the next commit would be measured with them.

Watched are the packages of the environment, which commits share, and the clone that the commit is of.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pullback_runners.git import git

_MOST_NAMED = 3

Files = Mapping[str, object]


def seen(packages: Path, clone: Path) -> Files:
    """The files there now, by path; without bytecode, which Python writes by itself."""
    results: dict[str, object] = dict(_files_below(packages))
    status = git(clone, "status", "--porcelain", "-z", "--untracked-files=all")
    for line in status.stdout.decode(errors="replace").split("\0"):
        path = clone / line[3:]
        if line and "__pycache__" not in path.parts:
            results[str(path)] = (line[:2], path.stat().st_mtime_ns if path.is_file() else None)
    return results


def _files_below(folder: Path | str) -> Iterator[tuple[str, object]]:
    """Files with time and size, where they can be read; environments hold tens of thousands, for which pathlib takes four times as long."""
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files_below(entry.path)
            elif entry.is_file():
                about = entry.stat()
                yield entry.path, (about.st_mtime_ns, about.st_size)


def changed(before: Files, after: Files) -> list[str]:
    """The paths that differ, the first few by name."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    more = [f"{len(paths) - _MOST_NAMED} more"] if len(paths) > _MOST_NAMED else []
    return [*paths[:_MOST_NAMED], *more]
