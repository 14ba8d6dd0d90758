"""Commits made ready to be measured: their files, built, and the environment that they run in."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pullback_runners.commits import describe_commit
from pullback_runners.errors import BuildError, CacheError
from pullback_runners.git import git
from pullback_runners.measurement.sides import make_side
from pullback_runners.measurement.subject import Subject
from pullback_runners.progress import Progress, ignore_progress
from pullback_runners.projects.backends import backend_for, make_backend, variables_for
from pullback_runners.projects.build_steps import building
from pullback_runners.projects.checkouts import copy_files, refuse_absent_submodule, write_commit
from pullback_runners.projects.configuration import Build, ProjectFile, find_project
from pullback_runners.projects.digests import COMPILED_SOURCES, checkout_digest, commit_digest, folder_digest
from pullback_runners.projects.environments import (
    OWN,
    Environment,
    built_against,
    installer,
    make_environment,
    own_variables,
    run_logged,
)
from pullback_runners.projects.folder_cache import cache_folder, kept_folder
from pullback_runners.projects.outside_changes import changed, seen
from pullback_runners.projects.requirements import requirement_files

MOST_BYTES = 5 << 30
"""The most that the files of all commits may take, with what was built of them."""

_FILES, _INSTALLED, _OBJECTS, _OUTSIDE, _EMPTY = "files", "installed", "objects", "outside", "empty"

_OF_COMPILERS = (
    *("CC", "CXX", "FC", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "FFLAGS", "LDFLAGS", "ARCHFLAGS", "RUSTFLAGS"),
    *("CMAKE_ARGS", "CMAKE_BUILD_TYPE", "SKBUILD_CMAKE_ARGS", "SKBUILD_CMAKE_BUILD_TYPE"),
)
"""Variables by which the same files become another program."""

Commit = Mapping[str, Any]
"""The commit object of a report."""


@dataclass(frozen=True)
class BuiltCommit:
    """A commit that can be measured."""

    commit: Commit
    subject: Subject
    environment: Environment
    files: Path
    """The folder that holds its files."""
    outside: tuple[str, ...] = ()
    """Files that its build changed outside of its folder."""

    def warning(self) -> str | None:
        """A sentence on what its build changed elsewhere."""
        if not self.outside:
            return None
        name = self.commit["sha"][:10] if self.commit else self.files.name
        return (
            f"while {name} was built, files changed outside of its folder, with which other commits are measured: "
            f"{', '.join(self.outside)}; let [build] commands write below the top of the commit alone"
        )

    def on_side(self, folder: Path) -> "BuiltCommit":
        """The commit with this new folder as its side in a comparison: nothing else is written by what runs its code."""
        make_side(str(folder))
        objects = None if self.subject.objects is None else folder / "objects"
        return replace(self, subject=replace(self.subject, side=folder, objects=objects))

    def compile_bytecode(self) -> None:
        """Compile its modules where it lies, which those that import it from a read-only folder cannot."""
        command = [str(self.environment.python), "-m", "compileall", "-q", *map(str, self.subject.paths)]
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - a Python; what cannot be compiled says so where it is imported

    def document(self) -> dict[str, Any]:
        """The preparation of a subject as a report describes it."""
        return {**self.environment.document(), "outside": list(self.outside)}


def build_subject(
    project: ProjectFile, repository: Path, commit: Commit, on_progress: Callable[[Progress], None] = ignore_progress
) -> BuiltCommit:
    """Build a commit as the project's file says, or take it as it was built before; BuildError says why it cannot be had."""
    sha = commit["sha"]

    def make(folder: Path) -> None:
        empty = write_commit(repository, sha, folder / _FILES, project.build.submodules)
        (folder / _EMPTY).write_text("\n".join(empty), encoding="utf-8", errors="replace")
        try:
            _build(project, folder)
        except BuildError as error:
            raise BuildError(f"{error}{said_of_empty(empty)}", error.log) from error

    with _said_of(f"commit {sha[:10]}"), building(sha[:10], on_progress):
        name = f"{sha}-{_way_of(project, repository, sha)}"
        folder = kept_folder(cache_folder() / "commits" / name, make, MOST_BYTES)
        digest = commit_digest(repository, sha, files_of(project.build, folder / _FILES))
        return _built(project, commit, folder, digest)


