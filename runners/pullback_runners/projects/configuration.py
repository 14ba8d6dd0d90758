"""`pullback.toml`: how the commits of a repository are built, and what is measured of them."""

import difflib
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from pullback_runners.errors import UsageError
from pullback_runners.suites import SUITES

FILE = "pullback.toml"
OLDEST_PYTHON = (3, 11)
"""The oldest that the harness runs in."""

_MOST_DOTS = 200
"""The most dots in a line: tomllib stores all n prefixes of a key with n dots."""


@dataclass(frozen=True)
class Project:
    """`[project]`: what the service calls it."""

    name: str | None = None
    """The name of the repository, if none is given."""


@dataclass(frozen=True)
class Build:
    """`[build]`: how a commit becomes something that can be imported."""

    python: str | None = None
    """A version, `3.12`; the Python that runs Pullback, if none is given."""
    requirements: tuple[str, ...] = ()
    """Files of the commit that an environment is made of; without any it is the one that Pullback runs in."""
    path: tuple[str, ...] = ()
    """Folders of the commit that go in front of `sys.path`; `src` where there is one, else the top."""
    install: str = "path"
    """`path`: nothing is installed; `wheel`: the commit is installed into a folder of its own by pip."""
    commands: tuple[str, ...] = ()
    """Run one after the other at the top of the commit, with the environment's Python first on PATH."""
    imports: tuple[str, ...] = field(default=(), metadata={"key": "import"})
    """Modules that have to come from the commit."""
    files: tuple[str, ...] = ()
    """Files that make two commits differ; the path, the requirements, pyproject.toml and setup.py, if none is named."""
    submodules: tuple[str, ...] = ()
    """Paths of submodules whose files a commit needs; others are empty folders."""


@dataclass(frozen=True)
class Measure:
    """`[measure]`: workloads and how they are run."""

    workloads: tuple[str, ...] = ()
    """Files that declare them; Pullback's own, if none is named."""
    suite: str = "quick"
    variants: tuple[str, ...] = ()
    """All that a workload declares, if none is named."""
    baseline: str | None = None


@dataclass(frozen=True)
class Detection:
    """`[detection]`: where changes are looked for."""

    trunk: str | None = None
    """The branch that is watched, if nobody chose one at the service."""
    anchor: str | None = None
    """The tag that the newest commit is compared with once a week."""


@dataclass(frozen=True)
class Rule:
    """A `[[rule]]`: what is watched, kept and told of the series that match all its globs. The service applies it."""

    workload: str | None = None
    case: str | None = None
    variant: str | None = None
    metric: str | None = None
    machine: str | None = None
    at_least: float | None = None
    """The least change that is told, as a share: 0.02 is 2 %."""
    budget: float | None = None
    """The most that a value may be; of time the most that it may be as a share of the baseline's."""
    watch: bool | None = None
    tell: tuple[str, ...] | None = None
    """Names of the channels that are told."""


GLOBS = ("workload", "case", "variant", "metric", "machine")


@dataclass(frozen=True)
class ProjectFile:
    """A `pullback.toml`, and the repository that it lies at the top of."""

    top: Path
    project: Project = Project()
    build: Build = Build()
    measure: Measure = Measure()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the processes that are measured."""
    detection: Detection = Detection()
    rules: tuple[Rule, ...] = ()
    """The rules in the order of the file."""
    text: str = field(default="", repr=False, compare=False)
    """The text of the file, for line numbers in messages."""

    @property
    def name(self) -> str:
        """The name of the project at the service."""
        return self.project.name or self.top.name

    @property
    def is_engine(self) -> bool:
        """True if Pullback's engine is measured, by Pullback's own workloads if none are named."""
        return "pullback" in self.build.imports

    def wrong_rule(self, place: int, key: str, sentence: str) -> UsageError:
        """The error about a key of a rule, by its place among the rules, with its line."""
        return _wrong(self.text, "rule", key, sentence, place=place)

    def wrong_anchor(self, sentence: str) -> UsageError:
        """The error about the anchor, with its line."""
        return _wrong(self.text, "detection", "anchor", f"[detection] anchor: {sentence}")

    def workload_files(self, *places: Path) -> list[Path]:
        """The workload files that are named, in the first of these folders that holds all of them."""
        named = self.measure.workloads
        if not named and not self.is_engine:
            raise UsageError(f'{FILE} names no workloads; add [measure] workloads = ["bench/gradients.py"]')
        for place in places:
            if all((place / each).is_file() for each in named):
                return [place / each for each in named]
        missing = next(each for each in named if not (places[-1] / each).is_file())
        is_folder = (places[-1] / missing).is_dir()
        wrong = "a folder; name a file in it" if is_folder else "which does not exist; add the file"
        raise _wrong(
            self.text, "measure", "workloads", f"[measure] workloads names {missing}, {wrong}, or give --workloads"
        )


def find_project(start: Path) -> ProjectFile | None:
    """The project that a folder belongs to: the nearest `pullback.toml` upwards, no further than the top of its repository."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if os.path.lexists(folder / FILE):
            return read_project(folder / FILE)
        if (folder / ".git").exists():
            return None
    return None


