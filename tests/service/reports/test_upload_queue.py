"""Uploads that come at once are stored together, and none of them notices."""

import asyncio
import json
import threading
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import func, select, text

from pullback_service.audit.trail import Line
from pullback_service.caller import LOCAL
from pullback_service.commits.branches import list_branches
from pullback_service.database import AWAY, Database
from pullback_service.ids import ProjectId
from pullback_service.models import BranchCommit, Commit, Machine, Point, Report
from pullback_service.models.audit import Audit
from pullback_service.reports import storage, upload_queue
from pullback_service.reports.preparation import prepare
from pullback_service.reports.storage import Upload

pytestmark = pytest.mark.anyio

URL = "/api/v1/reports"


@pytest.fixture
def stored_together(monkeypatch):
    """How many reports each transaction stored, in their order; and every statement that went to the driver as SQL."""
    execute, together, statements = psycopg.AsyncCursor.execute, [], []

    async def noting(cursor, query, params=None, **options):
        # The pool asks whether its connection is alive, and a transaction begins with its first statement.
        if query != ";" and not str(query).startswith("BEGIN"):
            statements.append(query)
        if isinstance(query, str) and query.startswith("INSERT INTO report "):
            together.append(len(params["id"]))
        return await execute(cursor, query, params, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", noting)
    return together, statements


async def post_all(client, uploads, **headers):
    return await asyncio.gather(*(client.post(URL, json=upload, headers=headers) for upload in uploads))


async def test_who_comes_while_another_is_stored_is_stored_with_all_others_who_do(
    client, reports, session, stored_together
):
    together, _ = stored_together
    uploads = [reports.report(number % 3 + 1, machine=f"box {number % 2}") for number in range(10)]
    answers = await post_all(client, uploads)
    assert [answer.status_code for answer in answers] == [201] * 10
    assert [answer.json()["id"] for answer in answers] == [upload["id"] for upload in uploads]
    assert sum(together) == 10
    assert len(together) <= 3
    found = await session.execute(
        select(Report.id, Commit.sha, Machine.name, func.count())
        .join(Commit, Commit.id == Report.commit_id)
        .join(Machine, Machine.id == Report.machine_id)
        .join(Point, Point.report_id == Report.id)
        .group_by(Report.id, Commit.sha, Machine.name)
    )
    assert {tuple(row) for row in found} == {
        (UUID(upload["id"]), upload["commit"]["sha"], upload["machine"]["name"], 4) for upload in uploads
    }


async def test_an_upload_of_which_nothing_else_is_new_takes_few_statements(client, reports, stored_together):
    _, statements = stored_together
    await client.post(URL, json=reports.report(1))
    statements.clear()
    assert (await client.post(URL, json=reports.report(1))).status_code == 201
    # Some are for readings that another report of the commit shares, for their steps, and for what was measured.
    assert len(statements) == 19, statements
    statements.clear()
    assert (await client.post(URL, json=reports.report(2))).status_code == 201
    assert len(statements) == 23, statements  # a commit that follows the branch


async def test_statements_of_small_uploads_are_planned_once(database, reports):
    intake_ = upload_queue.UploadQueue(database)
    line = Line(LOCAL, "upload_report", "a report", "demo", None, {})
    for number in range(1, 16):
        await intake_.keep(Upload.of(prepare(json.dumps(reports.report(number)).encode()), None), line)
    async with database.writing.begin() as session:  # on the connection that was used last
        planned = (
            "SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements WHERE statement LIKE '%touched%'"
        )
        for_all, for_one = (await session.execute(text(planned))).one()
    assert for_all > 5
    assert for_one == 0


async def test_who_is_refused_is_refused_alone(client, reports, session):
    await client.post(URL, json=reports.report())
    uploads = [reports.report() for _ in range(6)]
    uploads[3]["cases"][0]["variants"][0]["metrics"]["time"]["unit"] = "ms"
    answers = await post_all(client, uploads)
    assert [answer.status_code for answer in answers] == [201, 201, 201, 422, 201, 201]
    assert "in s (smaller is better), not in ms" in answers[3].json()["detail"]
    assert await session.scalar(select(func.count()).select_from(Report)) == 6
    assert await session.scalar(select(func.count()).select_from(Point)) == 6 * 4


async def test_of_two_bodies_under_one_key_one_is_stored(client, reports, session):
    first = await client.post(URL, json=reports.report())  # whoever comes now finds the project
    answers = await post_all(client, [reports.report() for _ in range(5)], **{"Idempotency-Key": "run-7"})
    assert first.status_code == 201
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    assert await session.scalar(select(func.count()).select_from(Report)) == 2


async def test_what_uploads_know_of_one_commit_is_put_together(client, reports, session):
    uploads = [reports.report(7) for _ in range(6)]
    for upload, known in zip(uploads, ("author", "title", "authored_at", "branch", "parents", None), strict=True):
        told = upload["commit"]
        upload["commit"] = {"sha": told["sha"], **({known: told[known]} if known else {})}
    assert [answer.status_code for answer in await post_all(client, uploads)] == [201] * 6
    commit = (await session.scalars(select(Commit).where(Commit.sha == reports.sha(7)))).one()
    assert (commit.author, commit.title, commit.branch) == ("A. Author", "Change 7", "main")
    assert commit.authored_at == commit.ordered_at
    assert set(await session.scalars(select(Point.ordered_at))) == {commit.ordered_at}
    branches = await list_branches(session, ProjectId(commit.project_id))
    assert [(branch.branch.name, branch.head, branch.commits) for branch in branches] == [("main", commit.sha, 1)]


async def test_commits_of_one_branch_come_in_any_order(client, reports, session):
    uploads = [reports.report(number) for number in (5, 2, 9, 1, 4, 3, 8, 7, 6)]
    assert [answer.status_code for answer in await post_all(client, uploads)] == [201] * 9
    rows = await session.execute(
        select(Commit.sha, BranchCommit.after_gap)
        .join(BranchCommit, BranchCommit.commit_id == Commit.id)
        .order_by(BranchCommit.position)
    )
    assert [tuple(row) for row in rows] == [(reports.sha(number), False) for number in range(1, 10)]


async def test_every_upload_has_its_own_line_in_the_audit_log(client, reports, session):
    uploads = [reports.report() for _ in range(5)]
    uploads.append(uploads[-1])
    answers = await post_all(client, uploads)
    assert sorted(answer.status_code for answer in answers) == [200] + [201] * 5
    lines = (await session.scalars(select(Audit).where(Audit.action == "upload_report"))).all()
    assert {(line.subject, line.request_id) for line in lines} == {
        (f"report {upload['id']}", answer.headers["x-request-id"])
        for upload, answer in zip(uploads, answers, strict=True)
        if answer.status_code == 201
    }


async def test_callers_are_not_stored_with_rights_of_others(guarded, admin, make_token, reports):
    await admin.post("/api/v1/projects", json={"name": "other"})
    await admin.post(URL, json=reports.report())
    may, may_not = await make_token("upload", project="demo"), await make_token("upload", project="other")
    answers = await asyncio.gather(
        *(guarded.post(URL, json=reports.report(), headers=may_not if number % 2 else may) for number in range(8))
    )
    assert [answer.status_code for answer in answers] == [201, 403] * 4


async def test_a_large_report_keeps_nobody_waiting(client, reports, stored_together, monkeypatch):
    together, _ = stored_together
    monkeypatch.setattr(upload_queue, "LARGEST_TOGETHER_BYTES", 0)
    answers = await post_all(client, [reports.report() for _ in range(4)])
    assert [answer.status_code for answer in answers] == [201] * 4
    assert together == [1] * 4


async def test_without_a_database_everybody_who_waits_is_told(reports):
    nowhere = upload_queue.UploadQueue(Database("postgresql://nobody@127.0.0.1:1/nowhere"))
    uploads = [Upload.of(prepare(json.dumps(reports.report()).encode()), None) for _ in range(5)]
    line = Line(LOCAL, "upload_report", "report", None, None, {})
    answers = await asyncio.gather(*(nowhere.keep(upload, line) for upload in uploads), return_exceptions=True)
    assert all(isinstance(answer, AWAY) for answer in answers)
    await nowhere.close()


async def test_a_large_report_is_stored_outside_of_the_event_loop_and_stored_once(client, report, monkeypatch):
    threads = []

    async def keep_parts(*arguments):
        threads.append(threading.get_ident())
        await kept_parts(*arguments)

    kept_parts = storage.keep_parts
    monkeypatch.setattr(storage, "keep_parts", keep_parts)
    monkeypatch.setattr(upload_queue, "APART_BYTES", 100)
    first = await client.post("/api/v1/reports", json=report)
    again = await client.post("/api/v1/reports", json=report)
    assert (first.status_code, again.status_code) == (201, 200), first.text
    assert first.json()["id"] == again.json()["id"]
    other = await client.post("/api/v1/reports", json={**report, "duration_s": 2.0})
    assert (other.status_code, "give the new report a new id" in other.json()["detail"]) == (409, True)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
