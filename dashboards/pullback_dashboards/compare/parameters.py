"""Reading a comparison: what an address asks for, and the commits as pages name them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_dashboards.history import Commit
from pullback_service.comparisons.requests import ComparisonAnswer, ComparisonRequest, compare_as_asked
from pullback_service.models import commits
from pullback_service.series.query_parameters import choice_of


@dataclass(frozen=True)
class Comparison:
    """The service's comparison of two commits, or two machines, and the commits as pages name them."""

    answered: ComparisonAnswer

    @property
    def across(self) -> bool:
        """True if two machines are compared."""
        return self.answered.judged.across is not None

    @property
    def reference(self) -> Commit:
        """The name of the reference."""
        return commit_as_named(self.answered.pair.reference.commit)

    @property
    def candidate(self) -> Commit:
        """The name of the candidate."""
        return commit_as_named(self.answered.pair.candidate.commit)


async def read_comparison(session: AsyncSession, project: str, request: ComparisonRequest) -> Comparison:
    """The comparison that is asked for."""
    return Comparison(await compare_as_asked(session, project, request))


def comparison_of_query(query: Mapping[str, Sequence[str]]) -> ComparisonRequest:
    """The comparison that a stored address asks for."""

    def one(name: str) -> str | None:
        return next(iter(query.get(name, ())), None) or None

    return ComparisonRequest(
        head=one("head") or "",
        base=one("base"),
        merge_base=one("merge_base") == "true",
        head_machine=one("head_machine"),
        base_machine=one("base_machine"),
        choice=choice_of("", query),
    )


def commit_as_named(commit: commits.Commit) -> Commit:
    """A commit of the service as pages name it."""
    return Commit(commit.sha, commit.title, commit.author, commit.authored_at, commit.branch)
