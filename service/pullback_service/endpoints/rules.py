"""The rules of a project's `pullback.toml`: what holds, and replacing all of it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.addresses import API
from pullback_service.audit.trail import note, note_nothing
from pullback_service.commits.trunk import trunk_of
from pullback_service.errors import InvalidInputError, NotFoundError
from pullback_service.fields import Name
from pullback_service.incidents.rule_preview import preview_incidents
from pullback_service.models.projects import Project
from pullback_service.problems import documented
from pullback_service.projects.queries import project_by_name
from pullback_service.routers import api_router
from pullback_service.rules import queries
from pullback_service.rules.matching import Rule
from pullback_service.rules.schemas import RulesAnswer, RulesStatement, RuleSummary
from pullback_service.sessions import ReadSession, WriteSession

router = api_router(prefix=f"{API}/rules", tags=["rules"])


@router.get("", responses=documented(NotFoundError))
async def read_rules(session: ReadSession, project: Name) -> RulesAnswer:
    """The rules of a project that hold, in the order of its `pullback.toml`."""
    stored = await project_by_name(session, project)
    return await _answer(session, stored, await queries.rules_of(session, stored.id))


@router.put("", responses=documented(NotFoundError, InvalidInputError))
async def replace_rules(
    statement: RulesStatement,
    session: WriteSession,
    project: Name,
    *,
    dry_run: Annotated[
        bool,
        Query(
            description="Change nothing, and list the incidents of the last 90 days that these rules would announce."
        ),
    ] = False,
) -> RulesAnswer:
    """Put the rules of a file in the place of those that hold: what is gone from the file is gone here.

    Refused whole where a glob matches nothing that was uploaded, a budget is impossible, or a channel is not there; the
    previous rules then remain in force. Incidents that were announced already stay announced.
    """
    stored = await project_by_name(session, project)
    replaced = await queries.replace_rules(session, stored, statement, dry_run=dry_run)
    answer = await _answer(session, stored, replaced.rules)
    answer.changed, answer.older = replaced.is_changed, replaced.is_older
    if dry_run:
        answer.file_trunk, answer.anchor, answer.anchor_sha = statement.trunk, *queries.anchor_by(stored, statement)
        answer.last_90_days = await preview_incidents(session, stored, replaced.rules)
    if dry_run or not replaced.is_changed:
        note_nothing(session)
    else:
        note(
            session,
            subject=f"rules of {stored.name}",
            project=stored.name,
            rules=len(statement.rules),
            trunk=statement.trunk,
            anchor=statement.anchor,
            commit=statement.commit,
        )
    return answer


async def _answer(session: AsyncSession, stored: Project, rules: Sequence[Rule]) -> RulesAnswer:
    return RulesAnswer(
        project=stored.name,
        trunk=await trunk_of(session, stored.id),
        file_trunk=stored.file_trunk,
        anchor=stored.anchor,
        anchor_sha=stored.anchor_sha,
        commit=stored.rules_sha,
        rules=[RuleSummary.of(rule) for rule in rules],
    )
