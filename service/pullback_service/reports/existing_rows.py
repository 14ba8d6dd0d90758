"""Rows that uploads find: mostly everything but their points exists, and one statement finds it.

It takes no locks. What it does not find, or finds out of date, is made afterwards, kind by kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import MachineId, ProjectId
from pullback_service.machines.registration import NUMBERED, SEEN_AGAIN_AFTER_S
from pullback_service.reports.schemas import ReportHead

_MEET = """
SELECT p.id, m.id,
       EXISTS (SELECT FROM report WHERE id = given.report)
       OR EXISTS (SELECT FROM report WHERE project_id = p.id AND idempotency_key = given.key)
  FROM project p
 CROSS JOIN unnest(%(reports)s::uuid[], %(keys)s::text[], %(fingerprints)s::text[], %(hosts)s::text[],
                   %(machines)s::text[], %(facts)s::text[])
       WITH ORDINALITY AS given (report, key, fingerprint, host, machine, facts, place)
  LEFT JOIN LATERAL (SELECT * FROM machine
                      WHERE fingerprint = given.fingerprint AND (host = given.host OR given.host IS NULL)
                      ORDER BY id LIMIT 1) m
         ON given.machine IN (m.name, regexp_replace(m.name, %(numbered)s, ''))
        AND (m.facts = given.facts::jsonb OR given.facts = '{}')
        AND m.last_seen_at >= now() - make_interval(secs => %(seen_again_after_s)s)
 WHERE p.name = %(project)s
 ORDER BY given.place
"""


@dataclass(frozen=True, slots=True)
class ExistingRows:
    """The existing rows: the project; its machine, where nothing about it is new; whether the report may be `stored`."""

    project_id: ProjectId | None
    machine_id: MachineId | None
    stored: bool


async def meet(session: AsyncSession, project: str, uploads: Sequence[tuple[ReportHead, str]]) -> list[ExistingRows]:
    """Look for what reports of a project need, each given with its key.

    Index: uq_project_name, uq_machine_fingerprint_host, pk_report, uq_report_project_id_idempotency_key.
    """
    machines = [head.machine for head, _ in uploads]
    rows = await statements.rows(
        session,
        _MEET,
        {
            "reports": [head.id for head, _ in uploads],
            "keys": [key for _, key in uploads],
            "fingerprints": [machine.fingerprint for machine in machines],
            "hosts": [machine.host for machine in machines],
            "numbered": NUMBERED,
            "machines": [machine.name for machine in machines],
            "facts": [orjson.dumps(machine.facts).decode() for machine in machines],
            "seen_again_after_s": SEEN_AGAIN_AFTER_S,
            "project": project,
        },
    )
    if not rows:
        return [ExistingRows(None, None, stored=True) for _ in uploads]  # their ids may be another project's
    return [
        ExistingRows(ProjectId(project_id), None if machine_id is None else MachineId(machine_id), stored=stored)
        for project_id, machine_id, stored in rows
    ]
