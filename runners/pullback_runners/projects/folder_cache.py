"""Folders that are made once, kept for the next time, and removed when they have not been used for longest."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from pullback_runners.errors import BuildError, CacheError
from pullback_runners.projects.build_steps import step

_in_use: dict[Path, int] = {}
"""Locks of this process by their descriptors: what it has asked for stays until it ends."""

_only_kept = False


def cache_folder() -> Path:
    """The folder of checkouts and environments: the user's folder for caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "pullback" / "projects"


def make_no_more() -> None:
    """Refuse from now on, in this process, to make a folder that is not there."""
    global _only_kept  # noqa: PLW0603 - of the process
    _only_kept = True


def kept_folder(
    place: Path, make: Callable[[Path], None], most_bytes: int, is_sound: Callable[[Path], bool] = Path.is_dir
) -> Path:
    """The folder `place`, made by `make` if it is not there; its neighbours are to take no more than so many bytes.

    A folder that was not finished, or that is not sound any more, is made again. Processes wait for one that makes the same folder.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place not in _in_use:
            _in_use[place] = os.open(_beside(place, ".lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lock = _in_use[place]
        finished = _beside(place, ".bytes")
        _take(lock, fcntl.LOCK_SH)  # others that use a finished folder need not wait for each other
        if not (finished.exists() and is_sound(place)):
            if _only_kept:
                raise BuildError(
                    f"no earlier step has made {place.parent.name}/{place.name}, and nothing is built while measuring"
                )
            _take(lock, fcntl.LOCK_EX)
            try:
                if not (finished.exists() and is_sound(place)):
                    finished.unlink(missing_ok=True)
                    _make_whole(place, make)
                    finished.write_text(str(_bytes_of(place)), encoding="ascii")
            except BaseException:
                fcntl.flock(
                    lock, fcntl.LOCK_UN
                )  # others that want it try themselves, and do not wait for the end of this process
                raise
            fcntl.flock(lock, fcntl.LOCK_SH)
        with contextlib.suppress(OSError):  # in a sandbox it is read-only
            os.utime(finished)
        _remove_oldest(place.parent, most_bytes)
    except OSError as error:
        raise CacheError(
            f"the cache {place.parent} cannot be written ({error.strerror}); free some space, or set XDG_CACHE_HOME to another folder"
        ) from error
    return place


def _take(lock: int, kind: int) -> None:
    """Take a lock, and say it where another process has it."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        with step("waiting for another process that makes the same"):
            fcntl.flock(lock, kind)


def _make_whole(place: Path, make: Callable[[Path], None]) -> None:
    """Make a folder, or leave none."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        make(place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _remove_oldest(root: Path, most_bytes: int) -> None:
    """Remove the folders used longest ago, none of which a process uses, until the rest fits."""
    folders: list[tuple[float, int, Path]] = []
    for finished in root.glob("*.bytes"):
        with contextlib.suppress(FileNotFoundError):  # another process removes the oldest, too
            folders.append((finished.stat().st_mtime, _stated_bytes(finished), finished))
    total = sum(size for _, size, _ in folders)
    for _, size, finished in sorted(folders):
        place = finished.with_suffix("")
        if total <= most_bytes:
            return
        with contextlib.suppress(OSError), _beside(place, ".lock").open("ab") as lock:  # used, or read-only
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            total -= size
            finished.unlink(missing_ok=True)
            shutil.rmtree(place, ignore_errors=True)


def _stated_bytes(finished: Path) -> int:
    """The size in a file beside a folder; 0 of another content, which whoever builds here can write."""
    try:
        return int(finished.read_text(encoding="ascii"))
    except ValueError:
        return 0


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)


def _bytes_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
