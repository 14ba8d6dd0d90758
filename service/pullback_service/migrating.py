"""The migrations: where they are, and how to run them on an address.

In the tree they live in `migrations/`; in the wheel they are `pullback_service/_migrations`.
"""

from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from pullback_service.database import sync_engine
from pullback_service.errors import MigrationError, SetupError


@dataclass(frozen=True)
class Revisions:
    """Where a database stands, and where this release wants it."""

    current: str | None
    head: str

    @property
    def match(self) -> bool:
        """Whether this release can work with the database."""
        return self.current == self.head


def folder() -> Path:
    """The folder with Alembic's environment."""
    package = Path(__file__).resolve().parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parent.parent / "migrations"


def upgrade(url: str, revision: str = "head") -> None:
    """Bring a database to a revision; does nothing where it stands there already. Callers at the same time take turns."""
    with _connect(url) as connection:
        config = _config(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        current = _current(connection)
        if current is not None and current not in known:
            raise MigrationError(
                f"The database stands at migration {current}, which this release does not know: "
                "it was made by a newer release of Pullback, so upgrade this one."
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
    """Where a database stands."""
    with _connect(url) as connection:
        return Revisions(current=_current(connection), head=head())


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