def read_project(path: Path) -> ProjectFile:
    """Read a file; UsageError says what is wrong in which line."""
    try:
        if not path.is_file():
            raise UsageError(f"{path} is no file, nor a link to one; remove it, and `pullback init` writes one")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} cannot be read: {error}; save it as UTF-8") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); fix its permissions") from error
    return parse_project(text, path.resolve().parent)


def parse_project(text: str, top: Path) -> ProjectFile:
    """The project of this text, whose file lies in the folder `top`."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS:
            raise UsageError(f"{FILE}, line {number}: it has more than {_MOST_DOTS} dots; break it into several lines")
    try:
        tables = tomllib.loads(text.removeprefix("\ufeff"))  # some editors begin a file with a byte order mark
    except (ValueError, RecursionError) as error:  # of numbers with thousands of digits, and lists in lists in lists
        raise UsageError(f"{FILE} is not TOML: {error}; correct it there") from error
    kinds = {"project": Project, "build": Build, "measure": Measure, "detection": Detection}
    made: dict[str, Any] = {}
    for name, table in tables.items():
        if name == "rule":
            made["rules"] = _rules(text, table)
            continue
        if name not in (*kinds, "environment"):
            raise _wrong(text, None, name, f"no table [{name}] is known{_near(name, [*kinds, 'environment', 'rule'])}")
        if not isinstance(table, dict):
            raise _wrong(text, None, name, f"{name} is a table; write [{name}] above its keys")
        made[name] = _environment(text, table) if name == "environment" else _filled(text, name, kinds[name], table)
    result = ProjectFile(top, **made, text=text)
    _check_values(text, result)
    return result


def _check_values(text: str, result: ProjectFile) -> None:
    """Refuse values of the right type that mean nothing."""
    if result.build.install not in ("path", "wheel"):
        raise _wrong(text, "build", "install", f"[build] install is {result.build.install!r}; give 'path' or 'wheel'")
    if result.build.python is not None and not re.fullmatch(r"3\.\d{1,3}(\.\d{1,3})?", result.build.python):
        raise _wrong(
            text,
            "build",
            "python",
            f"[build] python is {result.build.python!r}; give a version of Python 3 like '3.12'",
        )
    if result.build.python is not None and tuple(map(int, result.build.python.split("."))) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise _wrong(
            text, "build", "python", f"[build] python is {result.build.python!r}; the harness needs {oldest} or newer"
        )
    if result.measure.suite not in SUITES:
        known = ", ".join(SUITES)
        raise _wrong(text, "measure", "suite", f"[measure] suite is {result.measure.suite!r}; known: {known}")
    for table_name, key, paths in (
        ("build", "requirements", result.build.requirements),
        ("build", "path", result.build.path),
        ("build", "submodules", result.build.submodules),
        ("build", "files", result.build.files),
        ("measure", "workloads", result.measure.workloads),
    ):
        for each in paths:
            if not each or "\0" in each or Path(each).is_absolute() or ".." in Path(each).parts:
                raise _wrong(
                    text,
                    table_name,
                    key,
                    f"[{table_name}] {key} names {each!r}; give a path below the top of the repository",
                )


def _filled(text: str, name: str, kind: Any, table: Mapping[str, Any]) -> Any:
    """A table as its dataclass, every key of it known and of the right type."""
    types = get_type_hints(kind)
    known = {each.metadata.get("key", each.name): each.name for each in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise _wrong(text, name, key, f"[{name}] has no key {key!r}{_near(key, known)}")
        wanted = types[known[key]]
        if get_origin(wanted) is tuple:
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise _wrong(text, name, key, f'[{name}] {key} is a list of strings; write {key} = ["…"]')
            values[known[key]] = tuple(value)
        elif str in (wanted, *get_args(wanted)) and isinstance(value, str) and value:
            values[known[key]] = value
        elif value == "":
            raise _wrong(text, name, key, f'[{name}] {key} is empty; write {key} = "…", or leave it out')
        else:
            raise _wrong(text, name, key, f'[{name}] {key} is a string; write {key} = "…"')
    return kind(**values)


def _rules(text: str, tables: Any) -> tuple[Rule, ...]:
    """The rules of a file, every key of them known and of a value that means something."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _wrong(text, None, "rule", "rule is a list of tables; write [[rule]] above the keys of each")
    for place, table in enumerate(tables):
        if (result := _unfit_rule(table)) is not None:
            raise _wrong(text, "rule", result[0], f"[[rule]] {result[1]}", place=place)
    values: list[dict[str, Any]] = [
        {**table, "tell": tuple(table["tell"])} if "tell" in table else table for table in tables
    ]
    return tuple(Rule(**each) for each in values)


