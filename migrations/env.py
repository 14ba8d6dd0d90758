"""Alembic's environment: run by `pullback_service.migrating`, and by the `alembic` command for new migrations."""

from alembic import context
from sqlalchemy import Connection

from pullback_service.database import sync_engine
from pullback_service.models import Base
from pullback_service.settings import load_settings

LOCK_KEY = 0x70756C6C  # "pull": two processes that migrate at once take turns


def run(connection: Connection) -> None:
    """Bring the database of this connection to the revision that was asked for, in one transaction."""
    context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK_KEY})")
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with sync_engine(load_settings().require_database_url()).connect() as own:
        run(own)
        own.commit()
