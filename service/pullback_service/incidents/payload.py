"""The payload of a notification about an incident."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service import statements
from pullback_service.ids import ProjectId
from pullback_service.incidents.commands import reproduce_command
from pullback_service.incidents.queries import Detail, NamedChange, details_of
from pullback_service.incidents.sentences import evidence, headline, markdown, plain, sentence
from pullback_service.jobs.labels import place_of
from pullback_service.models.incidents import Incident
from pullback_service.notifications.events import LONGEST_SENTENCE
from pullback_service.series.queries import is_measured_here


async def facts_of(session: AsyncSession, incident: Incident) -> Mapping[str, Any]:
    """The facts of an incident, ready for JSON. Index: as `details_of` and `is_measured_here`."""
    (detail,) = await details_of(session, [incident])
    is_ours = await statements.answer(session, is_measured_here(ProjectId(incident.project_id)))
    return facts_in(detail, is_measured_here=is_ours)


def facts_in(detail: Detail, *, is_measured_here: bool) -> Mapping[str, Any]:
    """The facts of an incident: `title`, `sentence`, `evidence`, `details` and `command` are for people.

    `command` measures it again, if Pullback measures the project and it is not too long. `url` is its page; messages of one `thread` are about one
    incident. `sizes`: by machine, with its device where that is not the CPU, and metric, natural logs.
    """
    incident, changes = detail.incident, detail.supporting
    command = reproduce_command(detail) if is_measured_here else ""
    return {
        "incident": incident.id,
        "project": detail.project,
        "kind": incident.kind,
        "state": incident.state,
        "cause": incident.cause,
        "thread": f"incident {incident.id}",
        "title": headline(detail),
        "sentence": sentence(detail),
        "evidence": evidence(detail),
        "markdown": markdown(detail),
        "reference": detail.reference.sha,
        "commit": detail.commit.sha,
        "commit_title": None if detail.commit.title is None else plain(detail.commit.title),
        "author": None if detail.commit.author is None else plain(detail.commit.author),
        "ended": None if detail.ended is None else detail.ended.sha,
        "cases": sorted({each.case for each in changes}),
        "machines": sorted({each.machine for each in changes}),
        "devices": sorted({each.device for each in changes}),
        "sizes": sizes_of(changes),
        "variants": sorted({each.change.variant for each in changes if each.change.variant is not None}),
        "details": sorted({plain(each.change.message) for each in changes if each.change.message is not None}),
        "command": command if 0 < len(command) <= LONGEST_SENTENCE else None,
        "url": f"/projects/{quote(detail.project, safe='')}/incidents/{incident.id}",
    }


def sizes_of(changes: Iterable[NamedChange]) -> Mapping[str, Mapping[str, float]]:
    """The largest change of each metric on each device of a machine of an incident, of claimed changes, else of those that are not refuted."""
    every = [each for each in changes if each.change.standing != "refuted"]
    shown = [each for each in every if each.change.standing == "claimed"] or every
    sizes: dict[str, dict[str, float]] = defaultdict(dict)
    for each in shown:
        there, size = sizes[place_of(each.machine, each.device)], abs(each.change.log_ratio or 0.0)
        if each.metric is not None:
            there[each.metric] = max(size, there.get(each.metric, 0.0))
    return sizes
