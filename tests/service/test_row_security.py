"""Which rows of which project a transaction sees is enforced by Postgres: by roles, policies and a setting."""

from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text
from tests.service.conftest import serving

from pullback_service import backups, database_checks, migrations
from pullback_service.database import Database, seeing_all_projects
from pullback_service.errors import MigrationError
from pullback_service.incidents.detection import detect
from pullback_service.models import Base
from pullback_service.postgres import SUPERUSER
from pullback_service.roles import ALL_PROJECTS, SERVICE_ROLE
from pullback_service.row_security import WITHOUT_PROJECT
from pullback_service.settings import Settings

pytestmark = pytest.mark.anyio

GUARDED = sorted(set(Base.metadata.tables) - WITHOUT_PROJECT)


@pytest.fixture
async def filled(admin, guarded, make_token, reports, database):
    """Projects `mine` and `yours` with a row in every guarded table."""
    for name in ("mine", "yours"):
        first, second = reports.report(1, project=name), reports.report(2, project=name)
        second["cases"].append(
            reports.case("broken", variants=[], paired=[], error={"kind": "workload", "message": "no"})
        )
        second["comparisons"] = [
            {
                "case": second["cases"][0]["case"],
                "variant": "fused",
                "metric": "time",
                "reference": first["commit"]["sha"],
                "candidate": second["commit"]["sha"],
                "log_ratio": 0.3,
                "low": 0.2,
                "high": 0.4,
                "n": 20,
                "outcome": "slower",
            }
        ]
        for document in (first, second):
            answer = await admin.post("/api/v1/reports", json=document)
            assert answer.status_code == 201, answer.text
        branch = [{"sha": document["commit"]["sha"], "parents": []} for document in (first, second)]
        branch[1]["parents"] = [branch[0]["sha"]]
        told = await admin.post("/api/v1/commits", json={"project": name, "branch": "main", "commits": branch[::-1]})
        assert told.is_success, told.text
        job = {"project": name, "commit": {"sha": branch[1]["sha"]}, "suite": "quick", "timeout_s": 60}
        await admin.post("/api/v1/jobs", json=job)
        code = (await admin.post("/api/v1/enrolments", json={"project": name})).json()["code"]
        me = {"name": name, "machine": {"fingerprint": name, "name": name}}
        agent = (
            await guarded.post("/api/v1/agents/enroll", json=me, headers={"authorization": f"Bearer {code}"})
        ).json()
        own = {"authorization": f"Bearer {agent['secret']}"}
        claim = (await guarded.post(f"/api/v1/agents/{agent['agent_id']}/claim", json={}, headers=own)).json()
        log = f"/api/v1/jobs/{claim['job']['id']}/attempts/1/log?offset=0"
        lease = {"pullback-lease": claim["lease_token"]}
        written = await guarded.put(log, content=b"hello", headers=own | lease)
        assert written.is_success, written.text
        board = (await admin.post("/api/v1/boards", json={"name": "b", "project": name})).json()
        chart = {"kind": "compare", "project": name, "query": {}}
        pinned = await admin.post(f"/api/v1/boards/{board['id']}/charts", json=chart)
        assert pinned.is_success, pinned.text
        channel = {"project": name, "name": "c", "kind": "webhook", "url": "https://hooks.example/"}
        made = (await admin.post("/api/v1/channels", json=channel)).json()
        tested = await admin.post(f"/api/v1/channels/{made['id']}/test")
        assert tested.is_success, tested.text
        async with database.writing.begin() as session:
            project_id = (
                await session.execute(text("SELECT id FROM project WHERE name = :name"), {"name": name})
            ).scalar()
            await detect(session, project_id)
            for row in (
                "INSERT INTO set_aside SELECT min(id), now(), 'no' FROM series WHERE project_id = :id",
                (
                    "INSERT INTO incident_job (job_id, incident_id) SELECT min(job.id), min(incident.id) FROM job "
                    "JOIN incident USING (project_id) WHERE project_id = :id"
                ),
                (
                    "INSERT INTO bisection (incident_id, machine_id, case_id, reference_id, commit_id) "
                    "SELECT incident_id, machine_id, case_id, reference_id, commit_id FROM change WHERE project_id = :id LIMIT 1"
                ),
            ):
                await session.execute(text(row), {"id": project_id})
        (incident,) = (await admin.get(f"/api/v1/incidents?project={name}")).json()["items"]
        judged = await admin.post(f"{incident['url']}/verdict", json={"verdict": "real"})
        assert judged.is_success, judged.text
        ruled = await admin.put(f"/api/v1/rules?project={name}", json={"rules": [{"at_least": 0.1}]})
        assert ruled.is_success, ruled.text


@pytest.fixture
def connect(database_url):
    """Open a connection as somebody."""
    opened = []

    def connect(user=SUPERUSER, **more):
        connection = psycopg.connect(database_url.replace(f"//{SUPERUSER}@", f"//{user}@"), autocommit=True, **more)
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()


def rows_in(connection, table):
    counted = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))
    return counted.fetchone()[0]


