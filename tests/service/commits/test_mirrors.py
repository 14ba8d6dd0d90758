"""A worker learns the branches of a real clone."""

import subprocess
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from pullback_service.chores import tasks
from pullback_service.commits.branches import list_branches
from pullback_service.commits.mirrors import Mirror, MirrorError, follow, read_heads, read_log
from pullback_service.ids import ProjectId
from pullback_service.models.projects import Project
from pullback_service.projects.queries import ensure_project

pytestmark = pytest.mark.anyio


@pytest.fixture
def clone(tmp_path):
    """Run git in a repository of its own."""

    def git(*arguments):
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, "-C", str(tmp_path), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    for title in ("one", "two", "three"):
        git("commit", "--quiet", "--allow-empty", "-m", title)
    return git


async def test_a_clone_is_read_also_where_a_hook_of_another_one_started_the_service(clone, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere" / ".git"))
    heads = await read_heads(tmp_path)
    monkeypatch.delenv("GIT_DIR")
    assert heads == {"main": clone("rev-parse", "HEAD")}


async def test_branches_follow_a_clone_through_pushes_and_force_pushes(session, clone, tmp_path):
    project_id = ProjectId((await ensure_project(session, "demo")).id)
    mirror = Mirror(project_id, "demo", tmp_path)
    assert await follow(session, mirror, await read_heads(tmp_path)) == ["main"]
    (branch,) = await list_branches(session, project_id)
    assert (branch.head, branch.commits, branch.gaps) == (clone("rev-parse", "HEAD"), 3, 0)
    assert await follow(session, mirror, await read_heads(tmp_path)) == []
    old = clone("rev-parse", "HEAD")
    clone("reset", "--quiet", "--hard", "HEAD~1")
    clone("commit", "--quiet", "--allow-empty", "-m", "other", "--date=2038-01-01T00:00:00Z")
    assert await follow(session, mirror, await read_heads(tmp_path)) == ["main"]
    (branch,) = await list_branches(session, project_id)
    assert (branch.head, branch.commits, branch.branch.forced_from) == (clone("rev-parse", "HEAD"), 3, old)


async def test_a_mirror_that_cannot_be_read_is_said_until_it_can(client, database, clone, tmp_path):
    await client.post("/api/v1/projects", json={"name": "demo"})

    async def point_to(folder):
        async with database.writing.begin() as writing:
            await writing.execute(update(Project).values(mirror=str(folder)))
        context = SimpleNamespace(additional_context={"database": database})
        await tasks.read_mirrors(context, timestamp=0)
        return [line for line in (await client.get("/status")).json()["findings"] if "mirror" in line]

    for _ in range(2):
        (said,) = await point_to(tmp_path / "nowhere")
        assert "The mirror of project 'demo' cannot be read" in said
        assert "nowhere" not in said  # the place is nobody's business who only reads
    assert await point_to(tmp_path) == []


async def test_a_folder_that_is_no_clone_is_said(tmp_path):
    with pytest.raises(MirrorError, match="git cannot read"):
        await read_heads(tmp_path / "nowhere")


async def test_a_title_may_hold_whatever_ends_lines_elsewhere(clone, tmp_path):
    clone("commit", "--quiet", "--allow-empty", "-m", "a\u2028b\x0cc\x1fd")
    told = await read_log(tmp_path, clone("rev-parse", "HEAD"))
    assert [commit.title for commit in told] == ["a\u2028b\x0cc\x1fd", "three", "two", "one"]
