"""A subject: what a worker imports, and the Python that it runs on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Subject:
    """The files that are measured: those of a commit, or the installed engine where nothing is given."""

    paths: tuple[Path, ...] = ()
    """Folders that go in front of `sys.path`."""
    imports: tuple[str, ...] = ("pullback",)
    """Modules imported before any workload is; with `paths` they have to come from there."""
    top: Path | None = None
    """The folder that stands for the top of its repository; None for what is installed."""
    objects: Path | None = None
    """Folder for the object code of its programs, or None for the user's cache."""
    python: Path | None = None
    """The interpreter of its environment, or None for the one that runs the coordinator."""
    harness: Path | None = None
    """Folder with our packages alone, for an interpreter that does not have them."""
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Environment variables of its processes."""
    side: Path | None = None
    """The one folder that its processes write, where another commit is measured beside it in a sandbox (`sides.py`); None where they write as they may."""
    digest: str | None = field(default=None, compare=False)
    """Digest of the files by which two commits differ; None for files of no commit."""
    code: str | None = field(default=None, compare=False)
    """Digest of the installed files, including compiled parts; None if nothing was installed."""

    checkout: Path | None = field(default=None, compare=False)
    """The clone that a commit is of, nothing of which may be imported; None where its files are measured as they are."""
    hint: str = field(default="", compare=False)
    """A possible reason why a module of it cannot be imported, as the end of a sentence."""

    @property
    def has_engine(self) -> bool:
        """True if the engine itself is measured."""
        return "pullback" in self.imports

    @property
    def interpreter(self) -> tuple[Path | None, Path | None]:
        """The Python that it runs on, with our packages: members of one are forked from one process."""
        return self.python, self.harness

    def document(self) -> dict[str, Any]:
        """The subject as a worker's orders describe it."""
        return {
            "paths": [str(path) for path in self.paths],
            "imports": list(self.imports),
            "top": str(self.top) if self.top else None,
            "objects": str(self.objects) if self.objects else None,
            "side": str(self.side) if self.side else None,
        }


INSTALLED = Subject()
"""The engine that is installed beside the runners."""


def engine_subject(engine: Path) -> Subject:
    """The engine in a folder that holds the package `pullback`."""
    return Subject(paths=(engine,))
