"""Messages about a database that is not migrated, and how often it is asked."""

import psycopg
import pytest
from structlog.testing import capture_logs

from pullback_service import migrations, worker

REMEDY = "The database is not migrated yet: run `pullback db upgrade`."


def test_a_service_begins_with_a_line_on_a_database_that_is_not_migrated(database_url):
    with capture_logs() as lines:
        migrations.warn_unless_fit(database_url)
        assert lines == []
        migrations.downgrade(database_url, "base")
        migrations.warn_unless_fit(database_url)
        migrations.warn_unless_fit("postgresql://nobody@127.0.0.1:1/nothing")  # told of when it is used
    assert [(line["event"], line["reason"]) for line in lines] == [("database_not_migrated", REMEDY)]


@pytest.mark.long
def test_a_worker_says_once_that_it_waits_for_the_migrations_and_again_what_is_lost(database_url):
    gone = psycopg.OperationalError("gone\nin detail")
    with capture_logs() as lines:
        told = worker._say_what_is_lost(database_url, gone, None)
        migrations.downgrade(database_url, "base")
        for _ in range(3):
            told = worker._say_what_is_lost(database_url, gone, told)
        migrations.upgrade(database_url)
        assert worker._say_what_is_lost(database_url, gone, told) is None
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("worker_lost_database", "gone"),
        ("database_not_migrated", REMEDY),
        ("worker_lost_database", "gone"),
    ]


@pytest.mark.anyio
async def test_the_migrations_are_read_once_however_often_the_database_is_asked(database, monkeypatch):
    read, real = [], migrations.ScriptDirectory

    def noted(folder):
        read.append(folder)
        return real(folder)

    monkeypatch.setattr(migrations, "ScriptDirectory", noted)
    assert {(await migrations.revisions_now(database)).serves for _ in range(3)} == {True}
    assert len(read) <= 1
