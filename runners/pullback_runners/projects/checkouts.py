"""The files of a commit, in a folder of their own.

They are read out of the object store and not checked out as a worktree: nothing is registered in the user's repository, no hook,
no filter and no attribute of that repository takes part, and a read-only or bare clone is enough.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pullback_runners.errors import BuildError
from pullback_runners.projects.repositories import git, last_line

_LINK, _SUBMODULE, _EXECUTABLE = b"120000", b"160000", b"100755"


def write_commit(repository: Path, sha: str, target: Path) -> list[str]:
    """Write the files of a commit below `target` and return its submodules, which are empty folders.

    Links that lead out of it are left out.
    """
    listed = git(repository, "ls-tree", "-r", "-z", "--full-tree", sha)
    if listed.returncode != 0:
        raise BuildError(f"commit {sha[:10]} cannot be read from {repository} (git says: {last_line(listed)})")
    entries, submodules, links = [], [], {}
    for line in listed.stdout.split(b"\0")[:-1]:
        about, _, name = line.partition(b"\t")
        mode, _, blob = about.split()
        if name.startswith(b"/") or not {b"..", b".git"}.isdisjoint(name.lower().split(b"/")):
            raise BuildError(
                f"commit {sha[:10]} names a file {name.decode(errors='replace')}, which git does not check out"
            )
        if mode == _SUBMODULE:
            submodules.append(name.decode(errors="replace"))  # to be shown
            (target / os.fsdecode(name)).mkdir(parents=True, exist_ok=True)
        else:
            entries.append((mode, blob, target / os.fsdecode(name)))
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as contents:
        wanted.write(b"\n".join(blob for _, blob, _ in entries))
        wanted.seek(0)
        git(repository, "cat-file", "--batch", stdin=wanted, stdout=contents.fileno())
        contents.seek(0)
        for mode, _, path in entries:
            heading = contents.readline().split()
            if len(heading) != 3:
                raise BuildError(
                    f"commit {sha[:10]} is not whole in {repository}: it lacks {path.relative_to(target)}; "
                    "git fetch --refetch brings it"
                )
            content = contents.read(int(heading[2]))
            contents.read(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            if mode == _LINK:
                links[path] = os.fsdecode(content)
            else:
                path.write_bytes(content)
                if mode == _EXECUTABLE:
                    path.chmod(0o755)
    _link(links, target)
    return submodules


def copy_files(repository: Path, target: Path) -> None:
    """Copy the files as they are, uncommitted ones included, so that an editor that saves meanwhile changes no measurement."""
    listed = git(repository, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    links = {}
    try:
        for name in listed.stdout.split(b"\0")[:-1]:
            source, path = repository / os.fsdecode(name), target / os.fsdecode(name)
            if source.is_symlink():
                path.parent.mkdir(parents=True, exist_ok=True)
                links[path] = str(source.readlink())
            elif source.is_file():  # neither a submodule nor deleted
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, path)
        _link(links, target)
    except OSError as error:
        raise BuildError(f"the files of {repository} cannot be copied to {target}: {error}") from error


def _link(links: Mapping[Path, str], top: Path) -> None:
    """Make links, when all files are written, and remove those that lead out of `top`, be it through others."""
    for path, leads_to in links.items():
        path.symlink_to(leads_to)
    for path in links:
        if not Path(os.path.realpath(path)).is_relative_to(
            top.resolve()
        ):  # Path.resolve fails where links go in a circle
            path.unlink()
