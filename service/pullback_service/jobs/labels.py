"""The match of agents and jobs: labels that the job requires must be among the agent's labels.

The label `device` says where an agent measures, and what a report says as the device of its cases. Whoever names none means
the CPU: a job without it is for the CPU, as `pullback run` is, and an agent without it measures there. So a GPU's agent
takes the jobs that ask for its device and no others, and no series of the CPU gets a point from a GPU.

Jobs of forks need a sandbox, whatever else they require.
"""

from collections.abc import Mapping
from typing import Any, LiteralString

from sqlalchemy import ColumnElement, cast, or_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import InstrumentedAttribute

DEVICE = "device"
CPU = "cpu"
UNSAID: Mapping[str, str] = {DEVICE: CPU}
UNSAID_SQL: LiteralString = """'{"device": "cpu"}'::jsonb"""


ISOLATION = "isolation"
"""The label that says how jobs are kept apart from the agent: none, user or sandbox."""
SANDBOX = "sandbox"
DANGER = "danger"
UNSANDBOXED = "unsandboxed"
"""The value of `danger` of an agent whose operator lets code of strangers run without a sandbox."""
CONTAINS_STRANGERS_SQL: LiteralString = (
    """(told.labels @> '{"isolation": "sandbox"}' OR told.labels @> '{"danger": "unsandboxed"}')"""
)


def contains_strangers(labels: Mapping[str, Any]) -> bool:
    """True if an agent with these labels may run code of forks: in a sandbox, or because its operator says so."""
    return labels.get(ISOLATION) == SANDBOX or labels.get(DANGER) == UNSANDBOXED


def with_device(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Labels, or what a job requires, with the device that is meant."""
    return {**UNSAID, **labels}


def device_of(labels: Mapping[str, Any]) -> str:
    """The device that labels, or what a job requires, mean."""
    return str(with_device(labels)[DEVICE])


def place_of(machine: str, device: str | None) -> str:
    """The name of a machine, with the device where that is not the CPU."""
    return machine if device in {None, CPU} else f"{device} of {machine}"


def column_with_device(labels: InstrumentedAttribute[dict[str, Any]]) -> ColumnElement[Any]:
    """The same of a column."""
    return cast(dict(UNSAID), JSONB).op("||", return_type=JSONB())(labels)


def column_contains_strangers(labels: InstrumentedAttribute[dict[str, Any]]) -> ColumnElement[bool]:
    """The same as `contains_strangers`, of a column."""
    return or_(labels.contains({ISOLATION: SANDBOX}), labels.contains({DANGER: UNSANDBOXED}))


def suits(labels: Mapping[str, Any], requires: Mapping[str, Any]) -> bool:
    """True if an agent with these labels is one that the job asks for."""
    return contains(with_device(labels), with_device(requires))


def contains(whole: object, part: object) -> bool:
    """True if one JSON value contains another, as Postgres' `@>` has it for jsonb.

    https://www.postgresql.org/docs/current/datatype-json.html#JSON-CONTAINMENT; of its one exception (an array contains
    a bare value) nothing is needed here, where both are objects.
    """
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(name in whole and contains(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contains(one, wanted) for one in whole) for wanted in part)
    # True is 1 in Python and not in JSON.
    return isinstance(whole, bool) == isinstance(part, bool) and whole == part
