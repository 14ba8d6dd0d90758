"""Migrations from zero equal the models, and every step has a way back."""

import json

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from pullback_service import migrations
from pullback_service.database import sync_engine
from pullback_service.errors import MigrationError, SetupError
from pullback_service.models import Base
from pullback_service.series.case_identity import label


def test_migrations_from_zero_equal_the_models(bare_database_url):
    migrations.upgrade(bare_database_url)
    with sync_engine(bare_database_url).connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "target_metadata": Base.metadata}
        )
        assert compare_metadata(context, Base.metadata) == []


def test_check_constraints_of_the_database_are_those_of_the_models(database_url):
    """Alembic's comparison does not look at them."""
    with sync_engine(database_url).connect() as connection:
        inspector = inspect(connection)
        for table in Base.metadata.sorted_tables:
            stored = {constraint["name"] for constraint in inspector.get_check_constraints(table.name)}
            declared = {c.name for c in table.constraints if type(c).__name__ == "CheckConstraint"}
            assert stored == declared, table.name


def test_downgrade_leaves_nothing_and_upgrade_works_again(bare_database_url):
    migrations.upgrade(bare_database_url)
    migrations.downgrade(bare_database_url, "base")
    with sync_engine(bare_database_url).connect() as connection:
        inspector = inspect(connection)
        assert inspector.get_table_names() == ["alembic_version"]
        assert "procrastinate" not in inspector.get_schema_names()
    migrations.upgrade(bare_database_url)
    assert migrations.revisions(bare_database_url).match


def test_every_step_goes_back_and_forth(bare_database_url):
    migrations.upgrade(bare_database_url, "0001")
    for revision, before in (("0002", "0001"), ("0003", "0002"), ("0006", "0004"), ("0011", "0008")):
        with sync_engine(bare_database_url).connect() as connection:
            tables = set(inspect(connection).get_table_names())
        migrations.upgrade(bare_database_url, revision)
        migrations.downgrade(bare_database_url, before)
        with sync_engine(bare_database_url).connect() as connection:
            assert set(inspect(connection).get_table_names()) == tables
        migrations.upgrade(bare_database_url, revision)


def test_branches_that_were_known_before_get_their_places(bare_database_url):
    migrations.upgrade(bare_database_url, "0002")
    with sync_engine(bare_database_url).begin() as connection:
        connection.exec_driver_sql("INSERT INTO project (name) VALUES ('demo')")
        for day, (sha, parent) in enumerate((("a", "0"), ("b", "a"), ("d", "c"))):
            connection.exec_driver_sql(
                "INSERT INTO commit (project_id, sha, branch, ordered_at) "
                "VALUES (1, repeat(%s, 40), 'main', now() + make_interval(days => %s))",
                (sha, day),
            )
            connection.exec_driver_sql("INSERT INTO commit_parent VALUES (%s, 0, repeat(%s, 40))", (day + 1, parent))
    migrations.upgrade(bare_database_url)
    with sync_engine(bare_database_url).connect() as connection:
        rows = connection.exec_driver_sql("SELECT position, commit_id, after_gap FROM branch_commit ORDER BY 1").all()
    assert [tuple(row) for row in rows] == [(0, 1, False), (1, 2, False), (2, 3, True)]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("params", "dtype", "device", "before", "after"),
    [
        ('{"n": 100, "act": "tanh"}', "f4", "cpu", "w[n=100,act=tanh,f4,cpu]", "w[n=100,act=tanh,f4,cpu]"),
        (
            '{"n": "1", "act": "tanh", "m": 2}',
            "f4",
            "cpu",
            "w[m=2,act=tanh,n=1,f4,cpu]",
            'w[m=2,act=tanh,n="1",f4,cpu]',
        ),
        ('{"a": "1,b=2"}', None, None, "w[a=1,b=2]", 'w[a="1,b=2"]'),
        ('{"b": "x,a=1", "a": 1}', None, None, "w[a=1,b=x,a=1]", 'w[a=1,b="x,a=1"]'),
        ('{"n": 1.0, "big": 10000000000000000}', "f4", None, "w[n=1,big=1e16,f4]", "w[n=1,big=1e16,f4]"),
        ("{}", None, "cpu", "w[cpu]", "w[,cpu]"),
        ("{}", None, None, "w", "w"),
    ],
)
def test_labels_that_read_alike_become_different_ones_and_go_back(
    bare_database_url, params, dtype, device, before, after
):
    def stored():
        with sync_engine(bare_database_url).connect() as connection:
            return connection.exec_driver_sql('SELECT label FROM "case"').scalar_one()

    migrations.upgrade(bare_database_url, "0017")
    with sync_engine(bare_database_url).begin() as connection:
        connection.exec_driver_sql("INSERT INTO project (name) VALUES ('demo')")
        connection.exec_driver_sql(
            'INSERT INTO "case" (project_id, identity, workload, params, dtype, device, label) '
            "VALUES (1, '', 'w', %s, %s, %s, %s)",
            (params, dtype, device, before),
        )
    migrations.upgrade(bare_database_url, "0018")
    assert stored() == after
    migrations.downgrade(bare_database_url, "0017")
    assert stored() == before


