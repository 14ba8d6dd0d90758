"""The address of an export request; options that have no meaning there are refused. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

from pullback_cli.usage_errors import RefusalError

ExportName: TypeAlias = Literal[
    "points",
    "series",
    "facets",
    "comparison",
    "matrix",
    "projects",
    "commits",
    "branches",
    "reports",
    "machines",
    "facts",
    "agents",
    "jobs",
    "boards",
    "tokens",
    "audit",
]
Value: TypeAlias = str | int | bool | Sequence[str] | None

ADDRESSES: Mapping[str, str] = {
    "points": "/api/v1/points",
    "series": "/api/v1/series",
    "facets": "/api/v1/series/facets",
    "comparison": "/api/v1/comparisons",
    "matrix": "/api/v1/matrix",
    "projects": "/api/v1/projects",
    "commits": "/api/v1/commits",
    "branches": "/api/v1/branches",
    "reports": "/api/v1/reports",
    "machines": "/api/v1/machines",
    "facts": "/api/v1/machines/{machine}/changes",
    "agents": "/api/v1/agents",
    "jobs": "/api/v1/jobs",
    "boards": "/api/v1/boards",
    "tokens": "/api/v1/tokens",
    "audit": "/api/v1/audit",
}
_SERIES = frozenset(
    {"project", "workload", "case", "variant", "kind", "metric", "machine", "device", "dtype", "param", "q"}
)
_WINDOW = frozenset({"branch", "from", "to", "start", "end", "last"})
UNDERSTOOD: Mapping[str, frozenset[str]] = {
    "points": _SERIES | _WINDOW | {"raw"},
    "series": _SERIES | {"branch"},
    "facets": _SERIES | {"branch"},
    "comparison": _SERIES | {"base", "head", "merge_base", "base_machine", "head_machine", "outcome"},
    "matrix": frozenset({"project", "machine", "metric", "branch"}),
    "projects": frozenset(),
    "commits": frozenset({"project", "branch"}),
    "branches": frozenset({"project"}),
    "reports": frozenset({"project", "commit"}),
    "machines": frozenset(),
    "facts": frozenset({"machine"}),
    "agents": frozenset(),
    "jobs": frozenset({"project", "commit", "state", "suite", "kind", "origin", "machine", "awaiting_approval"}),
    "boards": frozenset(),
    "tokens": frozenset(),
    "audit": frozenset({"project"}),
}
NEEDED: Mapping[str, Sequence[str]] = {
    "points": ["project"],
    "comparison": ["project", "head"],
    "matrix": ["project"],
    "commits": ["project"],
    "branches": ["project"],
    "facts": ["machine"],
}
# Of these one value alone is understood.
ONE: Mapping[str, Sequence[str]] = {"matrix": ["machine", "metric"], "jobs": ["kind", "machine"], "facts": ["machine"]}
# What the service calls them, where that is not the option's name.
NAMED: Mapping[str, Mapping[str, str]] = {"jobs": {"machine": "machine_id", "awaiting_approval": "awaits_approval"}}
ENDINGS: Mapping[str, str] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}


def parameters(what: ExportName, given: Mapping[str, Value]) -> list[tuple[str, str]]:
    """The parameters of the address, in the order given."""
    fields = {name: value for name, value in given.items() if value not in (None, False, (), [])}
    for name in fields:
        if name not in UNDERSTOOD[what]:
            fitting = ", ".join(other for other, names in UNDERSTOOD.items() if name in names)
            raise RefusalError(f"{_option(name)} does not apply to {what}: it is for {fitting}")
    for name in NEEDED.get(what, ()):
        if name not in fields:
            raise RefusalError(f"{what} needs {_option(name)}")
    for name in ONE.get(what, ()):
        if len(_several(fields.get(name))) > 1:
            raise RefusalError(f"{what} takes one {_option(name)}")
    named = NAMED.get(what, {})
    return [
        (named.get(name, name), text)
        for name, value in fields.items()
        if f"{{{name}}}" not in ADDRESSES[what]
        for text in _several(value)
    ]


def address(what: ExportName, given: Mapping[str, Value]) -> str:
    """The path of the request, with the parameters that belong to the path."""
    return ADDRESSES[what].format(machine=quote("".join(_several(given.get("machine"))), safe=""))


def format_of(output: Path | None, given: str | None) -> str:
    """The format that was said, or that the file's name ends in; CSV for a pipe."""
    if given is not None:
        return given
    if output is None:
        return "csv"
    result = ENDINGS.get(output.suffix.lower())
    if result is None:
        raise RefusalError(
            f"the format of {output} is unknown: give --format, or a name that ends in {', '.join(ENDINGS)}"
        )
    return result


def _option(name: str) -> str:
    return "--search" if name == "q" else f"--{name.replace('_', '-')}"


def _several(value: Value) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return ["true"]
    return [value] if isinstance(value, str) else [str(value)] if isinstance(value, int) else list(value)
