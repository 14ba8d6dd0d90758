"""A choice of series: any composition of their dimensions, as conditions on the join of `series`, `case`, `machine`, `project`.

Values of one dimension are alternatives, dimensions narrow each other. Every condition is kept by the name of its
dimension, so that counts of choices (`facets.py`) can leave one out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import TypeAlias

import orjson
from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from pullback_service.commits.ref_names import branch_by_name, has_results
from pullback_service.errors import refuse
from pullback_service.ids import ProjectId
from pullback_service.machines.queries import is_called
from pullback_service.models.commits import BranchCommit, Commit
from pullback_service.models.machines import Machine
from pullback_service.models.projects import Project
from pullback_service.models.readings import StoredReading
from pullback_service.models.series import Case, Series
from pullback_service.projects.queries import project_by_name

MOST_WORDS = 8
BRANCH_COMMITS = 20
"""A series is on a branch when it was measured at one of this many newest commits with results."""

PARAM = "param."
_WORD = re.compile(r"\w+", re.UNICODE)

DIMENSIONS: Mapping[str, InstrumentedAttribute[str] | InstrumentedAttribute[str | None]] = {
    "project": Project.name,
    "workload": Case.workload,
    "variant": Series.variant,
    "kind": Series.variant_kind,
    "metric": Series.metric,
    "machine": Machine.name,
    "device": Case.device,
    "dtype": Case.dtype,
}
"""The columns by which series differ, besides the parameters of their cases."""


@dataclass(frozen=True, slots=True)
class SeriesChoice:
    """A choice of series; an empty dimension is any.

    `machine` holds names or fingerprints, `case` labels, `params` values as they are written in addresses. `text` is
    words of which each must begin a word of the case's label, the variant, the metric or the machine's name.
    """

    project: str | None = None
    workload: Sequence[str] = ()
    case: Sequence[str] = ()
    dtype: Sequence[str] = ()
    device: Sequence[str] = ()
    variant: Sequence[str] = ()
    kind: Sequence[str] = ()
    metric: Sequence[str] = ()
    machine: Sequence[str] = ()
    params: Mapping[str, Sequence[str]] = field(default_factory=dict)
    branch: str | None = None
    text: str | None = None

    @property
    def is_narrow(self) -> bool:
        """True if it leaves out any series of its project."""
        return any(getattr(self, each.name) for each in fields(self) if each.name != "project")


Column: TypeAlias = InstrumentedAttribute[str]


async def conditions(
    session: AsyncSession,
    choice: SeriesChoice,
    *,
    project_id: InstrumentedAttribute[int] = Series.project_id,
    variant: Column = Series.variant,
    metric: Column = Series.metric,
) -> dict[str, ColumnElement[bool]]:
    """The conditions of a choice by dimension, for statements that join what they speak of.

    The columns are others where a statement is about what may have no series yet. Index: uq_project_name.
    """
    result = dict(_conditions(choice, variant, metric))
    if choice.project is not None:
        # By its id: with the name joined, a statement that finds little walks the series of all projects.
        project = await project_by_name(session, choice.project)
        result["project"] = project_id == project.id
        if choice.branch is not None:
            result["branch"] = await _on_branch(session, ProjectId(project.id), choice.branch)
    elif choice.branch is not None:
        refuse("branch", "A branch belongs to a project: give `project` too.")
    return result


def _conditions(choice: SeriesChoice, variant: Column, metric: Column) -> Iterator[tuple[str, ColumnElement[bool]]]:
    for name, column, values in (
        ("workload", Case.workload, choice.workload),
        ("case", Case.label, choice.case),
        ("dtype", Case.dtype, choice.dtype),
        ("device", Case.device, choice.device),
        ("variant", variant, choice.variant),
        ("kind", Series.variant_kind, choice.kind),
        ("metric", metric, choice.metric),
    ):
        if values:
            yield name, column.in_(values)
    if choice.machine:
        yield "machine", is_called(choice.machine)
    for name, values in choice.params.items():
        alternatives = [form for value in values for form in _forms(value)]
        yield f"{PARAM}{name}", or_(*(Case.params.contains({name: form}) for form in alternatives))
    condition = says(choice.text, (Case.label, variant, metric, Machine.name))
    if condition is not None:
        yield "text", condition


def says(text: str | None, searched: Iterable[Column]) -> ColumnElement[bool] | None:
    """Each word of a text begins a word of one of the columns; None where the text has no words."""
    words = _WORD.findall(text or "")
    if len(words) > MOST_WORDS:
        refuse("q", f"Search for at most {MOST_WORDS} words.")
    columns = tuple(searched)
    return and_(*(_begins_a_word(word, columns) for word in words)) if words else None


def _forms(value: str) -> Iterator[object]:
    """The JSON values that a value in an address may stand for: the text itself, and the number, true, false or null it spells."""
    yield value
    try:
        read = orjson.loads(value)
    except orjson.JSONDecodeError:
        return
    if read is None or (isinstance(read, bool | int | float) and isfinite(read)):
        yield read


def _begins_a_word(word: str, searched: Iterable[Column]) -> ColumnElement[bool]:
    # \m, the beginning of a word, takes the underscore for a letter; `bias` is to find dense_bias_act.
    pattern = "(^|[^[:alnum:]])" + word.lstrip("_")
    return or_(*(column.regexp_match(pattern, flags="i") for column in searched))


async def _on_branch(session: AsyncSession, project_id: ProjectId, name: str) -> ColumnElement[bool]:
    """Measured at one of the newest commits of a branch. Index: pk_branch_commit, ix_report_commit_id, pk_reading."""
    branch = await branch_by_name(session, project_id, name)
    newest = (
        select(Commit.id)
        .join(BranchCommit, BranchCommit.commit_id == Commit.id)
        .where(BranchCommit.branch_id == branch.id, has_results())
        .order_by(BranchCommit.position.desc())
        .limit(BRANCH_COMMITS)
    )
    commits = (await session.scalars(newest)).all()
    return Series.id.in_(select(StoredReading.series_id).where(StoredReading.commit_id.in_(commits)))