def test_labels_are_stored_as_they_are_made_now(bare_database_url):
    """The migration has the rule as it was decided; what is uploaded behind it must read the same."""
    cases = [("w[n=1]", {}, None, None), ("w", {"n": "1", 'q"': [1, "a"], "x": 1.5}, "f,4", None)]
    migrations.upgrade(bare_database_url, "0017")
    with sync_engine(bare_database_url).begin() as connection:
        connection.exec_driver_sql("INSERT INTO project (name) VALUES ('demo')")
        for number, (workload, params, dtype, device) in enumerate(cases):
            connection.exec_driver_sql(
                'INSERT INTO "case" (project_id, identity, workload, params, dtype, device, label) '
                "VALUES (1, %s, %s, %s, %s, %s, 'lost')",
                (bytes([number]), workload, json.dumps(params), dtype, device),
            )
    migrations.upgrade(bare_database_url)
    with sync_engine(bare_database_url).connect() as connection:
        rows = connection.exec_driver_sql('SELECT params, label FROM "case" ORDER BY id').all()
    assert [stored for _, stored in rows] == [
        label(workload, given, dtype, device)
        for (workload, _, dtype, device), (given, _) in zip(cases, rows, strict=True)
    ]


def test_ratios_of_points_become_those_to_the_baseline_and_those_of_counts(bare_database_url):
    migrations.upgrade(bare_database_url, "0018")
    points = [  # metric, exact, variant, value, and what was stated of it: baseline, log ratio, outcome
        ("time", False, "unfused", 4.0, None, None, None),
        ("time", False, "fused", 2.0, "unfused", -0.7, "faster"),
        ("time", False, "native", 1.0, "fused", -0.7, "faster"),
        ("array_bytes", True, "unfused", 100.0, None, None, None),
        ("array_bytes", True, "fused", 50.0, "unfused", 0.4, "more"),
        ("array_bytes", True, "stateful", 50.0, "unfused", -0.693147, "less"),
        ("array_bytes", True, "native", 0.0, "unfused", None, "less"),
        ("array_bytes", True, "jax", 25.0, "unfused", 0.4, "ambiguous"),
        ("array_allocs", True, "fused", 50.0, "unfused", -0.7, "less"),
        ("instructions", False, "unfused", 100000.0, None, None, None),
        ("instructions", False, "fused", 100050.0, "unfused", 0.4, "more"),
    ]
    with sync_engine(bare_database_url).begin() as connection:
        connection.exec_driver_sql("INSERT INTO project (name) VALUES ('demo')")
        connection.exec_driver_sql("INSERT INTO machine (fingerprint, name) VALUES ('f', 'm')")
        connection.exec_driver_sql(
            "INSERT INTO commit (project_id, sha, ordered_at) VALUES (1, repeat('a', 40), now())"
        )
        connection.exec_driver_sql(
            "INSERT INTO report (id, project_id, commit_id, machine_id, idempotency_key, digest, body_bytes, format, version, "
            "quality, dirty, cases, points, failures, started_at) "
            "VALUES (gen_random_uuid(), 1, 1, 1, 'k', '', 0, 'pullback-report', 1, 'clean', false, 1, 1, 0, now())"
        )
        connection.exec_driver_sql(
            "INSERT INTO \"case\" (project_id, identity, workload, params, label) VALUES (1, '', 'w', '{}', 'w')"
        )
        for number, (metric, exact, variant, value, *ratio) in enumerate(points, start=1):
            connection.exec_driver_sql(
                "INSERT INTO series (project_id, case_id, machine_id, variant, variant_kind, metric, unit, direction, exact) "
                "VALUES (1, 1, 1, %s, 'tier', %s, '1', 'smaller', %s)",
                (variant, metric, exact),
            )
            connection.exec_driver_sql(
                "INSERT INTO point (series_id, commit_id, report_id, ordered_at, value, quality, baseline, log_ratio, outcome, n) "
                "SELECT %s, 1, id, now(), %s, 'clean', %s, %s, %s, 7 FROM report",
                (number, value, *ratio),
            )
    migrations.upgrade(bare_database_url, "0019")
    with sync_engine(bare_database_url).connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT metric, variant, baseline, round(log_ratio::numeric, 4)::float8, outcome, n "
            "FROM point JOIN series ON series.id = series_id WHERE variant != 'unfused' ORDER BY point.id"
        ).all()
    assert [tuple(row) for row in rows] == [
        ("time", "fused", "unfused", -0.7, "faster", 7),
        ("time", "native", None, None, None, None),
        ("array_bytes", "fused", "unfused", -0.6931, "less", 7),
        ("array_bytes", "stateful", "unfused", -0.6931, "less", 7),
        ("array_bytes", "native", "unfused", None, "less", 7),
        ("array_bytes", "jax", "unfused", -1.3863, "ambiguous", 7),
        ("array_allocs", "fused", None, None, None, None),
        ("instructions", "fused", "unfused", 0.0005, "equal", 7),
    ]


