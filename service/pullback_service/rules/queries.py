"""Reading the rules of a project, and replacing all of them."""

from collections.abc import Collection, Sequence
from typing import Final, LiteralString, NamedTuple

import orjson
from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.background_threads import BackgroundThreads, in_background, large_in_background
from pullback_service.commits.trunk import trunk_of
from pullback_service.deferred_chores import defer_detection
from pullback_service.errors import FieldError, InvalidInputError
from pullback_service.ids import ProjectId
from pullback_service.models.notifications import Channel
from pullback_service.models.projects import Project
from pullback_service.models.rules import StoredRule
from pullback_service.rules.matching import GLOBS, Rule, Subject, matches, rule_for
from pullback_service.rules.schemas import RulesStatement

_COLUMNS: Final[LiteralString] = (
    'place, workload, "case", variant, metric, machine, at_least, budget, watch, tell, held_since, commit_sha'
)
_RULES: Final[LiteralString] = f"SELECT {_COLUMNS} FROM rule WHERE project_id = %(project)s ORDER BY place"  # noqa: S608 - our own words
_SUBJECTS: Final[LiteralString] = """
SELECT count(*), coalesce(json_agg(json_build_array(
         "case".workload, "case".label, series.variant, series.metric, machine.name, series.direction)), '[]')::text
  FROM series
  JOIN "case" ON "case".id = series.case_id
  JOIN machine ON machine.id = series.machine_id
 WHERE series.project_id = %(project)s
"""
_IS_OLDER: Final[LiteralString] = """
SELECT EXISTS (
       SELECT FROM commit sent
         JOIN branch_commit here ON here.commit_id = sent.id
         JOIN branch_commit there ON there.branch_id = here.branch_id AND there.position > here.position
         JOIN commit held ON held.id = there.commit_id
        WHERE sent.project_id = %(project)s AND sent.sha = %(sent)s AND held.project_id = %(project)s AND held.sha = %(held)s)
"""
_IS_ON: Final[LiteralString] = """
SELECT EXISTS (
       SELECT FROM commit
         JOIN branch_commit ON branch_commit.commit_id = commit.id
         JOIN branch ON branch.id = branch_commit.branch_id
        WHERE commit.project_id = %(project)s AND commit.sha = %(sha)s AND branch.project_id = %(project)s AND branch.name = %(trunk)s)
"""
# What was not watched, and what had no budget, is looked at whole, and told to nobody: see `incidents.detection_inputs.every_pair`.
_LOOK_AGAIN: Final[LiteralString] = "UPDATE project SET watched = '' WHERE id = %(project)s AND watched IS NOT NULL"
MANY_PAIRS: Final = 500_000
"""Pairs of a rule and a series, of some microseconds each; more are compared in the thread for what is large."""
# Detection decides again about incidents without rules that were held back.
_DECIDE_AGAIN: Final[LiteralString] = """
UPDATE incident SET rules = NULL
 WHERE id IN (
       SELECT id FROM incident
        WHERE project_id = %(project)s AND told_to = '{}' AND state IN ('confirmed', 'likely') AND NOT seen
        ORDER BY id FOR NO KEY UPDATE)
"""


class Series(NamedTuple):
    """A series by its names, and by its better direction."""

    subject: Subject
    direction: str


class AllSeries(NamedTuple):
    """All series of a project: there may be a hundred thousand, so they are read beside the event loop."""

    number: int
    written: str

    def read(self) -> list[Series]:
        """Read them."""
        return [Series(Subject(*names), direction) for *names, direction in orjson.loads(self.written)]


class RuleReplacement(NamedTuple):
    """The rules in force, or those that would be after a dry run. `is_older`: those in force are of a later commit."""

    rules: Sequence[Rule]
    is_changed: bool
    is_older: bool = False


async def rules_of(session: AsyncSession, project_id: int) -> Sequence[Rule]:
    """The rules of a project, in the order of its file. Index: uq_rule_project_id_place."""
    return [Rule._make(row) for row in await statements.rows(session, _RULES, {"project": project_id})]


async def series_of(session: AsyncSession, project_id: int) -> AllSeries:
    """All series of a project by their names. Index: ix_series_project_id."""
    ((number, written),) = await statements.rows(session, _SUBJECTS, {"project": project_id})
    return AllSeries(number, written)


def threads_for(rules: Sequence[Rule], series: int) -> BackgroundThreads:
    """The threads in which rules are matched with so many series."""
    return large_in_background if len(rules) * series > MANY_PAIRS else in_background


