"""The migrations: where they are, and how to run them on an address.

In the tree they live in `migrations/`; in the wheel they are `pullback_service/_migrations`.
"""

from dataclasses import dataclass
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

OLDEST_POSTGRES = 17
"""Our `pg_dump` and `pg_restore` set what older servers do not know: they could be backed up, and never restored."""


@dataclass(frozen=True)
class Revisions:
    """The revision of a database, and the one this release needs."""

    current: str | None
    head: str

    @property
    def match(self) -> bool:
        """True if this release can work with the database."""
        return self.current == self.head

    @property
    def remedy(self) -> str:
        """The remedy where they do not match, as a sentence."""
        if self.current is None:
            return "The database is not migrated yet: run `pullback db upgrade`."
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


def head() -> str:
    """The revision this release works with."""
    found = ScriptDirectory(str(folder())).get_current_head()
    if found is None:
        raise MigrationError(f"There are no migrations in {folder()}: the installation is damaged.")
    return found


def revisions(url: str) -> Revisions:
    """Read the revision of a database."""
    with _connect(url) as connection:
        return Revisions(current=_current(connection), head=head())


async def revisions_now(database: Database) -> Revisions:
    """The same through the connections of a service that runs."""
    try:
        async with database.reading() as session:
            current = await session.scalar(text("SELECT version_num FROM alembic_version"))
    except ProgrammingError:
        current = None  # the table is not there yet
    except OperationalError as error:
        if not lacks_role(error):
            raise
        current = None
    return Revisions(current, head())


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
            found = Revisions(current=_current(connection), head=head())
            major = _server_major(connection)
    except SetupError:
        return
    if not found.match:
        logger.warning("database_not_migrated", reason=found.remedy)
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