def test_upgrading_twice_changes_nothing(database_url):
    before = migrations.revisions(database_url)
    migrations.upgrade(database_url)
    assert migrations.revisions(database_url) == before
    assert before.match


def test_a_database_of_a_newer_release_is_refused(database_url):
    with sync_engine(database_url).begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(MigrationError, match="9999, which this release does not know"):
        migrations.upgrade(database_url)


def test_an_unreachable_database_is_one_sentence():
    with pytest.raises(SetupError, match="cannot be reached"):
        migrations.upgrade("postgresql://nobody@127.0.0.1:1/nothing")


def test_the_queue_of_chores_can_be_called_from_any_search_path(database_url):
    with sync_engine(database_url).begin() as connection:
        ids = connection.exec_driver_sql(
            "SELECT procrastinate.procrastinate_defer_jobs_v1(ARRAY["
            "ROW('q', 'task', 0, NULL, NULL, '{}'::jsonb, NULL)::procrastinate.procrastinate_job_to_defer_v1])"
        ).scalar_one()
    assert len(ids) == 1


def test_machines_and_agents_of_before_keep_what_is_theirs(bare_database_url):
    migrations.upgrade(bare_database_url, "0021")
    with sync_engine(bare_database_url).begin() as connection:
        for name in ("mine", "yours"):
            connection.exec_driver_sql("INSERT INTO project (name) VALUES (%s)", (name,))
        connection.exec_driver_sql("INSERT INTO machine (fingerprint, name) VALUES ('class', 'box')")
        connection.exec_driver_sql(
            "INSERT INTO agent (machine_id, name) SELECT 1, 'a' || n FROM generate_series(1, 4) n"
        )
        tokens = [(1, 1, None), (1, 2, "now()"), (2, 1, None), (2, 2, None), (3, None, None)]  # agent 4 has none
        for number, (agent, project, revoked) in enumerate(tokens):
            connection.exec_driver_sql(
                "INSERT INTO token (name, digest, prefix, scopes, created_by, agent_id, project_id, revoked_at) "
                "VALUES (%s, %s, '', '{agent}', '', %s, %s, %s)",
                (f"t{number}", bytes([number]), agent, project, revoked),
            )
    migrations.upgrade(bare_database_url)
    with sync_engine(bare_database_url).begin() as connection:
        assert connection.exec_driver_sql("SELECT project_id FROM agent ORDER BY id").scalars().all() == [
            1,
            None,
            None,
            None,
        ]
        assert connection.exec_driver_sql("SELECT fingerprint, host FROM machine").all() == [("class", None)]
        connection.exec_driver_sql("UPDATE machine SET host = 'a'")
        connection.exec_driver_sql("INSERT INTO machine (fingerprint, host, name) VALUES ('class', 'b', 'box (2)')")
    migrations.downgrade(bare_database_url, "0021")
    with sync_engine(bare_database_url).connect() as connection:
        kept = connection.exec_driver_sql("SELECT id, fingerprint, name FROM machine ORDER BY id").all()
    assert [tuple(row) for row in kept] == [(1, "class", "box"), (2, "class 2", "box (2)")]
    migrations.upgrade(bare_database_url)


