"""Registration of machines from reports and agents: found by host and class, created where missing, described.

A machine is one computer with its hardware: a host, and the fingerprint of its class. Who tells no host (an older runner, the
file of another tool) speaks of the oldest machine of the class; and a machine without a host gets the first host
reported for it, so that the series of a computer continue when its runner is upgraded.

A caller limited to one project has no say over what others use: on such a machine the name, the facts and the host stay as
they were told before, and the measurements are kept all the same.
"""

import re
from collections.abc import Mapping
from typing import Any, LiteralString, NamedTuple

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.caller import caller_of
from pullback_service.database import seeing_all_projects
from pullback_service.ids import MachineId
from pullback_service.models.machines import FactsChange

# A machine that is seen all the time need not be written all the time.
SEEN_AGAIN_AFTER_S = 10
NUMBERED: LiteralString = r" \(\d+\)$"
"""The number behind the name of a machine, where others of its class have the same name."""


class MachineDescription(NamedTuple):
    """A machine as a report or an agent describes it. Empty facts say nothing."""

    fingerprint: str
    host: str | None
    name: str
    facts: Mapping[str, Any]


class _StoredMachine(NamedTuple):
    id: MachineId
    host: str | None
    name: str
    facts: Mapping[str, Any]
    is_stale: bool


_FIND: LiteralString = """
SELECT id, host, name, facts, last_seen_at < now() - make_interval(secs => %(seen_again_after_s)s)
  FROM machine
 WHERE fingerprint = %(fingerprint)s AND (host = %(host)s OR host IS NULL OR %(host)s::text IS NULL)
 ORDER BY host = %(host)s DESC NULLS LAST, id
 LIMIT 1
"""
_MAKE: LiteralString = """
INSERT INTO machine (fingerprint, host, name, facts) VALUES (%(fingerprint)s, %(host)s, %(name)s, %(facts)s::jsonb)
ON CONFLICT DO NOTHING
"""
_ADOPT: LiteralString = "UPDATE machine SET host = %(host)s WHERE id = %(id)s AND host IS NULL"
_LOCK: LiteralString = "SELECT id, host, name, facts, true FROM machine WHERE id = %(id)s FOR NO KEY UPDATE"
_DESCRIBE: LiteralString = """
UPDATE machine SET name = %(name)s, facts = %(facts)s::jsonb, last_seen_at = now() WHERE id = %(id)s
"""
_SEEN: LiteralString = "UPDATE machine SET last_seen_at = now() WHERE id = %(id)s"
_NAMES: LiteralString = "SELECT name FROM machine WHERE fingerprint = %(fingerprint)s AND id <> %(id)s"
_OTHERS: LiteralString = """
SELECT EXISTS (SELECT FROM agent
                WHERE machine_id = %(id)s AND (project_id IS NULL OR project_id <> ALL (%(projects)s::bigint[])))
       OR EXISTS (SELECT FROM project
                   WHERE id <> ALL (%(projects)s::bigint[])
                     AND EXISTS (SELECT FROM report WHERE machine_id = %(id)s AND project_id = project.id))
"""


async def ensure_machine(session: AsyncSession, description: MachineDescription) -> MachineId:
    """The machine that is told of, made or brought up to date. Index: uq_machine_fingerprint_host; as `may_describe`."""
    while True:
        known = await _find(session, description)
        if known is None:
            name = await _free_name(session, description, MachineId(0))
            await statements.run(session, _MAKE, {**_values(description), "name": name})
            continue
        if known.host is None and description.host is not None and await may_describe(session, known.id):
            await statements.run(session, _ADOPT, {"id": known.id, "host": description.host})
            continue
        if _is_news(known, description) and await may_describe(session, known.id):
            await _describe(session, known.id, description)
        elif known.is_stale:
            await statements.run(session, _SEEN, {"id": known.id})
        return known.id


async def may_describe(session: AsyncSession, machine_id: MachineId) -> bool:
    """True if the caller may describe a machine: one that is limited to a project may where no other project uses it.

    Index: uq_agent_machine_id_name, ix_report_machine.
    """
    caller = caller_of(session)
    if caller is None or caller.projects is None:
        return True
    async with seeing_all_projects(session):
        row = await statements.row(
            session, _OTHERS, {"id": machine_id, "projects": statements.array_of(caller.projects)}
        )
    return row is not None and not row[0]


async def _find(session: AsyncSession, description: MachineDescription) -> _StoredMachine | None:
    row = await statements.row(session, _FIND, {**_values(description), "seen_again_after_s": SEEN_AGAIN_AFTER_S})
    return None if row is None else _StoredMachine(*row)


async def _describe(session: AsyncSession, machine_id: MachineId, description: MachineDescription) -> None:
    """Write what is told, and keep what it was before; the first facts are no change. Facts that are not told stay."""
    row = await statements.row(session, _LOCK, {"id": machine_id})
    assert row is not None  # noqa: S101 - machines are never removed
    known = _StoredMachine(*row)
    name = known.name if _is_called(known, description.name) else await _free_name(session, description, machine_id)
    facts = description.facts or known.facts
    before, after = {"name": known.name, **known.facts}, {"name": name, **facts}
    differing = [key for key in {**after, **before} if before.get(key) != after.get(key)]
    if differing and (known.facts or name != known.name):
        session.add(
            FactsChange(
                machine_id=machine_id,
                before={key: before[key] for key in differing if key in before},
                after={key: after[key] for key in differing if key in after},
            )
        )
        await session.flush()  # steps of the same transaction are judged by what changed
    await statements.run(session, _DESCRIBE, {"id": machine_id, "name": name, "facts": _json(facts)})


async def _free_name(session: AsyncSession, description: MachineDescription, machine_id: MachineId) -> str:
    """The name that is told, numbered where another machine of the class has it: equal computers made from one image."""
    rows = await statements.rows(session, _NAMES, {"fingerprint": description.fingerprint, "id": machine_id})
    taken, name, number = {row[0] for row in rows}, description.name, 1
    while name in taken:
        number += 1
        name = f"{description.name} ({number})"
    return name


def _is_news(known: _StoredMachine, description: MachineDescription) -> bool:
    return not _is_called(known, description.name) or bool(description.facts and description.facts != known.facts)


def _is_called(known: _StoredMachine, name: str) -> bool:
    return name in {known.name, re.sub(NUMBERED, "", known.name)}


def _values(description: MachineDescription) -> dict[str, Any]:
    return {**description._asdict(), "facts": _json(description.facts)}


def _json(facts: Mapping[str, Any]) -> str:
    return orjson.dumps(facts).decode()
