"""The incidents of a project as an Atom feed (RFC 4287): one entry each, with an id that stays the same."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from xml.etree.ElementTree import Element, SubElement, register_namespace, tostring

from pullback_dashboards.incidents.view import IncidentLine
from pullback_dashboards.wording.plurals import counted

_ATOM = "http://www.w3.org/2005/Atom"
_NEVER = "1970-01-01T00:00:00+00:00"  # a feed needs a date, also one without entries
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production 2
register_namespace("", _ATOM)


def feed(
    project: str,
    lines: Sequence[IncidentLine],
    told: Mapping[int, datetime],
    *,
    base: str,
    path: str,
    incidents: str,
    about: str,
) -> bytes:
    """The document. An entry is new again whenever people were told more of it: `told` has the last time of that."""
    dates = {line.id: told.get(line.id, line.found_at) for line in lines}
    root = Element(_tag("feed"))
    _text(root, "title", f"{project}: changes of {about or 'memory and speed of gradients'}")
    _text(root, "id", f"{base}{path}")
    _text(root, "updated", max(dates.values()).isoformat() if dates else _NEVER)
    SubElement(root, _tag("link"), {"rel": "self", "href": f"{base}{path}", "type": "application/atom+xml"})
    SubElement(root, _tag("link"), {"rel": "alternate", "href": f"{base}{incidents}", "type": "text/html"})
    author = SubElement(root, _tag("author"))
    _text(author, "name", "Pullback")
    for line in lines:
        entry = SubElement(root, _tag("entry"))
        _text(entry, "title", f"{line.mark} {line.sentence}")
        _text(entry, "id", f"urn:pullback:incident:{line.id}")
        _text(entry, "published", line.found_at.isoformat())
        _text(entry, "updated", dates[line.id].isoformat())
        SubElement(entry, _tag("link"), {"href": f"{base}{line.href}"})
        SubElement(entry, _tag("category"), {"term": line.kind})
        verdict = f" A person says: {line.verdict.verdict}." if line.verdict else ""
        places = f"{counted(line.cases, 'case')} on {counted(line.machines, 'machine')}"
        _text(entry, "summary", f"{line.state.capitalize()}: {', '.join(line.evidence)}, in {places}.{verdict}")
    body: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return body


def _text(parent: Element, name: str, text: str) -> None:
    SubElement(parent, _tag(name)).text = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _tag(name: str) -> str:
    return f"{{{_ATOM}}}{name}"
