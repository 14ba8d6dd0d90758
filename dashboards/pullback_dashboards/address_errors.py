"""Error pages for invalid addresses: a sentence with the mistake and its place, and links to continue.

Programs get the problem document (`problems.py` of the service), whose words are those of the API: `query.last`, `GET
/api/v1/machines`. A page says the same about the address that stands in the browser, and keeps the API's words below.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import Request
from starlette.exceptions import HTTPException

from pullback_dashboards import links
from pullback_dashboards.page_state import Address
from pullback_dashboards.rendering import address_of
from pullback_service.errors import MissingObject, RequestError, Thing

_QUERY, _PATH = "query.", "path."
_SHORT = 9
_LONGEST_SHOWN = 40
# What a parameter of a path names that has a number or an id, which nobody writes from memory.
_NUMBERED: Mapping[str, Thing] = {
    "machine_id": "machine", "report_id": "report", "board_id": "board", "job_id": "job", "incident_id": "incident",
}  # fmt: skip
_NEEDED = frozenset({"chart"})  # without it there is no page
# The parameters of a query that name a thing.
_NAMED_BY: Mapping[Thing, frozenset[str]] = {
    "machine": frozenset({"machine", "head_machine", "base_machine"}),
    "commit": frozenset({"head", "base"}),
    "branch": frozenset({"head", "base"}),
    "results": frozenset({"head", "base"}),
    **{thing: frozenset({thing}) for thing in ("case", "metric", "page", "attempt")},
}


@dataclass(frozen=True)
class NextLink:
    """A page to go on with."""

    text: str
    address: str


@dataclass(frozen=True)
class ErrorView:
    """An error, and links to go on; `said` is the API's sentence, where that is more or other."""

    status: int
    title: str
    sentence: str
    said: str | None = None
    onward: tuple[NextLink, ...] = ()
    project: str | None = None
    """The project that the address speaks of, where it is certain that there is one."""
    sign_in_href: str | None = None


def error_view(request: Request, status: int, problem: object, error: Exception | None = None) -> ErrorView:
    """The view of a problem document and of the error it was made of; what is no such document is told by its status."""
    told = problem if isinstance(problem, dict) else {}
    title = told["title"] if isinstance(told.get("title"), str) else f"Error {status}"
    detail = told["detail"] if isinstance(told.get("detail"), str) else "The service gave no further reason."
    listed = [one for one in _list(told.get("errors")) if isinstance(one.get("path"), str)]
    missing = _missing(request, listed) or (error.missing if isinstance(error, RequestError) else None)
    project = _project(request, status, error, missing)
    if isinstance(error, HTTPException) and status == HTTPStatus.NOT_FOUND:
        title, sentence = "No such page", f"There is no page at {request.url.path}."
        detail = sentence  # what the API lists are no pages
    elif status == HTTPStatus.SERVICE_UNAVAILABLE and told.get("type") == "urn:pullback:problem:database-unavailable":
        sentence = "The database of this service does not answer. Nothing is lost: reload this page in a moment."
    elif status == HTTPStatus.UNPROCESSABLE_ENTITY:
        asks = "The address" if request.method == "GET" else "The form"
        title = _title(missing) if missing else f"{asks} is not valid"
        sentence = _not_there(missing) if missing else " ".join(_impossible(request, listed, detail))
    else:
        if status == HTTPStatus.NOT_FOUND and missing:
            title = _title(missing)
        sentence = _sentence(request, status, missing, project, detail)
    return ErrorView(
        status,
        title,
        sentence,
        detail if detail != sentence else None,
        tuple(dict.fromkeys((*_instead(told.get("instead")), *_onward(request, status, listed, missing, project)))),
        project,
    )


def _list(listed: object) -> list[dict[str, object]]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _instead(listed: object) -> Iterator[NextLink]:
    """Pages that have what was looked for, as the problem lists them."""
    for one in _list(listed):
        text, address = one.get("text"), one.get("address")
        if isinstance(text, str) and isinstance(address, str):
            yield NextLink(text, address)


def _missing(request: Request, listed: list[dict[str, object]]) -> MissingObject | None:
    """The name in the path that is no number or no id."""
    for name, thing in _NUMBERED.items():
        if any(one["path"] == f"{_PATH}{name}" for one in listed):
            return MissingObject(thing, str(request.path_params.get(name)))
    return None


def _project(request: Request, status: int, error: Exception | None, missing: MissingObject | None) -> str | None:
    """Whatever else is missing was looked for in the project, which was there."""
    if missing is None or missing.thing == "project" or not isinstance(error, RequestError):
        return None
    if status not in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return None
    name = request.path_params.get("project") or request.query_params.get("project")
    return name if isinstance(name, str) else None


def _impossible(request: Request, listed: list[dict[str, object]], detail: str) -> Iterator[str]:
    """The impossible parts of the address, one sentence each."""
    if not listed or not any(detail.startswith(f"{one['path']}: ") for one in listed):
        yield detail  # a sentence of its own
        return
    for one in listed:
        place, message = str(one["path"]), str(one.get("message"))
        example = message.removeprefix("Give ").rpartition(" instead of ")[0] if message.startswith("Give ") else ""
        name, values = place.removeprefix(_QUERY), request.query_params.getlist(place.removeprefix(_QUERY))
        remedy = f"give {example}." if example else f"{message[:1].lower()}{message[1:]}"
        if not place.startswith(_QUERY):
            yield f"“{name.removeprefix('$.')}” in the form is not valid: {remedy}"
        elif values:
            yield f"“{name}={_short(values[-1])}” in the address is not valid: {remedy}"
        else:
            yield f"The address lacks “{name}=”, which this page needs."


