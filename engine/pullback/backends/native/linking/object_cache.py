"""Object code kept on disk between processes, under a name that is a hash of all it depends on.

The folder is `$PULLBACK_CACHE_DIR`, else the platform's for caches of this user; `PULLBACK_CACHE=0` switches it off, and
`PULLBACK_CACHE_MIB` is how large it may grow (256). It is only ever a shortcut: whatever is wrong with it - no folder, no
space, no permission, a file cut short, a file of another user - is a miss, never an error. A file is

    pullback object 2 <SHA-256 of all that follows this line, in hex>
    {"name": ..., "imports": [...], "exports": [...], "text": <hash>, "choices": [...], "bytes": <length of the code>}
    <code>

and is believed only where hash, name and length hold and it belongs to this user (or to root, who can do anything anyway). Files
appear by renaming, so readers see none or a whole one; a crash may still leave less on disk, which the hash finds.
"""

import contextlib
import hashlib
import itertools
import json
import math
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pullback.backends.native.linking.machine_choices import Choice
from pullback.backends.native.linking.target import Target
from pullback.dataclass import dataclass

DEFAULT_LIMIT_MIB: Final = 256
SWEEP_EVERY: Final = 32  # objects kept between two looks at how large the folder is: the limit can be passed by so many
TOUCH_AFTER_S: Final = 3600  # an object's time of last use is this exact: a load mostly writes nothing
STALE_AFTER_S: Final = 3600  # a temporary file this old has lost its writer

_MAGIC: Final = b"pullback object 2 "
_ENDING: Final = ".object"
_UNFINISHED: Final = ".unfinished"
_HEADING_BYTES: Final = len(_MAGIC) + 64 + 1

_kept, _writes = itertools.count(), itertools.count()


@dataclass(frozen=True, slots=True)
class Object:
    """Relocatable code: it holds no address, only names."""

    code: bytes
    imports: tuple[str, ...]
    """The symbols that it calls from outside."""
    exports: tuple[str, ...]
    """The functions that can be found by name."""
    text_hash: str
    """The hash of the text that it was made of."""
    choices: tuple[Choice, ...] = ()
    """The choices made on this machine while the text was written."""


def name_of(recipe: str, target: Target, key: str, text: str) -> str:
    """The name of the object that a text becomes: a hash over all that decides on its bytes."""
    heading = repr((recipe, sys.platform, target.cpu, target.features, key))
    return hash_of(f"{heading}\n{text}")


def hash_of(text: str) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_checking() -> bool:
    """True if texts are always written, and compared with those that the objects on disk were made of."""
    return os.environ.get("PULLBACK_CACHE", "").strip() == "check"


def find(name: str) -> Object | None:
    """The object of a name, or None where there is none that is valid."""
    folder = cache_folder()
    if folder is None:
        return None
    path = folder / (name + _ENDING)
    try:
        content = _read(path)
    except OSError:
        return None
    return _parse(name, content)


def keep(name: str, compiled: Object) -> None:
    """Store an object under a name, in place of whatever is there."""
    folder = cache_folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        _write(folder, name, _serialized(name, compiled))
    if next(_kept) % SWEEP_EVERY == 0:
        sweep(folder, limit_bytes())


def cache_folder() -> Path | None:
    """The folder of objects; None if they are not kept. Read from the environment on each call."""
    if os.environ.get("PULLBACK_CACHE", "").strip() == "0":
        return None
    chosen = os.environ.get("PULLBACK_CACHE_DIR", "").strip()
    try:
        return (Path(chosen) if chosen else _platform_folder()) / "native"
    except RuntimeError:  # no home
        return None


def limit_bytes() -> int:
    """The limit for the size of all objects together."""
    try:
        mebibytes = float(os.environ.get("PULLBACK_CACHE_MIB", ""))
    except ValueError:
        mebibytes = DEFAULT_LIMIT_MIB
    if math.isnan(mebibytes):
        mebibytes = DEFAULT_LIMIT_MIB
    return int(min(max(mebibytes, 0) * 2**20, sys.maxsize))  # "inf" is a number, too


def sweep(folder: Path, limit: int) -> None:
    """Remove the objects used longest ago until the others fit the limit, and what writers left behind."""
    objects = []
    lost_before = time.time() - STALE_AFTER_S
    for path, facts in _files(folder):
        if path.suffix == _ENDING:
            objects.append((facts.st_mtime, facts.st_size, path))
        elif path.suffix == _UNFINISHED and facts.st_mtime < lost_before:
            _remove(path)
    excess = sum(size for _, size, _ in objects) - limit
    for _, size, path in sorted(objects):
        if excess <= 0:
            return
        _remove(path)
        excess -= size


def _platform_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pullback"
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "pullback" / "Cache"
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".cache") / "pullback"


# --- files --------------------------------------------------------------------------------------------------------------
def _read(path: Path) -> bytes:
    # Not to follow links, nor to wait for the other end of a pipe that was put here.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or not _is_trusted(facts):
            raise OSError("not an object of ours")
        content = file.read()
        if time.time() - facts.st_mtime > TOUCH_AFTER_S:
            with contextlib.suppress(OSError):
                os.utime(path)
    return content


def _is_trusted(facts: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True
    return facts.st_uid in {os.geteuid(), 0} and not facts.st_mode & stat.S_IWOTH


def _write(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = folder / f"{name}.{os.getpid()}.{next(_writes)}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(content)
        unfinished.replace(folder / (name + _ENDING))
    except OSError:
        _remove(unfinished)
        raise


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process removed it
                yield Path(entry.path), entry.stat(follow_symlinks=False)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


# --- their content ------------------------------------------------------------------------------------------------------
def _serialized(name: str, compiled: Object) -> bytes:
    facts = {
        "name": name,
        "imports": compiled.imports,
        "exports": compiled.exports,
        "text": compiled.text_hash,
        "choices": compiled.choices,
        "bytes": len(compiled.code),
    }
    content = json.dumps(facts).encode() + b"\n" + compiled.code
    return _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _parse(name: str, file: bytes) -> Object | None:
    heading, content = file[:_HEADING_BYTES], file[_HEADING_BYTES:]
    if heading != _MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n":
        return None
    facts_line, _, code = content.partition(b"\n")
    try:
        facts = json.loads(facts_line)
        if (facts["name"], facts["bytes"]) != (name, len(code)):
            return None
        imports, exports = tuple(facts["imports"]), tuple(facts["exports"])
        choices = tuple((name, argument, value) for name, argument, value in facts["choices"])
        return Object(code, imports=imports, exports=exports, text_hash=facts["text"], choices=choices)
    except (ValueError, KeyError, TypeError):  # whole, but written by another version
        return None
