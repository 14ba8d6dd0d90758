"""Finding and making rows of `measured`."""

from collections.abc import Collection, Iterable, Mapping
from typing import LiteralString

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.measured_code.code_identity import NOT_TOLD, CodeIdentity
from pullback_service.statements import Query

_GIVEN: LiteralString = """
unnest(%(workloads)s::text[], %(subjects)s::text[], %(harnesses)s::text[]) given (workload, subject, harness)
"""
_FIND: LiteralString = f"""
SELECT workload, subject, harness, id
  FROM {_GIVEN}
  JOIN measured USING (workload, subject, harness)
 WHERE project_id = %(project)s
"""  # noqa: S608 - our own words
_MAKE: LiteralString = f"""
INSERT INTO measured (project_id, workload, subject, harness)
SELECT %(project)s, workload, subject, harness FROM {_GIVEN} ORDER BY 2, 3, 4
ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own words
_READ: LiteralString = "SELECT id, workload, subject, harness FROM measured WHERE id = ANY (%(ids)s::int[])"


async def ensure_measured(
    session: AsyncSession, project_id: ProjectId, identities: Collection[CodeIdentity]
) -> Mapping[CodeIdentity, int]:
    """Ids of what was measured, made where they are missing; of what tells nothing there is none.

    Index: uq_measured_project_id_workload_subject_harness.
    """
    known = await _find(session, project_id, {*identities} - {NOT_TOLD})
    missing = {*identities} - {NOT_TOLD} - known.keys()
    if missing:
        await statements.run(session, _MAKE, _values(project_id, missing))
        known |= await _find(session, project_id, missing)
    return known


async def read_measured(session: AsyncSession, ids: Iterable[int | None]) -> Mapping[int, CodeIdentity]:
    """The measured code, by id. Index: pk_measured."""
    known = {each for each in ids if each is not None}
    return await statements.answer(session, measured_by_id(known)) if known else {}


def measured_by_id(ids: Collection[int]) -> Query[Mapping[int, CodeIdentity]]:
    """The measured code, by id. Index: pk_measured."""
    values = {"ids": statements.array_of(ids)}
    return Query(_READ, values, lambda rows: {row[0]: CodeIdentity(*row[1:]) for row in rows}, width=4)


async def _find(
    session: AsyncSession, project_id: ProjectId, identities: Collection[CodeIdentity]
) -> dict[CodeIdentity, int]:
    rows = await statements.rows(session, _FIND, _values(project_id, identities)) if identities else []
    return {CodeIdentity(*row[:3]): row[3] for row in rows}


def _values(project_id: ProjectId, identities: Collection[CodeIdentity]) -> dict[str, object]:
    workloads, subjects, harnesses = map(statements.array_of_texts, zip(*identities, strict=True))
    return {"project": project_id, "workloads": workloads, "subjects": subjects, "harnesses": harnesses}
