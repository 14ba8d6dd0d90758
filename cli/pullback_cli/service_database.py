"""The database of the commands that look after a service: the one of DATABASE_URL, or the one `pullback up` runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from pullback_cli.paths import DATA
from pullback_cli.usage_errors import RefusalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncSession

T = TypeVar("T")

DataFolder = Annotated[
    Path, typer.Option(envvar="PULLBACK_DATA", help="Folder of `pullback up`, where DATABASE_URL is not set.")
]
DEFAULT_DATA = DATA


def database_url(data: Path) -> str:
    """Address of the service's database; commands ask for it before they load what works with it, which takes a second."""
    from pullback_service.settings import load_settings

    named = load_settings().named_database_url()
    if named is not None:
        return named

    from pullback_service.postgres import EmbeddedPostgres

    embedded = EmbeddedPostgres(data.expanduser().absolute() / "postgres")
    if not embedded.is_running():
        raise RefusalError(
            f"DATABASE_URL is not set and no database is running in {data}: set it, or start one with `pullback up`"
        )
    return embedded.url()


def in_database(url: str, action: str, work: "Callable[[AsyncSession], Awaitable[T]]") -> T:
    """Do some work in one transaction, with a line in the audit log when something was `note`d."""
    import asyncio

    from pullback_service import migrations, models  # noqa: F401 - heavy, and an extra; every table
    from pullback_service.errors import RequestError

    revisions = migrations.revisions(url)
    if not revisions.match:
        raise RefusalError(revisions.remedy.removesuffix("."))
    try:
        return asyncio.run(_work(url, action, work))
    except RequestError as error:
        raise RefusalError(error.detail) from error


async def _work(url: str, action: str, work: "Callable[[AsyncSession], Awaitable[T]]") -> T:
    from pullback_service.audit.trail import was_noted, write_line
    from pullback_service.caller import COMMAND_LINE, database_of
    from pullback_service.database import Database

    database = Database(url, pool_size=1)
    try:
        async with database_of(database, COMMAND_LINE).writing.begin() as session:
            done = await work(session)
            if was_noted(session):
                await write_line(session, COMMAND_LINE, action=action, path=action, address=None)
        return done
    finally:
        await database.close()
