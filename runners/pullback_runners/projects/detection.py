"""Detection of how a repository is built, by its files: each guess with the reason for it. Nothing is imported or run."""

import ast
import importlib.metadata
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pullback_runners.projects.digests import COMPILED_SOURCES
from pullback_runners.projects.environments import dependencies_of, table_of
from pullback_runners.projects.functions import SKIPPED_FOLDERS, imported_by, imported_engines, parsed, python_files

_SOURCE_FOLDERS = ("src", "lib", "python", ".")
_LOCKS = (
    "requirements.lock",
    "requirements-lock.txt",
    "requirements.txt",
    "requirements/base.txt",
    "requirements/main.txt",
)
_COMPILED = ("*.pyx", "*.c", "*.cpp", "*.cu", "*.f90", "*.rs", "CMakeLists.txt", "meson.build", "Cargo.toml")
_COMPILING_BACKENDS = ("mesonpy", "scikit_build_core", "maturin", "pybind11", "nanobind", "cython")
_VERSIONED_BY_GIT = ("setuptools_scm", "setuptools-scm", "hatch-vcs", "versioningit")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Guess:
    """A value of `pullback.toml`, and where it comes from."""

    table: str
    key: str
    value: str | tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Guesses:
    """All guesses about a repository, and sentences on what was seen and is not used."""

    guesses: tuple[Guess, ...]
    notes: tuple[str, ...] = ()
    engine: str = "numpy"

    def of(self, table: str, key: str) -> Any:
        """The value that was guessed for a key, or None; none is written of an empty one."""
        return next((each.value for each in self.guesses if (each.table, each.key) == (table, key)), None) or None

    def given(self, table: str, key: str, value: str | tuple[str, ...] | None) -> "Guesses":
        """The same with a value that somebody gave; an empty one takes the guess away, None leaves it."""
        if value is None:
            return self
        others = tuple(each for each in self.guesses if (each.table, each.key) != (table, key))
        mine = (Guess(table, key, value, "given"),) if value else ()
        return replace(self, guesses=others + mine)


def detect(top: Path, origin: str | None = None, start: Path | None = None, path: str | None = None) -> Guesses:
    """Guess how the repository with this top folder is built; `origin` is what its remote calls it.

    Of several packages with a pyproject.toml or a setup.py each it is the one that the folder `start` is in, or that `path`
    leads to, which is given and no guess.
    """
    pyproject, broken = _toml(top / "pyproject.toml")
    guesses = [_name(top, pyproject, origin)]
    notes = [broken] if broken else []
    member = _member(top, top / path if path else start or top)
    if member == top and not path and not _packages(top / _source_folder(top, pyproject)):
        members = _members(top)
        if len(members) == 1:
            member = members[0]
        elif members:
            folders = [_source_in(top, each) for each in members]
            notes.append(f"packages lie in {', '.join(folders)}: --path {folders[0]} takes the first of them")
    if member != top:
        pyproject, _ = _toml(member / "pyproject.toml")
    source = path or _source_in(top, member)
    packages = _packages(top / source)
    guesses.append(Guess("build", "path", (source,), _why_source(source, packages)))
    if packages:
        name = guesses[0] if member == top else _name(member, pyproject, None)
        main = _main_package(packages, str(name.value), imported_by(top / source))
        guesses.append(Guess("build", "import", (main,), "modules that must come from the measured commit"))
    requirements, remarks = _requirements(top, member, pyproject)
    guesses += requirements
    notes += remarks
    installation = _installation(member, top / source, packages, pyproject)
    if installation and member != top:
        notes.append(
            f"{installation[0].reason}: a wheel is built at the top of the repository alone, so build {member.relative_to(top)} "
            "by [build] commands"
        )
        installation = []
    guesses += installation
    if source == "." and packages:  # or every other file there would make two commits differ
        code = [name if (top / name).is_dir() else f"{name}.py" for name in packages]
        named = next((each.value for each in requirements), ())
        built_by = [
            each
            for each in ("pyproject.toml", "setup.py", "setup.cfg", "CMakeLists.txt", "meson.build")
            if (top / each).is_file()
        ]
        files = tuple(dict.fromkeys([*code, *named, *built_by, *(COMPILED_SOURCES if installation else ())]))
        guesses.append(Guess("build", "files", files, "by which commits differ"))
    engines = imported_engines(top / source)
    notes += _seen_beside(top, pyproject)
    return Guesses(tuple(guesses), tuple(notes), next(iter(engines), "numpy"))


def _toml(path: Path) -> tuple[dict[str, Any], str | None]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), None
    except FileNotFoundError:
        return {}, None
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"{path.name} cannot be read ({error}), so nothing is taken from it"


