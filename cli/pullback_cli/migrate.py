"""`pullback migrate`: bring the database to the shape this release works with."""

import typer

from pullback_cli.usage_errors import needs


@needs("service")
def migrate() -> None:
    """Migrate the database of DATABASE_URL; safe to repeat, and safe while the previous release runs.

    Examples:
    DATABASE_URL=postgresql://user@host/pullback pullback migrate

    DATABASE_URL_FILE=/run/secrets/database_url pullback migrate
    """
    from pullback_service.settings import load_settings

    url = load_settings().require_database_url()  # what is wrong with it is said before anything heavy is loaded

    from pullback_service import migrations

    before = migrations.revisions(url)
    migrations.upgrade(url)
    typer.echo(
        f"database at {before.head}" + (" already" if before.match else f", was at {before.current or 'nothing'}")
    )
