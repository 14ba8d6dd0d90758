"""Alembic's environment: run by `pullback_service.migrations`, and by the `alembic` command for new migrations."""

import time

from alembic import context
from sqlalchemy import Connection

from pullback_service.database import sync_engine
from pullback_service.migrations import say_oldest_served
from pullback_service.models import Base
from pullback_service.row_security import grant_tables, make_roles
from pullback_service.settings import load_settings

LOCK_KEY = 0x70756C6C  # "pull": two processes that migrate at once take turns
ASK_AGAIN_AFTER_S = 0.1


def run(connection: Connection) -> None:
    """Bring the database of this connection to the revision that was asked for, each step in a transaction of its own.

    Steps may build indexes concurrently, which no transaction can and which waits for all others to end: so whose turn
    it is not asks again and again and holds nothing meanwhile.
    """
    connection.commit()
    while not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({LOCK_KEY})").scalar_one():
        connection.commit()
        time.sleep(ASK_AGAIN_AFTER_S)
    connection.commit()
    try:
        make_roles(connection)
        say_oldest_served(connection)  # those that serve meanwhile ask for it between two steps
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            compare_server_default=True,
            transaction_per_migration=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        grant_tables(connection)
        say_oldest_served(connection)
    finally:
        connection.rollback()
        connection.exec_driver_sql(f"SELECT pg_advisory_unlock({LOCK_KEY})")
        connection.commit()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with sync_engine(load_settings().require_database_url()).connect() as own:
        run(own)
        own.commit()
