"""Caches of jobs in sandboxes: folders that the agent kept from earlier jobs, read-only in the cache of a step.

A step of a job writes to a cache of its own (projects/folder_cache.py). After its last process has ended the agent keeps some folders of it:
the environment of one commit after the step that makes it, and the build of the one commit that was built. The rest, object code included, is removed.

A step that makes an environment runs what it installs: code of the commit, where its requirements name the commit or a wheel in it. That code can
leave environments under names of others, of which no environment is kept yet, and they are kept as well. One that is kept is never replaced.

Each kept folder has a seal: an HMAC over the names, types, sizes and times of its files, with a key that jobs cannot read. A process cannot set the
change time (ctime) of a file. A folder that was modified or added by anybody else is removed instead of shown.
"""

import hmac
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

ENVIRONMENTS = {kind: re.compile(r"[0-9a-f]{16}") for kind in ("environments", "backends", "harnesses")}
"""The kinds of folders that a step which makes an environment may leave, with patterns of their names."""
MOST_BYTES = {"environments": 20 << 30, "backends": 2 << 30, "harnesses": 1 << 30, "commits": 5 << 30}
_LEAST_BYTES = 4096
"""The size that an empty file counts for: it takes an inode and a name."""
_INNER = ("pullback", "projects")


def build_of(sha: str) -> Mapping[str, "re.Pattern[str]"]:
    """The kinds and names of folders that a step which builds a commit may leave."""
    return {"commits": re.compile(re.escape(sha) + r"-[0-9a-f]{16}")}


def remove_tree(path: Path) -> None:
    """Remove a folder that a job wrote, of any depth and with any permissions: shutil.rmtree fails on very deep trees."""
    if not _succeeds("rm", "-rf", "--", str(path)):
        _succeeds("chmod", "-R", "u+rwX", "--", str(path))  # it has folders that not even their owner may enter
        _succeeds("rm", "-rf", "--", str(path))


def bytes_of_tree(path: Path) -> int:
    """The disk space of a folder that a job wrote, as far as it can be read."""
    found = subprocess.run(["du", "-sk", "--", str(path)], check=False, capture_output=True, text=True)  # noqa: S603, S607
    return int(found.stdout.partition("\t")[0] or 0) * 1024


def _succeeds(*command: str) -> bool:
    quiet = subprocess.DEVNULL
    return subprocess.run(command, check=False, stdout=quiet, stderr=quiet).returncode == 0  # noqa: S603 - a path of ours


@dataclass(frozen=True)
class Store:
    """The folders that an agent kept from jobs of one project."""

    place: Path
    """The path at which jobs see them, from any root: environments contain their own path."""
    roots: Sequence[Path]
    """The root of the project's own commits, then for a job of a fork that of forks; new folders go into the last."""
    key: bytes = field(repr=False)

    def shown(self, shas: Sequence[str]) -> list[tuple[Path, Path]]:
        """The folders that a job of some commits can see: each path, and its path in the cache."""
        wanted = dict(ENVIRONMENTS)
        builds = re.compile("|".join(pattern.pattern for sha in shas for pattern in build_of(sha).values()))
        results: dict[Path, Path] = {}
        for root in self.roots:
            for kind, pattern in (wanted | {"commits": builds}).items():
                folder = root.joinpath(*_INNER, kind)
                for size in sorted(folder.glob("*.bytes")):
                    path = size.with_suffix("")
                    if not pattern.fullmatch(path.name):
                        continue
                    if not self._is_sealed(path):
                        self._remove(path)
                        continue
                    for each in (path, size):
                        results.setdefault(self.place.joinpath(*_INNER, kind, each.name), each)
        return [(path, place) for place, path in results.items()]

    def take(self, own: Path, kinds: Mapping[str, "re.Pattern[str]"], shown: Sequence[tuple[Path, Path]]) -> None:
        """Keep finished folders of some kinds from the cache of an ended step, and remove the rest of that cache."""
        known = {place.name for _, place in shown}
        taken = []
        for kind, pattern in kinds.items():
            folder = self.roots[-1].joinpath(*_INNER, kind)
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            for descriptor, name in _finished(own, kind):
                if pattern.fullmatch(name) and name not in known:
                    self._remove(folder / name)
                    os.rename(name, folder / name, src_dir_fd=descriptor)
                    taken.append(folder / name)
        remove_tree(own)  # before the seals: removes hard links that it shares with kept folders
        for kept in taken:
            with suppress(OSError):
                mac, total = self._mac(kept)
                _beside(kept, ".seal").write_text(mac, encoding="ascii")
                _beside(kept, ".bytes").write_text(str(total), encoding="ascii")
        for kind in kinds:
            self._remove_oldest(self.roots[-1].joinpath(*_INNER, kind), MOST_BYTES[kind])

    def _is_sealed(self, path: Path) -> bool:
        try:
            return hmac.compare_digest(_beside(path, ".seal").read_text(encoding="ascii"), self._mac(path)[0])
        except (OSError, ValueError):
            return False

    def _mac(self, path: Path) -> tuple[str, int]:
        """The seal of a folder, and its size in bytes."""
        mac, total = hmac.new(self.key, str(path).encode(), sha256), 0
        waiting = [path]
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in sorted(entries, key=lambda each: each.name):
                    about = entry.stat(follow_symlinks=False)
                    facts = (entry.path, about.st_mode, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
                    mac.update(repr(facts).encode() + b"\0")
                    if stat.S_ISDIR(about.st_mode):
                        waiting.append(Path(entry.path))
                    total += max(about.st_size, _LEAST_BYTES)
        return mac.hexdigest(), total

    def _remove(self, path: Path) -> None:
        for ending in (".seal", ".bytes"):
            _beside(path, ending).unlink(missing_ok=True)
        remove_tree(path)

    def _remove_oldest(self, folder: Path, most_bytes: int) -> None:
        by_age = sorted(folder.glob("*.bytes"), key=lambda path: path.stat().st_mtime, reverse=True)
        total = 0
        for size in by_age:
            total += int(size.read_text(encoding="ascii"))
            if total > most_bytes and size != by_age[0]:
                self._remove(size.with_suffix(""))


def secret_key(data: Path) -> bytes:
    """The key of an agent's seals, made at the first use."""
    file = data / "cache.key"
    if not file.exists():
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:  # noqa: PTH123 - Path.open knows no mode
            new.write(os.urandom(32))
    return file.read_bytes()


def own_folder(folder: Path, gid: int | None) -> None:
    """Make a folder that only the agent writes and jobs read; one with another owner, from earlier releases, is replaced."""
    if folder.exists() and folder.stat().st_uid != os.geteuid():
        remove_tree(folder)
    folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    if gid is not None:
        os.chown(folder, -1, gid)


def _finished(own: Path, kind: str) -> Iterator[tuple[int, str]]:
    """Finished folders of a kind: a descriptor of their parent, and their name; none if the path has a symbolic link."""
    descriptor = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for part in (*_INNER, kind):
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError:
                return
            os.close(descriptor)
            descriptor = inner
        names = os.listdir(descriptor)  # noqa: PTH208 - of a descriptor
        for name in sorted(each.removesuffix(".bytes") for each in names if each.endswith(".bytes")):
            with suppress(OSError):
                if stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                    yield descriptor, name
    finally:
        os.close(descriptor)


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)
