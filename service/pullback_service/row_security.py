"""Row-level security: Postgres decides which projects' rows a transaction sees.

Every table whose rows belong to a project has two policies, and FORCE. For `SERVICE_ROLE`, as which every session begins,
a row exists where its project is in the setting `pullback.projects` of the transaction: without the setting, no row does.
For `ALL_PROJECTS`, which a transaction must name, every row exists. `database.Database` sets both with the statement that
begins the transaction.

A new table: its migration runs `guard(table, condition)`, with `OWN` where it has a column `project_id`, else with
`through` the table that its rows belong to. A table of no project is listed in `WITHOUT_PROJECT`. A test holds every table
against both.
"""

from typing import Final

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, InternalError, ProgrammingError

from pullback_service.errors import MigrationError
from pullback_service.roles import ALL_PROJECTS, SERVICE_ROLE

WITHOUT_PROJECT: Final = frozenset({"alembic_version", "agent", "facts_change", "login", "machine"})
"""Tables whose rows belong to no project. A login is found by its secret alone."""

# The setting is read once for each statement (an InitPlan), and the comparison can use an index that begins with the column.
_PROJECTS: Final = "ANY ((SELECT nullif(current_setting('pullback.projects', true), ''))::bigint[])"
OWN: Final = f"project_id = {_PROJECTS}"
IS_PROJECT: Final = f"id = {_PROJECTS}"


def through(table: str, column: str, key: str = "id") -> str:
    """The condition of rows that exist where their row in another table does: the policies of that table decide."""
    return f'EXISTS (SELECT FROM "{table}" owner WHERE owner.{key} = {column})'


def guard(table: str, condition: str, *, check: str | None = None) -> str:
    """Statements that close a table to all projects but a transaction's own; repeating them changes nothing.

    `check` is the condition of rows to be written, where it is another one.
    """
    written = "" if check is None else f" WITH CHECK ({check})"
    return f"""
        ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        {_drop(table)}
        CREATE POLICY own_projects ON "{table}" TO {SERVICE_ROLE} USING ({condition}){written};
        CREATE POLICY all_projects ON "{table}" TO {ALL_PROJECTS} USING (true);
    """


def unguard(table: str) -> str:
    """Statements that open a table again."""
    return f'{_drop(table)} ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;'


def _drop(table: str) -> str:
    return f'DROP POLICY IF EXISTS own_projects ON "{table}"; DROP POLICY IF EXISTS all_projects ON "{table}";'


def missing_roles(connection: Connection) -> list[str]:
    """Statements, for who may create roles, that make the roles and let this connection's user take them."""
    user = connection.exec_driver_sql("SELECT quote_ident(current_user)").scalar_one()
    if user == SERVICE_ROLE:
        raise MigrationError(
            f"DATABASE_URL names {SERVICE_ROLE}, which owns no tables: migrate as the owner of the database."
        )
    known = set(
        connection.exec_driver_sql(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY (%(roles)s)", {"roles": [SERVICE_ROLE, ALL_PROJECTS]}
        ).scalars()
    )
    statements = [f"CREATE ROLE {role} {may}" for role, may in _ROLES.items() if role not in known]
    for role, member, inherits in (
        (ALL_PROJECTS, SERVICE_ROLE, "FALSE"),  # what a transaction does not name does not hold
        (SERVICE_ROLE, user, "FALSE"),
        (ALL_PROJECTS, user, "TRUE"),  # migrations, checks and backups see every row
    ):
        if not ({role, member} - {user} <= known and _is_member(connection, member, role, inherits == "TRUE")):
            statements.append(f"GRANT {role} TO {member} WITH INHERIT {inherits}, SET TRUE")
    return statements


_ROLES: Final = {ALL_PROJECTS: "NOLOGIN", SERVICE_ROLE: "LOGIN"}


def make_roles(connection: Connection) -> None:
    """Make the roles where they are missing, or raise what somebody with more rights has to run."""
    for turns_left in range(_TURNS, -1, -1):
        missing = missing_roles(connection)
        try:
            for statement in missing:
                connection.exec_driver_sql(statement)
            connection.commit()
        except ProgrammingError as error:
            connection.rollback()
            if isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
                raise MigrationError(
                    f"{str(error.orig).splitlines()[0].capitalize()}: let an administrator of the server run "
                    f"`{'; '.join(missing)};`, then repeat this."
                ) from error
            if not turns_left:
                raise
        except (IntegrityError, InternalError):  # another database of this server is migrated at this moment
            connection.rollback()
            if not turns_left:
                raise
        else:
            return


_TURNS: Final = 20


def _is_member(connection: Connection, member: str, role: str, inherits: bool) -> bool:  # noqa: FBT001 - a column of the answer
    privileges = ["SET", "USAGE"] if inherits else ["SET"]
    is_member: bool = connection.exec_driver_sql(
        "SELECT bool_and(pg_has_role(%(member)s::regrole, %(role)s::regrole, privilege)) FROM unnest(%(privileges)s::text[]) privilege",
        {"member": member, "role": role, "privileges": privileges},
    ).scalar_one()
    return is_member


def grant_tables(connection: Connection) -> None:
    """Let the roles read and write every table that is there. Needs no lock that a statement would wait for."""
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    chores = connection.exec_driver_sql("SELECT to_regnamespace('procrastinate') IS NOT NULL").scalar_one()
    for each in (schema, *(("procrastinate",) if chores else ())):
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {each} TO {SERVICE_ROLE}, {ALL_PROJECTS}")
        for what in ("SELECT, INSERT, UPDATE, DELETE ON ALL TABLES", "USAGE, SELECT ON ALL SEQUENCES"):
            connection.exec_driver_sql(f"GRANT {what} IN SCHEMA {each} TO {SERVICE_ROLE}, {ALL_PROJECTS}")
