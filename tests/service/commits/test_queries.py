"""Commits learn what they did not know, forget nothing, and take their measurements along when they move."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from pullback_service.commits.queries import CommitDescription, ensure_commit, parents_of
from pullback_service.ids import ProjectId
from pullback_service.models import Commit
from pullback_service.projects.queries import ensure_project

pytestmark = pytest.mark.anyio

LONG_AGO = datetime(2020, 5, 5, tzinfo=UTC)


@pytest.fixture
async def project_id(session):
    return ProjectId((await ensure_project(session, "demo")).id)


async def test_what_is_told_later_fills_the_gaps_and_overwrites_nothing(session, project_id, reports):
    sha = reports.sha(1)
    await ensure_commit(session, project_id, CommitDescription(sha, title="First"))
    await ensure_commit(session, project_id, CommitDescription(sha, title="Other", author="A", branch="main"))
    commit = await session.scalar(select(Commit))
    assert (commit.title, commit.author, commit.branch, commit.authored_at) == ("First", "A", "main", None)


async def test_parents_keep_their_order(session, project_id, reports):
    parents = [reports.sha(9), reports.sha(8)]
    commit = await ensure_commit(session, project_id, CommitDescription(reports.sha(10), parents=tuple(parents)))
    await ensure_commit(session, project_id, CommitDescription(reports.sha(10), parents=tuple(parents)))
    assert await parents_of(session, [commit.id]) == {commit.id: parents}
