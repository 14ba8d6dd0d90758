"""The migrations: where they are, and how to run them on an address.

In the tree they live in `migrations/`; in the wheel they are `pullback_service/_migrations`.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from pullback_service.database import Database, lacks_role, sync_engine
from pullback_service.errors import MigrationError, SetupError
from pullback_service.logs import logger

OLDEST_SERVED = "0029"
"""The migration of the oldest release that can go on serving a database at our head.

Releases that are older than a database read it there, so that they are taken out one by one and not all at once. Whoever
writes a migration that takes away what an older release uses raises it.
"""
OLDEST_POSTGRES = 17
"""Our `pg_dump` and `pg_restore` set what older servers do not know: they could be backed up, and never restored."""
_OLDEST_SERVED = "SELECT obj_description(to_regclass('alembic_version'), 'pg_class')"
_REVISION = "SELECT version_num, obj_description('alembic_version'::regclass, 'pg_class') FROM alembic_version"


@dataclass(frozen=True)
class Revisions:
    """The revision of a database, the one this release needs, and the oldest one whose release can serve the database."""

    current: str | None
    head: str
    oldest_served: str | None = None

    @property
    def match(self) -> bool:
        """True if the database is as this release makes it."""
        return self.current == self.head

    @property
    def serves(self) -> bool:
        """True if this release can work with the database: also with one that a newer release left to older ones."""
        return self.match or (self._is_newer and self.oldest_served is not None and self.oldest_served <= self.head)

    @property
    def _is_newer(self) -> bool:
        return self.current is not None and self.current > self.head

    @property
    def remedy(self) -> str:
        """The remedy where they do not match, as a sentence."""
        if self.current is None:
            return "The database is not migrated yet: run `pullback db upgrade`."
        if self._is_newer:
            return (
                f"The database is at migration {self.current}, which a newer release made, and this release knows "
                f"{self.head}: upgrade this release."
            )
        return (
            f"The database is at migration {self.current}, and this release needs {self.head}: "
            "run `pullback db upgrade`."
        )


def folder() -> Path:
    """The folder with Alembic's environment."""
    package = Path(__file__).resolve().parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent.parent / "migrations"


def upgrade(url: str, revision: str = "head") -> None:
    """Bring a database to a revision; does nothing where it stands there already. Callers at the same time take turns."""
    with _connect(url) as connection:
        refuse_old_server(_server_major(connection))
        config = _config(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        current = _current(connection)
        if current is not None and current not in known:
            raise MigrationError(
                f"The database is at migration {current}, which this release does not know: "
                "it was written by a newer release of Pullback; upgrade this one."
            )
        command.upgrade(config, revision)
        connection.commit()


def downgrade(url: str, revision: str) -> None:
    """Take a database back to a revision, `base` for nothing at all. Data of what is removed is lost."""
    with _connect(url) as connection:
        command.downgrade(_config(connection), revision)
        connection.commit()


@cache
def head() -> str:
    """The revision this release works with: all migrations are read for it, once."""
    result = ScriptDirectory(str(folder())).get_current_head()
    if result is None:
        raise MigrationError(f"There are no migrations in {folder()}: the installation is damaged.")
    return result


def revisions(url: str) -> Revisions:
    """Read the revision of a database."""
    with _connect(url) as connection:
        return Revisions(_current(connection), head(), connection.scalar(text(_OLDEST_SERVED)))


async def revisions_now(database: Database) -> Revisions:
    """The same through the connections of a service that runs."""
    try:
        async with database.reading() as session:
            row = (await session.execute(text(_REVISION))).first()
    except ProgrammingError:
        row = None  # the table is not there yet
    except OperationalError as error:
        if not lacks_role(error):
            raise
        row = None
    current, oldest_served = row or (None, None)
    return Revisions(current, head(), oldest_served)


def say_oldest_served(connection: Connection) -> None:
    """Leave OLDEST_SERVED where releases that are older than the database find it."""
    if connection.scalar(text("SELECT to_regclass('alembic_version')")) is not None:
        connection.execute(text(f"COMMENT ON TABLE alembic_version IS '{OLDEST_SERVED}'"))
    connection.commit()


def refuse_old_server(major: int) -> None:
    """Raise where the server is older than what a service can be kept on."""
    if major < OLDEST_POSTGRES:
        raise SetupError(
            f"The server of DATABASE_URL is Postgres {major}, and Pullback needs {OLDEST_POSTGRES} or later: "
            "move the database to a newer server."
        )


def warn_unless_fit(url: str) -> None:
    """A line in the log where the database is not as this release needs it. One that is away is told of when it is used."""
    try:
        with _connect(url) as connection:
            stored_revisions = Revisions(_current(connection), head(), connection.scalar(text(_OLDEST_SERVED)))
            major = _server_major(connection)
    except SetupError:
        return
    if not stored_revisions.serves:
        logger.warning("database_not_migrated", reason=stored_revisions.remedy)
    try:
        refuse_old_server(major)
    except SetupError as error:
        logger.warning("database_unfit", reason=str(error))


def _server_major(connection: Connection) -> int:
    return int((connection.dialect.server_version_info or (0,))[0])


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _connect(url: str) -> Connection:
    try:
        return sync_engine(url).connect()
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise SetupError(f"The database of DATABASE_URL cannot be reached: {reason}") from error