@contextmanager
def _said_of(what: str) -> Iterator[None]:
    """Name what cannot be built in the error that says why; a cache that cannot be written is nothing of it."""
    try:
        yield
    except CacheError:
        raise
    except BuildError as error:
        raise BuildError(f"{what} cannot be built: {error}", error.log) from error


def _way_of(project: ProjectFile, repository: Path, sha: str) -> str:
    """A digest of all that makes another program of the files of a commit."""
    way = [repr(project.build), repr(sorted(project.environment.items()))]
    if is_built(project.build):
        way += [f"{name}={os.environ[name]}" for name in _OF_COMPILERS if name in os.environ]
        way += built_against(project.build)
        way += _todays_requirements(project, repository, sha)
    return sha256(repr(way).encode()).hexdigest()[:16]


def _todays_requirements(project: ProjectFile, repository: Path, sha: str) -> list[str]:
    """Digests of the requirements files that a commit lacks: it is built against the current ones, which change without it."""
    absent = [
        project.top / name
        for name in project.build.requirements
        if git(repository, "cat-file", "-e", f"{sha}:{name}").returncode != 0
    ]
    parts = [part for file in absent for part in requirement_files(file) if part.is_file()]
    return [sha256(part.read_bytes()).hexdigest() for part in parts]


def make_environments(
    project: ProjectFile, repository: Path, commit: Commit, on_progress: Callable[[Progress], None] = ignore_progress
) -> None:
    """Make what a commit is built and measured in, and run nothing of it; BuildError says why it cannot be had."""
    short = commit["sha"][:10]
    with TemporaryDirectory() as folder, _said_of(f"commit {short}"), building(short, on_progress):
        files = Path(folder)
        write_commit(repository, commit["sha"], files, project.build.submodules)
        environment = make_environment(project.build, files, project.top, cache_folder() / "environments")
        if project.build.install == "wheel":
            make_backend(environment.python, files, {**own_variables(), **project.environment})
        _subject(project, (), environment, None)


def build_files(
    project: ProjectFile, commit: Commit, folder: Path, on_progress: Callable[[Progress], None] = ignore_progress
) -> BuiltCommit:
    """Copy the project's files as they are into a folder and build them there."""
    with _said_of(f"the files in {project.top}"), building(project.name, on_progress):
        copy_files(project.top, folder / _FILES, project.build.submodules)
        _build(project, folder)
        return _built(project, commit, folder, _digest_in_place(project))


def subject_of_files(
    project: ProjectFile,
    folder: Path,
    warn: Callable[[str], None],
    on_progress: Callable[[Progress], None] = ignore_progress,
) -> Subject:
    """The subject where no commit is named: the project's files where they are, if nothing has to be built.

    Else it is the commit that is checked out, built once; or a copy of the files in `folder`, if some of them are not committed.
    `warn` gets the sentence on what its build changed elsewhere.
    """
    build = project.build
    if not is_built(build):
        for each in build.submodules:
            refuse_absent_submodule(project.top, each)
        with building(project.name, on_progress):
            environment = make_environment(build, project.top, project.top, cache_folder() / "environments")
        paths = tuple(project.top / each for each in paths_of(build, project.top))
        return replace(_subject(project, paths, environment, None), top=project.top, digest=_digest_in_place(project))
    commit = describe_commit(project.top)
    if commit is None or commit["dirty"]:
        built = build_files(project, commit or {}, folder, on_progress)
    else:
        built = build_subject(project, project.top, commit, on_progress)
    if (warning := built.warning()) is not None:
        warn(warning)
    return built.subject


def engine_digest(package: Path) -> str | None:
    """Digest of an engine measured in place: of the commit if it is in a checkout, else of its files."""
    project = find_project(package)
    if project is None or not project.is_engine:
        return folder_digest(package)
    return _digest_in_place(project)


def _digest_in_place(project: ProjectFile) -> str | None:
    return checkout_digest(project.top, files_of(project.build, project.top))


def is_built(build: Build) -> bool:
    """True if something is made of the files of a commit before they are measured."""
    return bool(build.commands) or build.install != "path"


def paths_of(build: Build, files: Path) -> tuple[str, ...]:
    """The folders of a commit that go in front of `sys.path`."""
    return build.path or (("src",) if (files / "src").is_dir() else (".",))


