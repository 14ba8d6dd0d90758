"""The files of a commit, in a folder of their own, with those of the submodules that its project lists.

They are read out of the object store and not checked out as a worktree: nothing is registered in the user's repository, no hook,
no filter and no attribute of that repository takes part, and a read-only or bare clone is enough.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from pullback_runners.errors import BuildError
from pullback_runners.git import git, last_line
from pullback_runners.projects.configuration import FILE

LARGEST_SETTINGS_BYTES = 256 << 10
"""The most that a file of a commit may have which agents read outside of its sandbox."""

_LINK, _SUBMODULE, _EXECUTABLE = b"120000", b"160000", b"100755"


def write_commit(repository: Path, sha: str, target: Path, submodules: Collection[str] = ()) -> list[str]:
    """Write the files of a commit below `target`, with those of listed submodules, and return those that are empty folders.

    Links that lead out of it are left out.
    """
    missing = set(submodules)
    empty = []
    waiting = [("", repository, sha)]
    while waiting:
        prefix, source, revision = waiting.pop()
        for name, pinned in _write_files(source, revision, target / prefix):
            path = f"{prefix}{name}"
            if path not in missing:
                empty.append(path)
                continue
            missing.remove(path)
            result = submodule_repository(source, revision, name)
            if result is None or git(result, "cat-file", "-e", f"{pinned}^{{commit}}").returncode != 0:
                raise BuildError(
                    f"commit {pinned[:10]} of submodule {path}, which {FILE} lists, is not in this clone; "
                    f"`git submodule update --init {path}` brings it"
                )
            waiting.append((f"{path}/", result, pinned))
    if missing:
        raise BuildError(f"it has no submodule {min(missing)}, which {FILE} names in [build] submodules")
    return sorted(empty)


def submodule_repository(repository: Path, sha: str, path: str) -> Path | None:
    """The folder of a submodule's commits in a clone, or in a mirror; None if there is none."""
    if (repository / path / ".git").exists():
        return repository / path
    name = submodule_name(repository, sha, path)
    if name is None:
        return None
    folder = git(repository, "rev-parse", "--absolute-git-dir").stdout.decode(errors="surrogateescape").strip()
    return stored if (stored := Path(folder) / "modules" / name).is_dir() else None


def is_too_large(repository: Path, file: str) -> bool:
    """True if a file of a commit, as `REVISION:NAME`, is there and larger than settings may be."""
    size = git(repository, "cat-file", "-s", file)
    return size.returncode == 0 and int(size.stdout) > LARGEST_SETTINGS_BYTES


def submodule_name(repository: Path, sha: str, path: str) -> str | None:
    """The name that a commit's .gitmodules gives to the submodule at a path, which is that of a folder; None if it gives none."""
    if is_too_large(repository, f"{sha}:.gitmodules"):
        return None
    listed = git(
        repository, "config", "--blob", f"{sha}:.gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$"
    )
    for entry in listed.stdout.decode(errors="replace").split("\0"):
        key, _, value = entry.partition("\n")
        name = key.removeprefix("submodule.").removesuffix(".path")
        if value == path and ".." not in Path(name).parts and not Path(name).is_absolute():
            return name
    return None


def _write_files(repository: Path, sha: str, target: Path) -> list[tuple[str, str]]:
    """Write a commit's own files and return its submodules, by path and commit."""
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
            submodules.append((os.fsdecode(name), blob.decode()))
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


def copy_files(repository: Path, target: Path, submodules: Collection[str] = ()) -> None:
    """Copy the files as they are, uncommitted ones included, so that an editor that saves meanwhile changes no measurement."""
    for each in submodules:
        refuse_absent_submodule(repository, each)
        copy_files(repository / each, target / each)
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


def refuse_absent_submodule(repository: Path, path: str) -> None:
    """Refuse a submodule that a project lists and that its clone does not have."""
    if not (repository / path / ".git").exists():
        raise BuildError(
            f"submodule {path}, which {FILE} lists, is not checked out; `git submodule update --init {path}` does that"
        )


def _link(links: Mapping[Path, str], top: Path) -> None:
    """Make links, when all files are written, and remove those that lead out of `top`, be it through others."""
    for path, leads_to in links.items():
        path.symlink_to(leads_to)
    for path in links:
        if not Path(os.path.realpath(path)).is_relative_to(
            top.resolve()
        ):  # Path.resolve fails where links go in a circle
            path.unlink()
