"""The database of one `up`: the one the user named, or the embedded one in the data folder."""

from collections.abc import Callable

from pullback_cli.supervision.plan import UpOptions
from pullback_service.postgres import EmbeddedPostgres
from pullback_service.settings import Settings


class UpDatabase:
    """Starts or adopts the embedded Postgres and stops it again; a database of the user's own is left alone."""

    def __init__(self, options: UpOptions, settings: Settings, say: Callable[[str], None]) -> None:
        self._say = say
        self._named = settings.named_database_url()
        self._embedded = EmbeddedPostgres(options.postgres)

    @property
    def is_embedded(self) -> bool:
        """True if the database is ours to start and stop."""
        return self._named is None

    def service_url(self) -> str:
        """Address for service and worker, once it has started and is migrated."""
        return self._embedded.service_url() if self._named is None else self._named

    def start(self) -> str:
        """Return the address of a database that takes connections, for its owner."""
        if self._named is not None:
            return self._named
        if not (self._embedded.data_folder / "PG_VERSION").exists():
            self._say(f"making a database in {self._embedded.data_folder}")
        return self._embedded.start()

    def check(self) -> None:
        """Start the embedded server again if it has died."""
        if self.is_embedded and not self._embedded.is_running():
            self._say(f"Postgres ended unexpectedly (log: {self._embedded.log_file}): restarting")
            self._embedded.start()

    def stop(self) -> None:
        """Stop the embedded server, whoever started it."""
        if self.is_embedded and self._embedded.data_folder.exists():
            self._embedded.stop()