def files_of(build: Build, files: Path) -> tuple[str, ...]:
    """The files and folders that make two commits differ. What is compiled may lie anywhere."""
    requirements = [each for name in build.requirements for each in requirement_files(files / name)]
    named = [each.relative_to(files).as_posix() for each in requirements if each.is_relative_to(files)]
    compiled = COMPILED_SOURCES if is_built(build) else ()
    usual = (*paths_of(build, files), *named, "pyproject.toml", "setup.py", *compiled)
    return tuple(dict.fromkeys([*(build.files or usual), *build.submodules]))


def said_of_empty(submodules: Sequence[str]) -> str:
    """A possible reason for the failure of a commit whose submodules are empty folders, as the end of a sentence."""
    if not submodules:
        return ""
    return f"; its submodules are empty folders: {', '.join(submodules)}; [build] submodules lists those that it needs"


def _build(project: ProjectFile, folder: Path) -> None:
    """Run the commands of a build on the files in a folder, and install them if that is asked for."""
    files = folder / _FILES
    build = project.build
    if not is_built(build):
        return
    python = make_environment(build, files, project.top, cache_folder() / "environments").python
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    variables = {**own_variables(), **project.environment, "PATH": path}
    packages = Path(_packages_of(python))
    before = seen(packages, project.top)
    for command in build.commands:
        run_logged(command, files, f"`{command}`", variables)
    if build.install == "wheel":
        what = ["--no-deps", "--target", str(folder / _INSTALLED), "."]
        if backend := backend_for(python, files, variables):
            python, variables = backend, variables_for(backend, variables)
            what = ["--no-build-isolation", *what]
        run_logged([*installer(python), *what], files, "building and installing it", variables)
    if outside := changed(before, seen(packages, project.top)):
        (folder / _OUTSIDE).write_text("\n".join(outside), encoding="utf-8", errors="replace")


@cache
def _packages_of(python: Path) -> str:
    """The folders of an interpreter's environment that hold its packages."""
    command = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - a Python


def _built(project: ProjectFile, commit: Commit, folder: Path, digest: str | None) -> BuiltCommit:
    files = folder / _FILES
    empty = (folder / _EMPTY).read_text(encoding="utf-8").splitlines() if (folder / _EMPTY).exists() else []
    environment = make_environment(project.build, files, project.top, cache_folder() / "environments")
    top = (folder / _INSTALLED if project.build.install == "wheel" else files).resolve()
    if project.build.install == "wheel":
        paths: tuple[Path, ...] = (top,)
    else:
        paths = tuple((files / each).resolve() for each in paths_of(project.build, files))
        if missing := [path for path in paths if not path.is_dir()]:
            raise BuildError(f"it has no {missing[0].relative_to(files.resolve())}/ folder{said_of_empty(empty)}")
    chosen = os.environ.get("PULLBACK_CACHE_DIR")  # an agent's, for one job
    subject = _subject(project, paths, environment, Path(chosen) / folder.name if chosen else folder / _OBJECTS)
    noted = folder / _OUTSIDE
    outside = tuple(noted.read_text(encoding="utf-8").splitlines()) if noted.exists() else ()
    code = folder_digest(folder / _INSTALLED) if project.build.install == "wheel" else None
    subject = replace(subject, top=top, digest=digest, code=code, hint=said_of_empty(empty), checkout=project.top)
    return BuiltCommit(commit, subject, environment, files, outside)


def _subject(project: ProjectFile, paths: tuple[Path, ...], environment: Environment, objects: Path | None) -> Subject:
    is_ours = environment == OWN
    return Subject(
        paths=paths,
        imports=project.build.imports,
        objects=objects if project.is_engine else None,
        python=None if is_ours else environment.python,
        harness=None if is_ours else _harness(with_engine=not project.is_engine),
        variables=project.environment,
    )


def _harness(*, with_engine: bool) -> Path:
    """A folder that holds nothing but our packages, for interpreters that do not have them."""
    packages = {name: _package(name) for name in ("pullback_runners", *(("pullback",) if with_engine else ()))}
    name = sha256(repr(packages).encode()).hexdigest()[:16]

    def make(folder: Path) -> None:
        for package, place in packages.items():
            (folder / package).symlink_to(place, target_is_directory=True)

    return kept_folder(cache_folder() / "harnesses" / name, make, MOST_BYTES)


def _package(name: str) -> Path:
    result = find_spec(name)
    if result is None or result.origin is None:
        raise BuildError(f"the package {name} is not installed next to this one")
    return Path(result.origin).parent
