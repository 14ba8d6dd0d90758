"""An incident as whoever is told of it gets it."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sqlalchemy.ext.asyncio import AsyncSession

from pullback_service.incidents.queries import details_of
from pullback_service.incidents.sentences import headline, markdown, plain, sentence
from pullback_service.models.incidents import Incident


async def facts_of(session: AsyncSession, incident: Incident) -> Mapping[str, Any]:
    """The facts of an incident, as JSON takes them: `title`, `sentence` and `details` for people. Index: as `details_of`.

    `url` is its page; what has one `thread` is told of one incident.
    """
    (detail,) = await details_of(session, [incident])
    return {
        "incident": incident.id,
        "project": detail.project,
        "kind": incident.kind,
        "state": incident.state,
        "thread": f"incident {incident.id}",
        "title": headline(detail),
        "sentence": sentence(detail),
        "markdown": markdown(detail),
        "reference": detail.reference.sha,
        "commit": detail.commit.sha,
        "commit_title": None if detail.commit.title is None else plain(detail.commit.title),
        "author": None if detail.commit.author is None else plain(detail.commit.author),
        "ended": None if detail.ended is None else detail.ended.sha,
        "cases": sorted({each.case for each in detail.changes}),
        "machines": sorted({each.machine for each in detail.changes}),
        "variants": sorted({each.change.variant for each in detail.changes if each.change.variant is not None}),
        "details": sorted({plain(each.change.message) for each in detail.changes if each.change.message is not None}),
        "url": f"/projects/{quote(detail.project, safe='')}/incidents/{incident.id}",
    }
