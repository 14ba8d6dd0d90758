"""`pullback db detect`: the detector of this release over all history, compared with the stored findings."""

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import expm1
from typing import Any, Final

import typer

from pullback_cli.usage_errors import RefusalError
from pullback_service import migrations, models  # noqa: F401 - every table
from pullback_service.database import Database
from pullback_service.errors import NotFoundError
from pullback_service.ids import ProjectId
from pullback_service.incidents.queries import NamedChange
from pullback_service.incidents.redetection import Difference, Findings, detect_beside, differences_of
from pullback_service.projects.queries import list_projects, project_by_name
from pullback_service.roles import ALL_PROJECTS

SHORT_HASH: Final = 10
SIGNS: Final[Mapping[str, str]] = {"new": "+", "moved": "~", "gone": "-"}

Differences = Sequence[tuple[str, Difference]]
"""Differences, each with the project it is of."""


def detect(url: str, project: str | None) -> tuple[Differences, bool]:
    """The differences of one project or of all; and false where it was interrupted."""
    revisions = migrations.revisions(url)
    if not revisions.match:
        raise RefusalError(revisions.remedy.removesuffix("."))
    return asyncio.run(_detect(url, project))


async def _detect(url: str, project: str | None) -> tuple[Differences, bool]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError, NotImplementedError):  # not the main thread
            loop.add_signal_handler(number, stop.set)
    database = Database(url, pool_size=1).seeing(ALL_PROJECTS)
    results: list[tuple[str, Difference]] = []
    try:
        async with database.reading() as session:
            try:
                known = [await project_by_name(session, project)] if project else await list_projects(session)
            except NotFoundError as error:
                raise RefusalError(error.detail) from error
            projects = [(ProjectId(each.id), each.name) for each in known]
        for project_id, name in projects:
            so_far: Findings | None = None
            async for looked in detect_beside(database, project_id):
                so_far = looked
                if stop.is_set():
                    break
            if so_far is not None:
                async with database.reading() as session:
                    results += [(name, each) for each in await differences_of(session, so_far)]
                typer.echo(f"{name}: {len(so_far.looked_at)} series, {so_far.readings} readings", err=True)
            if stop.is_set():
                break
    finally:
        await database.close()
    return results, not stop.is_set()


def show(result: Differences, *, as_json: bool) -> None:
    """Print differences."""
    if as_json:
        typer.echo(json.dumps([_as_json(project, each) for project, each in result], indent=2))
        return
    for project, each in result:
        what = f"{each.change.case} {each.change.change.variant} {each.change.metric} on {each.change.machine}"
        was = "" if each.was is None else f", was {_in_words(each.was)}"
        typer.echo(f"{SIGNS[each.kind]} {project}  {what}: {_in_words(each.change)}{was}")
    if not result:
        typer.echo("no differences from what is stored")


def _in_words(each: NamedChange) -> str:
    """Such as `+4.1 % at 3f2a91c…`, or behind one commit and up to another."""
    size = "" if each.change.log_ratio is None else f"{expm1(each.change.log_ratio):+.1%} "
    commit, reference = each.commit.sha[:SHORT_HASH], each.reference.sha[:SHORT_HASH]
    return (
        f"{size}at {commit}"
        if each.commit.parent == each.reference.sha
        else f"{size}since {reference}, at {commit} at the latest"
    )


def _as_json(project: str, each: Difference) -> Mapping[str, Any]:
    named = {
        "project": project,
        "kind": each.kind,
        "case": each.change.case,
        "variant": each.change.change.variant,
        "metric": each.change.metric,
        "machine": each.change.machine,
    }
    return named | _place(each.change) | {"was": None if each.was is None else _place(each.was)}


def _place(named: NamedChange) -> dict[str, Any]:
    change = named.change
    return {
        "reference": named.reference.sha,
        "commit": named.commit.sha,
        "log_ratio": change.log_ratio,
        "detector": change.detector,
    }