def test_every_table_is_closed_or_belongs_to_no_project(connect):
    """A new table: `guard` it in its migration, or list it in WITHOUT_PROJECT (row_security.py)."""
    policies = (
        connect()
        .execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, "
            "array(SELECT r.rolname::text || ' ' || p.polname FROM pg_policy p JOIN pg_roles r ON r.oid = ANY (p.polroles) "
            "WHERE p.polrelid = c.oid ORDER BY 1) FROM pg_class c "
            "WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace"
        )
        .fetchall()
    )
    closed = {table for table, forced, _ in policies if forced}
    assert {table for table, *_ in policies} - closed == WITHOUT_PROJECT
    of_closed = {tuple(names) for _, forced, names in policies if forced}
    assert of_closed == {(f"{ALL_PROJECTS} all_projects", f"{SERVICE_ROLE} own_projects")}


def test_the_roles_own_nothing_and_bypass_nothing(connect):
    rows = connect().execute(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, "
        "(SELECT count(*) FROM pg_class WHERE relowner = r.oid) FROM pg_roles r WHERE rolname = ANY (%s)",
        [[SERVICE_ROLE, ALL_PROJECTS]],
    )
    assert rows.fetchall() == [(False, False, False, False, 0)] * 2


async def test_each_table_shows_the_rows_of_the_projects_that_are_set(filled, connect):
    everything = connect()
    service = connect(SERVICE_ROLE)
    ids = dict(everything.execute("SELECT name, id FROM project").fetchall())
    for table in GUARDED:
        in_all = rows_in(everything, table)
        seen = {}
        for name, project in ids.items():
            with service.transaction():
                service.execute(f"SET LOCAL pullback.projects = '{{{project}}}'")
                seen[name] = rows_in(service, table)
        assert 0 < seen["mine"] < in_all, table
        assert 0 < seen["yours"] < in_all, table
        if table not in {"audit", "board"}:  # which hold lines and boards of nobody's project, too
            assert seen["mine"] + seen["yours"] == in_all, table
        assert rows_in(service, table) == 0, table  # after the transactions that said which
        with service.transaction():
            service.execute(f"SET LOCAL ROLE {ALL_PROJECTS}")
            assert rows_in(service, table) == in_all, table


async def test_a_session_that_names_no_project_sees_nothing_whoever_connects(filled, database_url):
    database = Database(database_url)  # as a superuser
    try:
        for sessions in (database.reading, database.writing):
            async with sessions() as session:
                for table in GUARDED:
                    assert await session.scalar(Base.metadata.tables[table].select().limit(1)) is None, table
                async with seeing_all_projects(session):
                    assert await session.scalar(Base.metadata.tables["point"].select().limit(1)) is not None
                assert await session.scalar(Base.metadata.tables["point"].select().limit(1)) is None
    finally:
        await database.close()


async def test_nothing_is_written_into_another_project(filled, connect):
    service = connect(SERVICE_ROLE)
    mine, yours = (connect().execute("SELECT id FROM project ORDER BY name").fetchall()[n][0] for n in (0, 1))
    write = "INSERT INTO branch (project_id, name) VALUES (%s, 'new')"
    with service.transaction():
        service.execute(f"SET LOCAL pullback.projects = '{{{mine}}}'")
        service.execute(write, [mine])
        assert service.execute("UPDATE project SET public_read = true WHERE name = 'yours'").rowcount == 0
        assert service.execute("DELETE FROM series WHERE project_id = %s", [yours]).rowcount == 0
    service.execute(f"SET pullback.projects = '{{{mine}}}'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        service.execute(write, [yours])


@pytest.fixture
def owner(postgres_server):
    """Somebody who owns a database and is no superuser; the address of the database."""
    name = f"owner_{uuid4().hex}"
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
        yield postgres_server.url(name).replace(f"//{SUPERUSER}@", f"//{name}@")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"DROP ROLE {name}")


@pytest.mark.long
async def test_an_owner_without_rights_over_roles_is_told_what_to_run(
    owner, postgres_server, migrated_template, report, tmp_path
):
    with pytest.raises(MigrationError, match="let an administrator of the server run `(.*)`, then") as refusal:
        migrations.upgrade(owner)
    wanted = str(refusal.value).split("`")[1]
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as administrator:
        administrator.execute(wanted)
    migrations.upgrade(owner)
    async with serving(Settings(DATABASE_URL=owner)) as client:  # the owner's address serves as well
        assert (await client.post("/api/v1/reports", json=report)).status_code == 201
        listed = (await client.get("/api/v1/series")).json()["items"]
        assert listed
    assert database_checks.check(owner) == []
    # A backup holds every row although policies hold for the owner, and can be put back.
    backups.back_up(owner, tmp_path / "all.backup")
    with psycopg.connect(owner, autocommit=True) as connection:
        before = {table: rows_in(connection, table) for table in GUARDED}
        connection.execute("DELETE FROM project")
    assert before["point"] > 0
    assert backups.restore(owner, tmp_path / "all.backup", replace=True).match
    with psycopg.connect(owner, autocommit=True) as connection:
        assert {table: rows_in(connection, table) for table in GUARDED} == before
        connection.execute("ALTER TABLE point DISABLE ROW LEVEL SECURITY")
    assert any("1 tables show the rows of every project" in finding for finding in database_checks.check(owner))


def test_the_service_role_migrates_nothing(database_url):
    with pytest.raises(MigrationError, match="migrate as the owner"):
        migrations.upgrade(database_url.replace(f"//{SUPERUSER}@", f"//{SERVICE_ROLE}@"))