def _title(missing: MissingObject) -> str:
    titles: Mapping[Thing, str] = {"branch": "No such commit or branch", "results": "No results yet"}
    return titles.get(missing.thing, f"No such {missing.thing}")


def _sentence(request: Request, status: int, missing: MissingObject | None, project: str | None, detail: str) -> str:
    if missing is None or status != HTTPStatus.NOT_FOUND:
        return detail.replace(f"{request.method} {request.url.path}", "this page")
    name, of = _shown(missing.name), f"Project {_shown(project)}" if project else "This project"
    sentences: Mapping[Thing, str] = {
        "project": f"There is no project {name}: check the spelling, or choose an existing one.",
        "commit": f"{of} has no commit {missing.name[:_SHORT]}: check the hash, or upload results of that commit.",
        "branch": f"{of} has neither a commit nor a branch {name}: give a branch, or at least seven digits of a hash.",
        "page": f"There is no page {missing.name}: the list is shorter. Go to its first page.",
        "workload": f"{of} has no workload {name}: check the spelling, or choose one from the overview.",
    }
    if missing.thing == "case" and "case" in request.path_params:
        return f"{detail.rstrip('.')}: choose one that was measured."
    if missing.thing == "machine" and "machine_id" not in request.path_params and project:
        return detail  # which says what there is in the project
    return sentences.get(missing.thing) or (_not_there(missing) if missing.thing in _NUMBERED.values() else detail)


def _not_there(missing: MissingObject) -> str:
    where = "find it at its commit or its machine" if missing.thing == "report" else "choose an existing one"
    return f"There is no {missing.thing} {_identified(missing)}: check the address, or {where}."


def _identified(missing: MissingObject) -> str:
    return missing.name if missing.name.isdecimal() else _shown(missing.name)


def _onward(
    request: Request, status: int, listed: list[dict[str, object]], missing: MissingObject | None, project: str | None
) -> Iterator[NextLink]:
    """Links to go on: this page without what is wrong, the page that lists what exists, the overview."""
    parameters = [pair for pair in request.query_params.multi_items() if pair[0] not in _NEEDED]
    wrong = [name for name, value in parameters if _is_wrong(name, value, listed, missing)]
    if wrong and request.method == "GET":
        names = " and ".join(f"“{name}”" for name in dict.fromkeys(wrong))
        yield NextLink(f"This page without {names}", Address(address_of(request), request).less(*wrong))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        yield NextLink("Reload this page", _whole(request))
    if missing is not None and not wrong:
        yield from _listing(request, status, missing, project)
    yield NextLink("Back to the overview", links.overview(project or _named(request, missing)))


def _named(request: Request, missing: MissingObject | None) -> str | None:
    """The project in the address; None if the error is that this project does not exist."""
    name = request.path_params.get("project")
    return name if isinstance(name, str) and (missing is None or missing.thing != "project") else None


def _is_wrong(name: str, value: str, listed: list[dict[str, object]], missing: MissingObject | None) -> bool:
    if missing is not None and missing.name == value and name in _NAMED_BY.get(missing.thing, ()):
        return True
    # Parameters of cases are written param=name=value or param.name=value, and told of by the first word.
    return any(one["path"] in {f"{_QUERY}{part}" for part in (name, name.partition(".")[0], "*")} for one in listed)


def _listing(request: Request, status: int, missing: MissingObject, project: str | None) -> Iterator[NextLink]:
    """Pages that list what there is of such things."""
    match missing.thing:
        case "project":
            yield NextLink("All projects", f"{links.settings()}#projects")
        case "machine":
            yield NextLink("All machines", links.via(links.fleet(), project))
        case "job" | "attempt":
            yield NextLink("All jobs", links.via(links.jobs(), project))
        case "incident" if name := project or _named(request, missing):
            yield NextLink("All incidents", links.incidents(name))
        case "board":
            yield NextLink("All boards", links.via(links.boards(), project))
        case "commit" | "branch" if project:
            yield NextLink("Commits to compare", links.compare(project))
        case "report" if status == HTTPStatus.GONE:
            yield NextLink("The report, without its file", links.report(missing.name))
        case "report":
            yield NextLink("All machines", links.via(links.fleet(), project))
        case "case" if project and "sha" in request.path_params:
            sha = str(request.path_params["sha"])
            yield NextLink(f"All cases at commit {sha[:_SHORT]}", links.commit(project, sha))


def _whole(request: Request) -> str:
    query = request.url.query
    return f"{address_of(request)}?{query}" if query else address_of(request)


def _shown(value: object) -> str:
    """A name in quotes: in the middle of a sentence it may be anything."""
    text = str(value)
    return repr(text[:_LONGEST_SHOWN]) + ("…" if len(text) > _LONGEST_SHOWN else "")


def _short(value: str) -> str:
    """A value as the address has it, with invisible characters written out."""
    text = repr(value[:_LONGEST_SHOWN])[1:-1]
    return f"{text}…" if len(value) > _LONGEST_SHOWN else text
