"""Requirements files of a commit: the files that they include, and what of the commit itself they install from."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pullback_runners.errors import BuildError

_INCLUDES = re.compile(r"(?:-r|-c|--requirement|--constraint)[\s=]*([^\s#]+)")
_LOCAL = re.compile(r"(?:(?:-e|--editable)[\s=]*)?(\.{1,2}(?:/[^\s;#\[]*)?)(?:\[[^\]]*\])?\s*(?:[;#].*)?")
_OF_DEPENDENCIES = ("pyproject.toml", "setup.py", "setup.cfg")


def requirement_files(file: Path) -> list[Path]:
    """A requirements file, and those that it includes by `-r` or constrains itself by with `-c`."""
    results = [file]
    for each in results:  # which grows meanwhile
        for line in _lines_of(each):
            named = _INCLUDES.match(line)
            inner = Path(os.path.normpath(each.parent / named[1])) if named else each
            if inner not in results and inner.is_file():
                results.append(inner)
    return results


def local_files(file: Path, top: Path) -> list[Path]:
    """Files of a commit that its requirements install from: wheels, and those that say what the project itself requires.

    Another folder of it is refused: commits share environments, and would have that of the first one.
    """
    results: list[Path] = []
    for each in requirement_files(file):
        for place in local_places(each.name, _lines_of(each), file.parent, top):
            results += [place] if place.is_file() else [place / part for part in _OF_DEPENDENCIES]
    return [each for each in results if each.is_file()]


def local_places(name: str, lines: Iterable[str], folder: Path, top: Path) -> list[Path]:
    """The places in a commit that lines of requirements install from; another folder of it than its top is refused, as above."""
    results = []
    for line in lines:
        named = _LOCAL.fullmatch(line)
        if named is None:
            continue
        place = Path(os.path.normpath(folder / named[1]))
        if place.is_dir() and place != Path(os.path.normpath(top)):
            remedy = (
                "make it a member of the workspace and name it in [build] path"
                if name == "uv.lock"
                else "leave it out there, name it in [build] path, and what it requires in the file"
            )
            raise BuildError(
                f"{name} installs {named[1]}, a folder of the commit, into an environment that commits share; {remedy}"
            )
        results.append(place)
    return results


def _lines_of(file: Path) -> Iterator[str]:
    """The lines of a requirements file; none of other kinds of files."""
    if file.is_file() and file.name not in {"pyproject.toml", "uv.lock"}:
        yield from map(str.strip, file.read_text(encoding="utf-8", errors="replace").splitlines())
