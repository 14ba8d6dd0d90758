"""The news of a project as an Atom feed (RFC 4287): one entry a change, with an id that stays the same."""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime
from xml.etree.ElementTree import Element, SubElement, register_namespace, tostring

from pullback_dashboards.history import Commit
from pullback_dashboards.news.view import News

_ATOM = "http://www.w3.org/2005/Atom"
_NEVER = "1970-01-01T00:00:00+00:00"  # an entry needs a date, also where nobody told one
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production 2
register_namespace("", _ATOM)


def feed(
    project: str, news: Sequence[News], commits: Sequence[Commit], *, base: str, path: str, overview: str
) -> bytes:
    """The document. Dates are those of the commits, so that late results do not come up as new again and again."""
    dates = {commit.sha: commit.authored_at for commit in commits}
    root = Element(_tag("feed"))
    _text(root, "title", f"{project}: memory and speed of gradients")
    _text(root, "id", f"{base}{path}")
    _text(root, "updated", _date(max((date for date in dates.values() if date), default=None)))
    SubElement(root, _tag("link"), {"rel": "self", "href": f"{base}{path}", "type": "application/atom+xml"})
    SubElement(root, _tag("link"), {"rel": "alternate", "href": f"{base}{overview}", "type": "text/html"})
    author = SubElement(root, _tag("author"))
    _text(author, "name", "Pullback")
    for item in news:
        entry = SubElement(root, _tag("entry"))
        cases = ", ".join(case.case for case in item.cases) + (f" and {item.more} more" if item.more else "")
        _text(entry, "title", f"{item.mark} {item.who}{item.text} in {cases}")
        _text(entry, "id", f"urn:pullback:{_digest(project, item.sha, item.variant, item.text)}")
        _text(entry, "updated", _date(dates.get(item.sha)))
        SubElement(entry, _tag("link"), {"href": f"{base}{item.cases[0].href if item.cases else item.commit_href}"})
        title = f" {item.title}" if item.title else ""
        note = f" ({item.note})" if item.note else ""
        remedy = " ".join(filter(None, ("", item.remedy, item.command)))
        _text(entry, "summary", f"At {item.sha[:9]}{title}.{note}{remedy}")
    body: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return body


def _text(parent: Element, name: str, text: str) -> None:
    SubElement(parent, _tag(name)).text = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _tag(name: str) -> str:
    return f"{{{_ATOM}}}{name}"


def _date(moment: datetime | None) -> str:
    return moment.isoformat() if moment else _NEVER


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
