"""What an upload meets: mostly everything but its points is there already, and one statement says so.

It takes no locks. What it does not find, or finds out of date, is made afterwards, kind by kind.
"""

from dataclasses import dataclass

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.access.visibility import own_projects
from pullback_service.ids import MachineId, ProjectId
from pullback_service.machines.queries import SEEN_AGAIN_AFTER_S
from pullback_service.reports.schemas import ReportHead

_MEET = """
SELECT p.id, m.id,
       EXISTS (SELECT FROM report WHERE id = %(report)s)
       OR EXISTS (SELECT FROM report WHERE project_id = p.id AND idempotency_key = %(key)s)
  FROM project p
  LEFT JOIN machine m ON m.fingerprint = %(fingerprint)s AND m.name = %(machine)s
        AND (m.facts = %(facts)s::jsonb OR %(facts)s::jsonb = '{}')
        AND m.last_seen_at >= now() - make_interval(secs => %(seen_again_after_s)s)
 WHERE p.name = %(project)s AND (%(own)s::bigint[] IS NULL OR p.id = ANY (%(own)s))
"""


@dataclass(frozen=True, slots=True)
class Met:
    """What is there: the project; its machine, where nothing about that is news; whether the report may be `stored`."""

    project_id: ProjectId | None
    machine_id: MachineId | None
    stored: bool


async def meet(session: AsyncSession, head: ReportHead, key: str) -> Met:
    """Look for what a report needs. Index: uq_project_name, uq_machine_fingerprint, pk_report, uq_report_project_id_idempotency_key."""
    machine = head.machine
    found = await statements.row(
        session,
        _MEET,
        {
            "report": head.id,
            "key": key,
            "fingerprint": machine.fingerprint,
            "machine": machine.name,
            "facts": orjson.dumps(machine.facts).decode(),
            "seen_again_after_s": SEEN_AGAIN_AFTER_S,
            "project": head.project,
            "own": own_projects(session),
        },
    )
    if found is None:
        return Met(None, None, stored=True)  # its id may be another project's
    project_id, machine_id, stored = found
    return Met(ProjectId(project_id), None if machine_id is None else MachineId(machine_id), stored=stored)
