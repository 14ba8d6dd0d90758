"""Repositories whose commits an agent builds: its own clone, and those that its operator listed.

A folder of this machine is read where it is. Of an address there is a bare mirror in the agent's data folder, which gets the
commits that jobs name, by their full hashes. Commits of submodules that the project lists lie below its `modules/`, as in a
clone; their repositories have to be allowed too. No hook and no filter of a repository runs.
"""

import hashlib
import re
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

from pullback_runners.agent.errors import JobFailedError, PermanentError
from pullback_runners.git import git, is_clone, last_line, top_of, watched_git
from pullback_runners.projects.checkouts import submodule_name
from pullback_runners.projects.definitions import listed_submodules
from pullback_runners.sandbox.limits import DiskWatch, Limits

_FETCH_TIMEOUT_S = 1800
_ATTACHED = ("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false")
"""Settings by which a fetch ends only after the `git gc --auto` that it starts."""
_SHORT_SSH = re.compile(r"(?P<host>[^/:@]+@[^/:]+):(?P<path>(?!//).+)")
_CURRENT = "refs/heads/current"
"""The ref of a mirror for HEAD of its repository at the last fetch."""


class Repositories:
    """`own` is the clone for projects of which the service does not name the repository; `allowed` are addresses and folders."""

    def __init__(
        self, mirrors: Path, own: Path | None, allowed: Sequence[str] = (), limits: Limits | None = None
    ) -> None:
        self._mirrors = mirrors
        self._limits = limits or Limits()
        self._own = own if own is None else top_of(own).resolve()
        self._allowed = {_key(each) for each in (*allowed, *([] if own is None else [str(self._own)]))}
        for each in allowed:
            if "://" not in each and "@" not in each and not is_clone(Path(each)):
                raise PermanentError(
                    f"--allow {each}: no address, and no git repository with commits; name one of them"
                )

    def with_commits(self, address: str | None, shas: Sequence[str]) -> Path:
        """A repository that has some commits, which are fetched if need be; JobFailedError says why they cannot be had.

        A mirror has their submodules too, as far as the file of the first commit lists them.
        Another agent may have them, or may build what this one may not: none of these failures is the commit's.
        """
        if address is None:
            if self._own is None:
                raise _elsewhere(
                    "name the project's repository (`pullback project set`), or give the agent a clone (--repository)"
                )
            return self._with(self._own, "origin", shas)
        if not self.is_allowed(address):
            raise _elsewhere(
                f"start the agent with --allow {address}: it builds only repositories that its operator listed"
            )
        folder = Path(address)
        if folder.is_dir():
            return self._with(top_of(folder).resolve(), "origin", shas)
        mirrors = self._mirrors / f"{hashlib.sha256(_key(address).encode()).hexdigest()[:16]}.git"
        mirror = self._with(_bare(mirrors), address, shas)
        submodules = listed_submodules(mirror, shas[0])
        for sha in shas:
            self._fetch_submodules(mirror, address, sha, submodules)
        return mirror

    def is_allowed(self, address: str) -> bool:
        """True if the operator listed the repository, however its address is written."""
        return _key(address) in self._allowed

    def _fetch_submodules(self, repository: Path, address: str, sha: str, listed: Collection[str]) -> None:
        """Fetch what a commit pins of listed submodules, and of the submodules of these."""
        for path in listed:
            entry = git(repository, "ls-tree", "--full-tree", sha, "--", path).stdout.split()
            name = submodule_name(repository, sha, path) if entry[1:2] == [b"commit"] else None
            if name is None:
                continue  # a part of another submodule, or none of this commit, which its build says
            url = git(repository, "config", "--blob", f"{sha}:.gitmodules", "--get", f"submodule.{name}.url")
            source = resolved(url.stdout.decode(errors="replace").strip(), address)
            if not self.is_allowed(source):
                raise _elsewhere(f"start the agent with --allow {source}: submodule {path} comes from there")
            pinned = entry[2].decode()
            commit = self._with(_bare(repository / "modules" / name), source, [pinned], f"that of submodule {path}")
            inside = [each.removeprefix(f"{path}/") for each in listed if each.startswith(f"{path}/")]
            self._fetch_submodules(commit, source, pinned, inside)

    def _with(
        self, repository: Path, source: str, shas: Sequence[str], called: str = "the repository that is measured"
    ) -> Path:
        missing = [sha for sha in dict.fromkeys(shas) if not _holds(repository, sha)]
        if missing:
            # Names of their own keep commits that no branch has any more, and tell the next fetch what is there.
            wanted = [f"{sha}:refs/pullback/{sha}" for sha in missing] if source != "origin" else missing
            current = [f"+HEAD:{_CURRENT}"] if source != "origin" else []
            options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--end-of-options")
            fetched = self._fetched(repository, called, *options, source, *wanted, *current)
            if b"HEAD" in fetched.stderr:  # which in a bare repository may name a branch that nobody has pushed
                fetched = self._fetched(repository, called, *options, source, *wanted)
            lacking = [sha for sha in missing if not _holds(repository, sha)]
            if lacking:
                message = f" (git says: {_without_places(last_line(fetched))})" if fetched.returncode else ""
                raise _elsewhere(f"push commit {lacking[0][:10]} to {called}, from which it cannot be fetched{message}")
        return repository

    def _fetched(self, repository: Path, called: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        """Fetch, and let git tidy up, within the limits of a job on the disk; files that are not whole are removed from a mirror."""
        disk = DiskWatch(self._limits, repository)

        def watch() -> None:
            if (trouble := disk.trouble()) is not None:
                raise _elsewhere(f"see how large {called} is, and give the agent a larger disk (--data): {trouble}")

        try:
            return watched_git(repository, *_ATTACHED, "fetch", *arguments, watch=watch, timeout_s=_FETCH_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise _elsewhere(
                f"see whether the agent reaches {called}: git fetch did not end in {_FETCH_TIMEOUT_S} s"
            ) from error
        finally:
            if repository.is_relative_to(self._mirrors):  # nobody else writes there
                for part in repository.glob("objects/*/tmp_*"):
                    part.unlink(missing_ok=True)


def _bare(folder: Path) -> Path:
    """A bare repository in a folder, made if it is not there."""
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        branch = f"--initial-branch={_CURRENT.rpartition('/')[2]}"
        made = git(folder, "init", "--quiet", "--bare", "--template=", branch)
        if made.returncode != 0:
            raise _elsewhere(f"the agent cannot make a mirror of the repository ({_without_places(last_line(made))})")
    return folder


def resolved(address: str, above: str) -> str:
    """The address of a submodule, which may be told relative to that of the repository that has it."""
    if not address.startswith(("./", "../")):
        return address
    above, separator = above.rstrip("/"), "/"
    while address.startswith(("./", "../")):
        step, _, address = address.partition("/")
        if step == "..":
            cut = max(above.rfind("/"), above.rfind(":"))
            above, separator = above[:cut], above[cut]
    return f"{above}{separator}{address}"


def _elsewhere(remedy: str) -> JobFailedError:
    """A fault of this agent. The remedy comes first, for lists of jobs cut a sentence short."""
    return JobFailedError("infra", remedy, retryable=True)


def _holds(repository: Path, sha: str) -> bool:
    return git(repository, "cat-file", "-e", f"{sha}^{{commit}}").returncode == 0


def _key(address: str) -> str:
    """A key that is the same for every way to write one repository's address: `git@host:path` is short for `ssh://git@host/path`."""
    folder = Path(address)
    if folder.is_dir():
        return str(folder.resolve())
    if (short := _SHORT_SSH.fullmatch(address)) is not None:
        address = f"ssh://{short['host']}/{short['path'].lstrip('/')}"
    return address.rstrip("/").removesuffix(".git")


def _without_places(text: str) -> str:
    """Without folders and addresses: whoever may read a job is not to learn where its agent keeps things, or a remote's password."""
    return " ".join("…" if "/" in word else word for word in text.split())
