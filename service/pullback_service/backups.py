"""Backups of the database: one file, made by `pg_dump` from one snapshot while the service goes on.

A backup gets its name only when it is whole, and a restore is one transaction: it happens, or nothing does.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pullback_service.database import sync_engine
from pullback_service.errors import SetupError
from pullback_service.migrations import Revisions, refuse_old_server, revisions
from pullback_service.postgres import client_programs
from pullback_service.roles import ALL_PROJECTS
from pullback_service.row_security import grant_tables, make_roles

HAS_TABLES = "SELECT to_regclass('alembic_version') IS NOT NULL"


def back_up(url: str, file: Path, *, overwrite: bool = False) -> int:
    """Write a backup and return its size in bytes."""
    if file.exists() and not overwrite:
        raise SetupError(f"{file} exists already: name another file, or add --overwrite.")
    if file.exists() and not file.is_file():
        raise SetupError(f"{file} is not a regular file: name another one.")
    _refuse_old_server(url)
    draft = file.with_name(f"{file.name}.partial")
    try:
        draft.touch(mode=0o600)  # it holds digests of tokens, and whatever is measured
    except OSError as error:
        raise SetupError(f"{file} cannot be written ({error.strerror}): name a file in a writable folder.") from error
    try:
        _run(url, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={draft}", *_of_every_row(url))
        _run(url, "pg_restore", "--list", str(draft), connect=False)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return file.stat().st_size


def restore(url: str, file: Path, *, replace: bool = False) -> Revisions:
    """Fill an empty database from a backup, or replace what is in one; returns at which migration it stands now."""
    if not file.is_file():
        raise SetupError(f"There is no file {file}: name one written by `pullback db backup`.")
    try:
        _run(url, "pg_restore", "--list", str(file), connect=False)
    except SetupError as error:
        reason = str(error).removesuffix(".")
        raise SetupError(f"{file} is not a backup ({reason}): name a file written by `pullback db backup`.") from error
    _refuse_old_server(url)
    if not replace and _has_tables(url):
        raise SetupError(
            "This database already holds data of a service: restore into an empty one, or add --replace to delete that data."
        )
    clean = ("--clean", "--if-exists") if replace else ()
    with sync_engine(url).connect() as connection:
        make_roles(connection)  # which the policies of a backup name
        _run(
            url,
            *("pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"),
            *(*clean, str(file)),
        )
        grant_tables(connection)
        connection.commit()
    return revisions(url)


def _of_every_row(url: str) -> tuple[str, ...]:
    """The options by which `pg_dump` sees every row: a superuser does; others as the role for which every row exists."""
    with _connected(url) as connection:
        row = connection.execute(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        guarded = connection.execute("SELECT EXISTS (SELECT FROM pg_class WHERE relforcerowsecurity)").fetchone()
    if row == (True,) or guarded == (False,):
        return ()
    return ("--enable-row-security", f"--role={ALL_PROJECTS}")


def _has_tables(url: str) -> bool:
    with _connected(url) as connection:
        row = connection.execute(HAS_TABLES).fetchone()
    return row is not None and bool(row[0])


def _refuse_old_server(url: str) -> None:
    with _connected(url) as connection:
        refuse_old_server(connection.info.server_version // 10_000)


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            yield connection
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise SetupError(f"The database of DATABASE_URL cannot be reached: {reason}") from error
    except psycopg.ProgrammingError as error:
        raise _no_address() from error


def _run(url: str, program: str, *arguments: str, connect: bool = True) -> None:
    place, environment = _connection(url) if connect else ((), os.environ)
    done = subprocess.run(  # noqa: S603 - Postgres' own program with our own arguments
        [_program(program), *place, *arguments], capture_output=True, text=True, check=False, env=dict(environment)
    )
    if done.returncode != 0:
        lines = (done.stderr.strip() or f"{program} failed").splitlines()
        raise SetupError(f"{lines[0].removeprefix(f'{program}: ').removeprefix('error: ')} (said by {program}).")


def _connection(url: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Connection arguments, with the password in the environment: arguments are in every process listing."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise _no_address() from error
    password = parts.pop("password", None)
    place = make_conninfo("", **{name: str(value) for name, value in parts.items() if value is not None})
    environment = dict(os.environ) | ({"PGPASSWORD": str(password)} if password is not None else {})
    return (f"--dbname={place}",), environment


def _no_address() -> SetupError:
    return SetupError("DATABASE_URL is not an address like postgresql://user@host/name.")


def _program(name: str) -> str:
    """Postgres' program out of the wheel, whose release is at least the server's; else the machine's own."""
    wheel = client_programs()
    shipped = wheel / name if wheel is not None else None
    output = str(shipped) if shipped is not None and shipped.is_file() else shutil.which(name)
    if output is None:
        raise SetupError(f"{name} is not installed: install Postgres' client programs.")
    return output
