"""Whose numbers a run's are: the project and the commit that its report is filed under.

Pullback's, if its own workloads or the engine of a checkout are measured; those of the repository that the workloads lie in,
if they are somebody's own and the engine is the installed one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pullback_runners.commits import describe_commit
from pullback_runners.errors import UsageError
from pullback_runners.git import output_of

ENGINE_PROJECT = "pullback"


@dataclass(frozen=True)
class Attribution:
    """A project by name, and the commit; None where no repository knows of what was measured.

    `files` are those of the user's own workloads, by their paths in the repository.
    """

    project: str
    commit: Mapping[str, Any] | None
    files: tuple[str, ...] = ()


def belonging_of_engine(package: Path) -> Attribution:
    """Checkout that contains the folder of an engine's package; None for an installed one."""
    is_tracked = output_of(package, "ls-files", "--error-unmatch", "__init__.py") is not None
    return Attribution(ENGINE_PROJECT, describe_commit(package) if is_tracked else None)


def belonging_of_workloads(files: Sequence[Path], package: Path) -> Attribution | None:
    """Repository that contains the files of a user's workloads; None if it is the engine's own.

    A file that its repository ignores (an installed package below `.venv`) or that lies in none has a folder and no commit.
    """
    tops = {_repository(file): file for file in files}
    if len(tops) > 1:
        one, other = sorted(str(file) for file in tops.values())[:2]
        raise UsageError(
            f"{one} and {other} lie in two repositories, and a report is of one project and commit; run them one by one"
        )
    ((top, file),) = tops.items()
    if top is None:
        return Attribution(file.parent.name or ENGINE_PROJECT, None, tuple(each.name for each in files))
    if (
        top in package.resolve().parents
        and output_of(package, "ls-files", "--error-unmatch", "__init__.py") is not None
    ):
        return None
    commit = describe_commit(top)
    if commit is not None and any(output_of(top, "ls-files", "--error-unmatch", str(each)) is None for each in files):
        commit = {**commit, "dirty": True}  # it has not seen this file
    return Attribution(name_of_repository(top), commit, tuple(each.relative_to(top).as_posix() for each in files))


def _repository(file: Path) -> Path | None:
    folder = file.parent
    if output_of(folder, "check-ignore", "--quiet", str(file)) is not None:
        return None
    top = output_of(folder, "rev-parse", "--show-toplevel")
    return Path(top) if top else None


def origin_name(top: Path) -> str | None:
    """The name of a repository at its origin."""
    origin = output_of(top, "config", "--get", "remote.origin.url") or ""
    return origin.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2].strip() or None


def name_of_repository(top: Path) -> str:
    """The name of a repository at its origin, else its folder's."""
    return origin_name(top) or top.name