def _name(top: Path, pyproject: Mapping[str, Any], origin: str | None) -> Guess:
    project = table_of(pyproject, "project").get("name") or table_of(pyproject, "tool", "poetry").get("name")
    if isinstance(project, str) and project:
        return Guess("project", "name", project, "pyproject.toml calls it so")
    if project := _name_in_setup(top / "setup.py"):
        return Guess("project", "name", project, "setup.py calls it so")
    if origin:
        return Guess("project", "name", origin, "the remote `origin` calls it so")
    return Guess("project", "name", top.name, "the folder's name")


def _name_in_setup(file: Path) -> str | None:
    """The name that a call of `setup` has as a literal."""
    for node in ast.walk(parsed(file)):
        match node:
            case ast.Call(func=ast.Name(id="setup") | ast.Attribute(attr="setup"), keywords=keywords):
                for each in keywords:
                    if (
                        each.arg == "name"
                        and isinstance(each.value, ast.Constant)
                        and isinstance(each.value.value, str)
                    ):
                        return each.value.value or None
    return None


def _is_distribution(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file() or (folder / "setup.py").is_file()


def _member(top: Path, start: Path) -> Path:
    """The folder with a pyproject.toml or setup.py that another is in, no further up than the top."""
    below = [each for each in (start, *start.parents) if each.is_relative_to(top)]
    return next((each for each in below if _is_distribution(each)), top)


def _members(top: Path) -> list[Path]:
    """Folders with a package and a pyproject.toml or setup.py, one or two below the top."""
    folders = [each for pattern in ("*", "*/*") for each in sorted(top.glob(pattern)) if _is_distribution(each)]
    return [
        each
        for each in folders
        if not any(part in SKIPPED_FOLDERS or part.startswith(".") for part in each.relative_to(top).parts)
        and _packages(top / _source_in(top, each))
    ]


def _source_in(top: Path, member: Path) -> str:
    """The source folder of a member, below the top."""
    return (member / _source_folder(member, _toml(member / "pyproject.toml")[0])).relative_to(top).as_posix()


def _packages(folder: Path) -> list[str]:
    """Packages at the top of a source folder; modules, if there are none."""
    if not folder.is_dir():
        return []
    seen = sorted(folder.iterdir())
    packages = [each.name for each in seen if each.name.isidentifier() and (each / "__init__.py").is_file()]
    packages = [name for name in packages if name.lower() not in SKIPPED_FOLDERS]
    modules = [path.stem for path in python_files(folder) if path.parent == folder and path.stem.isidentifier()]
    return packages or sorted(modules)


def _source_folder(top: Path, pyproject: Mapping[str, Any]) -> str:
    named = table_of(pyproject, "tool", "setuptools", "package-dir").get("")
    candidates = (*([named] if isinstance(named, str) else []), *_SOURCE_FOLDERS)
    return next((each for each in candidates if _packages(top / each) and (top / each).is_dir()), ".")


def _why_source(source: str, packages: Sequence[str]) -> str:
    where = "the top of the repository" if source == "." else f"{source}/"
    if not packages:
        return "no package was found"
    return f"{where} holds {', '.join(packages[:3])}{' and others' if len(packages) > 3 else ''}"


def _main_package(packages: Sequence[str], name: str, importers: Mapping[str, int]) -> str:
    """The one with the project's name, or else the one that most files import: scripts, which may do anything, nobody imports."""
    wanted = re.sub(r"[^a-z0-9]", "", name.lower())
    return min(
        packages,
        key=lambda each: (
            re.sub(r"[^a-z0-9]", "", each.lower()) != wanted, -importers.get(each, 0), packages.index(each),
        ),
    )  # fmt: skip


def _requirements(top: Path, member: Path, pyproject: Mapping[str, Any]) -> tuple[list[Guess], list[str]]:
    """The file that an environment is made of, where a lock pins it or this environment lacks what it names."""
    notes = []
    unused: list[str] = []
    if (top / "uv.lock").is_file():
        if shutil.which("uv"):
            return [Guess("build", "requirements", ("uv.lock",), "uv.lock pins the environment of a commit")], []
        notes.append("uv.lock is read by uv, which is not installed: pip install uv, and run this again with --force")
    for file in dict.fromkeys(folder / name for folder in (member, top) for name in _LOCKS):
        if file.is_file():
            name = file.relative_to(top).as_posix()
            listed = _distributions(file.read_text(encoding="utf-8", errors="replace").splitlines())
            unused += [name] if listed else []
            if listed and all(pinned for _, pinned in listed):
                return [Guess("build", "requirements", (name,), f"{name} pins the environment of a commit")], notes
            if missing := _missing(each for each, _ in listed):
                return [
                    Guess("build", "requirements", (name,), f"{', '.join(missing[:3])} of it is not installed here")
                ], notes
    declared = (member / "pyproject.toml").relative_to(top).as_posix()
    unused += [declared] if dependencies_of(pyproject) else []
    if missing := _missing(each for each, _ in _distributions(dependencies_of(pyproject))):
        reason = (
            f"{', '.join(missing[:3])} of its dependencies {'is' if len(missing) == 1 else 'are'} not installed here"
        )
        return [Guess("build", "requirements", (declared,), reason)], notes
    if unused:
        what = "is there" if unused[0] != declared else "has dependencies"
        reason = f"{unused[0]} {what}: --requirements {unused[0]} measures its changes too"
        return [Guess("build", "requirements", (), reason)], notes
    return [], notes


def _distributions(lines: Sequence[str]) -> list[tuple[str, bool]]:
    """Distributions that requirements name, each with whether its version is pinned."""
    results = []
    for line in lines:
        name = _DISTRIBUTION.match(line.strip())
        if name is not None and not line.lstrip().startswith(("#", "-")):
            results.append((name[0], "==" in line or " @ " in line))
    return results


def _missing(names: Any) -> list[str]:
    missing = []
    for name in names:
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    return missing


def _installation(top: Path, source: Path, packages: Sequence[str], pyproject: Mapping[str, Any]) -> list[Guess]:
    """A wheel where something has to be compiled, or where the package asks for its own metadata."""
    can_build = (top / "pyproject.toml").is_file() or (top / "setup.py").is_file()
    if not can_build:
        return []
    system = table_of(pyproject, "build-system")
    requires = str(system.get("requires", []))
    setup = (top / "setup.py").read_text(encoding="utf-8", errors="replace") if (top / "setup.py").is_file() else ""
    backend = f"{requires} {system.get('build-backend', '')}"
    reason = None
    if compiled := next((each for each in _COMPILING_BACKENDS if each in backend.replace("-", "_").lower()), None):
        reason = f"pyproject.toml builds by {compiled}, so that parts are compiled"
    elif re.search(r"ext_modules|Extension\(|cythonize|rust_extensions", setup):
        reason = "setup.py compiles extensions"
    elif seen := _first(
        lambda pattern: next((p for p in source.rglob(pattern) if _is_inside(p, source, packages)), None)
    ):
        reason = f"{seen.relative_to(top)} has to be compiled"
    elif _asks_for_its_version(source, packages):
        reason = "the package reads its own version when it is imported"
    if reason is None:
        return []
    guesses = [Guess("build", "install", "wheel", reason)]
    if any(each in requires for each in _VERSIONED_BY_GIT):
        guesses.append(
            Guess(
                "environment",
                "SETUPTOOLS_SCM_PRETEND_VERSION",
                "0",
                "its version is read from git, which a commit's files are without",
            )
        )
    return guesses


def _first(find: Callable[[str], Path | None]) -> Path | None:
    return next((result for pattern in _COMPILED if (result := find(pattern)) is not None), None)


def _is_inside(path: Path, source: Path, packages: Sequence[str]) -> bool:
    parts = path.relative_to(source).parts
    return len(parts) > 1 and parts[0] in packages and not SKIPPED_FOLDERS & set(parts[:-1])


def _asks_for_its_version(source: Path, packages: Sequence[str]) -> bool:
    """True if a package imports importlib.metadata, or a module that building writes."""
    for name in packages:
        try:
            tree = ast.parse((source / name / "__init__.py").read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                module = f"{name}.{node.module}" if node.level == 1 else node.module or ""
                own, _, part = module.partition(".")
                is_version = own == name and ("version" in part or part == "_metadata")
                place = source / name / part.replace(".", "/")
                if module.startswith(("importlib", "pkg_resources")) or (
                    is_version and not (place.is_dir() or place.with_suffix(".py").is_file())
                ):
                    return True
            elif isinstance(node, ast.Import) and any(
                a.name.startswith(("importlib.metadata", "pkg_resources")) for a in node.names
            ):
                return True
    return False


def _seen_beside(top: Path, pyproject: Mapping[str, Any]) -> list[str]:
    notes = [
        f"{name} is a file of conda, whose environments are not created here: activate yours and install pullback in it; "
        "without [build] requirements commits are measured in the environment of pullback"
        for name in ("environment.yml", "environment.yaml", "conda.yml")
        if (top / name).is_file()
    ]
    texts = [str(pyproject), *(p.read_text(encoding="utf-8", errors="replace") for p in top.glob("requirements*.txt"))]
    if any("pytest-benchmark" in text for text in texts):
        notes.append(
            "pytest-benchmark is used here: pytest --benchmark-json=bench.json && pullback upload bench.json sends its results too"
        )
    if (top / "asv.conf.json").is_file():
        notes.append("asv is used here: pullback import .asv/results sends its history too")
    return notes
