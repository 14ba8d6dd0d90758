"""Lists of branches cost what they show, however many there are."""

import json

import psycopg
import pytest

from pullback_service import statements
from pullback_service.commits.branches import listed_branches
from pullback_service.statements import text_of

pytestmark = pytest.mark.anyio

MANY = 20_000
_FILL = """
INSERT INTO branch (project_id, name) SELECT {project}, 'topic ' || lpad(n::text, 6, '0') FROM generate_series(1, {many}) n;
INSERT INTO branch (project_id, name) VALUES ({project}, 'topic 0000011');
INSERT INTO branch_commit (branch_id, position, commit_id, after_gap)
  SELECT b.id, 0, (SELECT min(id) FROM commit WHERE project_id = {project}), false
    FROM branch b WHERE b.project_id = {project} AND name LIKE 'topic ______';
ANALYZE branch; ANALYZE branch_commit; ANALYZE commit
"""


@pytest.fixture
async def project(client, reports, database_url):
    assert (await client.post("/api/v1/reports", json=reports.report(1))).status_code == 201
    with psycopg.connect(database_url, autocommit=True) as owning:
        (found,) = owning.execute("SELECT id FROM project WHERE name = 'demo'").fetchone()
        for statement in _FILL.format(project=found, many=MANY).split(";"):
            owning.execute(statement)
    return found


def rows_of(plan):
    """The rows that all nodes of a plan gave, each as often as it was asked."""
    return plan["Actual Rows"] * plan["Actual Loops"] + sum(map(rows_of, plan.get("Plans", ())))


async def test_a_page_of_branches_looks_at_no_others(project, looking):
    statement, values = text_of(listed_branches(project, after="topic 001000", limit=11))
    ((found,),) = await statements.rows(looking, f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
    (plan,) = found if isinstance(found, list) else json.loads(found)
    assert rows_of(plan["Plan"]) < 300


@pytest.mark.long
async def test_all_branches_are_listed_once_and_those_without_commits_are_not(client, project):
    names = (await client.get("/api/v1/branches?project=demo&format=csv")).text.splitlines()[1:]
    assert len(names) == len(set(names)) == MANY + 1  # and main
    assert not any(line.startswith("topic 0000011") for line in names)