async def replace_rules(
    session: AsyncSession, project: Project, statement: RulesStatement, *, dry_run: bool
) -> RuleReplacement:
    """Put rules in the place of those that hold; refused whole where one of them means nothing.

    A rule that was there before holds since then. Nothing is taken of a file that is older than the one that was sent last, or of
    another branch than the trunk where that is said.
    Index: uq_rule_project_id_place, ix_series_project_id, uq_channel_project_id_name, uq_commit_project_id_sha, pk_branch_commit,
    ix_incident_project_id.
    """
    if statement.branch is not None and statement.branch != await trunk_of(session, project.id):
        return RuleReplacement(await rules_of(session, project.id), is_changed=False)
    rules = [each.at(place) for place, each in enumerate(statement.rules)]
    await _refuse_what_means_nothing(session, project, rules)
    anchor = anchor_by(project, statement)
    await _refuse_anchor_elsewhere(session, project, statement)
    stored = await rules_of(session, project.id)
    if statement.commit is not None and project.rules_sha not in {None, statement.commit}:
        values = {"project": project.id, "sent": statement.commit, "held": project.rules_sha}
        row = await statements.row(session, _IS_OLDER, values)
        if row and row[0]:
            return RuleReplacement(stored, is_changed=False, is_older=True)
    known = {rule.says(): rule for rule in stored}
    new = [
        known[rule.says()]._replace(place=rule.place)
        if rule.says() in known
        else rule._replace(commit_sha=statement.commit)
        for rule in rules
    ]
    is_changed = [rule.says() for rule in stored] != [rule.says() for rule in new] or (
        project.file_trunk,
        (project.anchor, project.anchor_sha),
    ) != (statement.trunk, anchor)
    if dry_run or (not is_changed and statement.commit in {None, project.rules_sha}):
        return RuleReplacement(new, is_changed=is_changed)
    if is_changed:
        await session.execute(delete(StoredRule).where(StoredRule.project_id == project.id))
        for rule in new:
            values = rule._asdict() | {"project_id": project.id}
            if rule.held_since is None:
                del values["held_since"]
            await session.execute(insert(StoredRule).values(**values))
        if await _is_another_look_due(session, project.id, stored, new):
            await statements.run(session, _LOOK_AGAIN, {"project": project.id})
        await statements.run(session, _DECIDE_AGAIN, {"project": project.id})
        await defer_detection(session, ProjectId(project.id))
    project.file_trunk = statement.trunk
    project.anchor, project.anchor_sha = anchor
    project.rules_sha = statement.commit
    await session.flush()
    return RuleReplacement(await rules_of(session, project.id), is_changed=is_changed)


async def _is_another_look_due(
    session: AsyncSession, project_id: int, stored: Sequence[Rule], new: Sequence[Rule]
) -> bool:
    """True if some series is watched again, or has another budget."""
    if not any(rule.budget is not None or rule.watch is not None for rule in (*stored, *new)):
        return False
    series = await series_of(session, project_id)
    return await threads_for([*stored, *new], series.number)(_sets_otherwise, stored, new, series)


def _sets_otherwise(stored: Sequence[Rule], new: Sequence[Rule], series: AllSeries) -> bool:
    def sets(rules: Sequence[Rule], subject: Subject) -> tuple[object, ...]:
        budget, watch = rule_for(rules, subject, "budget"), rule_for(rules, subject, "watch")
        return budget and budget.budget, watch is None or watch.watch

    return any(sets(stored, each.subject) != sets(new, each.subject) for each in series.read())


def anchor_by(project: Project, statement: RulesStatement) -> tuple[str | None, str | None]:
    """The anchor of a file, with its commit, which a clone without the tag does not tell."""
    is_known = statement.anchor_sha is None and statement.anchor is not None and statement.anchor == project.anchor
    return statement.anchor, project.anchor_sha if is_known else statement.anchor_sha


async def _refuse_anchor_elsewhere(session: AsyncSession, project: Project, statement: RulesStatement) -> None:
    """Refuse an anchor that is no commit of the trunk, as far as the service knows that."""
    if statement.anchor_sha is None:
        return
    trunk = project.trunk or statement.trunk or await trunk_of(session, project.id)
    values = {"project": project.id, "sha": statement.anchor_sha, "trunk": trunk}
    row = await statements.row(session, _IS_ON, values)
    if not (row and row[0]):
        message = (
            f"{statement.anchor} ({statement.anchor_sha[:10]}) is not a known commit of {trunk}: send its history with "
            "`pullback log`, or name a tag along the first parents of that branch."
        )
        raise InvalidInputError(
            f"The rules of {project.name!r} were rejected; the previous rules remain in force: {message}",
            errors=[FieldError(path="$.anchor", message=message)],
        )


async def _refuse_what_means_nothing(session: AsyncSession, project: Project, rules: Sequence[Rule]) -> None:
    """Refuse globs that match nothing the service knows, budgets of what is better when bigger, and channels that are not there."""
    if not rules:
        return
    series = await series_of(session, project.id)
    channels = set(await session.scalars(select(Channel.name).where(Channel.project_id == project.id)))
    wrong = await threads_for(rules, series.number)(_errors_of, rules, series, channels)
    if wrong:
        raise InvalidInputError(
            f"The rules of {project.name!r} were rejected; the previous rules remain in force: {wrong[0]['message']}",
            errors=wrong,
        )


def _errors_of(rules: Sequence[Rule], every: AllSeries, channels: Collection[str]) -> list[FieldError]:
    wrong: list[FieldError] = []
    series = every.read()
    for rule in rules:
        wrong += _dead_globs(rule, series)
        if rule.budget is not None and any(
            each.direction == "bigger" and rule.matches(each.subject) for each in series
        ):
            wrong.append(
                _error(rule, "budget", f"{rule.metric} is better when it is bigger, and a budget is the most.")
            )
        unknown = [name for name in rule.tell or () if name not in channels]
        if unknown:
            wrong.append(
                _error(
                    rule,
                    "tell",
                    f"There is no channel {unknown[0]!r}: make it with `pullback channel add`, or leave it out.",
                )
            )
    return wrong


def _dead_globs(rule: Rule, series: Sequence[Series]) -> list[FieldError]:
    dead = [
        _error(
            rule,
            name,
            f"{name} {glob!r} matches nothing that was uploaded: correct or remove it, or upload results first.",
        )
        for at, name in enumerate(GLOBS)
        if (glob := getattr(rule, name)) is not None
        and not any(matches(glob, each.subject[at] or "") for each in series)
    ]
    if dead or any(rule.matches(each.subject) for each in series):
        return dead
    named = [name for name in GLOBS if getattr(rule, name) is not None]
    if not named:
        return []
    together = " and ".join(named)
    return [
        _error(rule, named[0], f"No series that was uploaded matches {together} together: correct or remove the rule.")
    ]


def _error(rule: Rule, key: str, message: str) -> FieldError:
    return FieldError(path=f"$.rules[{rule.place}].{key}", message=message)