def test_busy_reports_are_contaminated_ones_for_the_release_before(bare_database_url):
    migrations.upgrade(bare_database_url, "0035")
    with sync_engine(bare_database_url).begin() as connection:
        for statement in (
            "INSERT INTO project (name) VALUES ('demo')",
            "INSERT INTO machine (fingerprint, name) VALUES ('f', 'm')",
            "INSERT INTO commit (project_id, sha, ordered_at) VALUES (1, repeat('a', 40), now())",
            (
                "INSERT INTO report (id, project_id, commit_id, machine_id, idempotency_key, digest, body_bytes, format, version, "
                "quality, dirty, cases, points, failures, started_at) SELECT gen_random_uuid(), 1, 1, 1, word, '', 0, "
                "'pullback-report', 1, word, false, 1, 1, 0, now() FROM unnest(ARRAY['clean', 'contaminated']) word"
            ),
        ):
            connection.exec_driver_sql(statement)

    def stored():
        with sync_engine(bare_database_url).connect() as connection:
            return connection.exec_driver_sql("SELECT quality FROM report ORDER BY idempotency_key").scalars().all()

    migrations.upgrade(bare_database_url)
    assert stored() == ["clean", "contaminated"]
    with sync_engine(bare_database_url).begin() as connection:
        connection.exec_driver_sql("UPDATE report SET quality = 'busy' WHERE quality = 'contaminated'")
    migrations.downgrade(bare_database_url, "0035")
    assert stored() == ["clean", "contaminated"]
    migrations.upgrade(bare_database_url)


def test_stored_reports_get_the_device_of_their_cases(bare_database_url):
    migrations.upgrade(bare_database_url, "0033")
    devices = {"cpu": ["cpu"], "cuda": ["cuda"], "both": ["cpu", "cuda"], "unsaid": [None]}
    with sync_engine(bare_database_url).begin() as connection:
        for statement in (
            "INSERT INTO project (name) VALUES ('demo')",
            "INSERT INTO machine (fingerprint, name) VALUES ('class', 'box')",
            "INSERT INTO commit (project_id, sha, ordered_at) VALUES (1, repeat('0', 40), now())",
        ):
            connection.exec_driver_sql(statement)
        for number, device in enumerate(("cpu", "cuda", None)):
            connection.exec_driver_sql(
                'INSERT INTO "case" (project_id, identity, workload, params, device, label) '
                "VALUES (1, %s, 'w', '{}', %s, %s)",
                (bytes([number]), device, f"w {number}"),
            )
        for name, of_cases in devices.items():
            connection.exec_driver_sql(
                "INSERT INTO report (id, project_id, commit_id, machine_id, idempotency_key, digest, body_bytes, format, version, "
                "quality, dirty, cases, points, failures, started_at) "
                "VALUES (gen_random_uuid(), 1, 1, 1, %s, '', 0, 'pullback-report', 1, 'clean', false, 1, 0, 1, now())",
                (name,),
            )
            for device in of_cases:
                connection.exec_driver_sql(
                    "INSERT INTO failure (report_id, case_id, commit_id, machine_id, ordered_at, kind, message) "
                    "SELECT report.id, \"case\".id, 1, 1, now(), 'workload', '' FROM report, \"case\" "
                    'WHERE idempotency_key = %s AND "case".device IS NOT DISTINCT FROM %s',
                    (name, device),
                )
    migrations.upgrade(bare_database_url)
    with sync_engine(bare_database_url).connect() as connection:
        stored = dict(connection.exec_driver_sql("SELECT idempotency_key, device FROM report").all())
    assert stored == {"cpu": None, "cuda": "cuda", "both": None, "unsaid": None}