def _unfit_rule(table: Mapping[str, Any]) -> tuple[str, str] | None:
    """The key of a rule that is wrong, and the remedy."""
    known = [each.name for each in fields(Rule)]
    for key, value in table.items():
        if key not in known:
            return key, f"has no key {key!r}{_near(key, known)}"
        if remedy := _unfit(key, value):
            return key, f"{key} is {remedy}"
    if not table.keys() - set(GLOBS):
        return "rule", "has no effect; set at_least, budget, watch or tell"
    return _unfit_budget(table.get("metric"), table["budget"]) if "budget" in table else None


def _unfit_budget(metric: str | None, budget: float) -> tuple[str, str] | None:
    if metric is None:
        return "budget", 'budget needs a metric; write metric = "array_allocs"'
    if re.search(r"[*?]", metric):
        return "metric", f"metric is {metric!r}; a budget is of one metric, give its name"
    if metric == "time" and budget == 0:
        return "budget", "budget of time is a share of the baseline's; give more than 0, such as 0.5"
    return None


def _unfit(key: str, value: Any) -> str | None:
    """The remedy for a value of a rule that its key cannot have."""
    if key in GLOBS:
        return None if isinstance(value, str) and value else f'a name or a glob; write {key} = "lstm*"'
    if key == "watch":
        return None if isinstance(value, bool) else "true or false"
    if key == "tell":
        is_list = isinstance(value, list) and all(isinstance(each, str) and each for each in value)
        return None if is_list else 'a list of names of channels; write tell = ["team"]'
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if key == "budget":
        return None if is_number and value >= 0 else "the most that a value may be; give a number, 0 or more"
    return None if is_number and 0 < value < 1 else "a share; give a number between 0 and 1, such as 0.02 for 2 %"


def _environment(text: str, table: Mapping[str, Any]) -> dict[str, str]:
    for key, value in table.items():
        if not isinstance(value, str):
            raise _wrong(text, "environment", key, f'[environment] {key} is a string; write {key} = "{value}"')
        if not key or {"=", "\0"} & {*key} or "\0" in value:
            raise _wrong(
                text, "environment", key, f"[environment] {key!r} can be no variable of a process; leave it out"
            )
    return dict(table)


def _near(key: str, known: Any) -> str:
    near = difflib.get_close_matches(key, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


def _wrong(text: str, table: str | None, key: str, sentence: str, *, place: int | None = None) -> UsageError:
    """The error about a key of a table (or a table itself), with the line that it stands in.

    `place` counts tables of one name; a key that is not there has the line of its table.
    """
    current, seen, header_line = None, -1, None
    for number, line in enumerate(text.splitlines(), start=1):
        # Possessive, for a line may be a hundred thousand blanks.
        header = re.match(r"\s*+\[++\s*+\"?([^\[\]\".]++)\"?\s*+\]", line)
        if header:
            current = header[1].strip()
            if table is None and current == key:
                return UsageError(f"{FILE}, line {number}: {sentence}")
            if current == table:
                seen += 1
                header_line = number if seen == place else header_line
        elif (
            current == table and place in (None, seen) and re.match(rf"\s*+[\"']?{re.escape(key)}[\"']?\s*+[=.]", line)
        ):
            return UsageError(f"{FILE}, line {number}: {sentence}")
    return UsageError(f"{FILE}, line {header_line}: {sentence}" if header_line else f"{FILE}: {sentence}")
