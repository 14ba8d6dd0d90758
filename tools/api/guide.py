"""docs/api.md out of the description of the API."""

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from tools.api.client_writer import PREFIX, type_of, understood

from pullback_service.openapi import operations_of
from pullback_service.paging import DEFAULT_LIMIT, HIGHEST_LIMIT

Schema = Mapping[str, Any]

TITLES = {
    "projects": "Projects",
    "reports": "Reports",
    "commits": "Commits and branches",
    "machines": "Machines",
    "series": "Series and points",
    "comparisons": "Comparisons",
    "incidents": "Incidents",
    "boards": "Boards",
    "jobs": "Jobs",
    "agents": "What agents say",
    "tokens": "Tokens",
    "channels": "Notifications",
    "operation": "Operation",
}
SHOWN_LINES = 60

OPENING = f"""# The API

<!-- Made by `make api` from the description of the API and a recording of every operation: change those, not this page. -->

Everything is under `/api/v1`; `/api/v1/openapi.json` is the same description for programs (OpenAPI 3.1). The examples take

```
URL=https://pullback.example   TOKEN=plb_…
```

**Who asks** is said by `Authorization: Bearer $TOKEN`; [access.md](access.md) has the scopes. On loopback without
`PULLBACK_AUTH` none is needed.

**Lists** are pages: `{{"items": […], "next": cursor}}`. Ask again with `cursor=` until `next` is null; `limit=` is
{DEFAULT_LIMIT} by default, at most {HIGHEST_LIMIT}. With `format=csv`, `json` (an object a line) or `parquet`, or an `Accept`
header that prefers their media types, a list is a file with all rows, and `limit` and `cursor` mean nothing; columns keep
their order, and new ones are added behind the others. `pullback export` writes such files. A page has an `ETag`: sent back
in `If-None-Match`, it is answered with an empty 304 while it holds. [queries.md](queries.md) has more.

**Errors** are problem documents (RFC 9457, `application/problem+json`): `type`, `title`, `status`, `detail` in one
sentence with the remedy, `request_id` as in the logs and in the header `X-Request-Id`, and `errors` with a place each
(JSON path, `query.name`, line or file of an archive) where a document is at fault.

```json
{{
  "type": "urn:pullback:problem:invalid-input",
  "title": "The request is not valid",
  "status": 422,
  "detail": "query.project is needed with files of hyperfine: add project=NAME.",
  "request_id": "4c1f13f0095848e3ae08dc1e825e9a64",
  "errors": [{{"path": "query.project", "message": "is needed with files of hyperfine: add project=NAME"}}]
}}
```

| status | when |
|---|---|
| 400 | the body cannot be read, or the address leaves something unsaid that the file does not say |
| 401 | no token where one is needed, or one that is unknown, expired or revoked |
| 403 | a token that does not allow this |
| 404 | no such thing, or one this token may not know of |
| 409 | what is stored says otherwise |
| 413 | a body over its limit |
| 416 | a piece of a log that does not continue where the log ends |
| 422 | the document was read and does not hold |
| 429 | more requests than one caller may make: `Retry-After` says when to come back |
| 503 | the database does not answer, or the service is busy; nothing was stored: the same request again, in a moment |

**Again.** What is marked *safe to repeat* may be sent again when no answer came: it happens once, and the answer is the
same. An upload is known by its `Idempotency-Key` and by its content; the same key with another content is 409.

**From Python**, every operation is a method of `pullback_service.client.Client`, under its name here.
What is safe to repeat is repeated by them; errors are `ProblemError`, whose text is the `detail` above.

```py
from pullback_service.client import Client, every

with Client("https://pullback.example", token=token) as pullback:
    receipt = pullback.upload_report(content, project="demo", commit=sha, branch="main", machine="ci")
    times = list(every(pullback.list_series, project="demo", metric="time"))
```
"""


def guide(description: Schema) -> str:
    """The whole page."""
    groups: dict[str, list[tuple[str, str, Schema]]] = {}
    for method, path, operation in operations_of(dict(description)):
        groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    order = [*TITLES, *(tag for tag in groups if tag not in TITLES)]
    parts = [OPENING, "## Operations\n", _contents(groups, order)]
    for tag in order:
        if tag in groups:
            parts.append(f"## {TITLES.get(tag, tag.capitalize())}\n")
            parts += ["\n".join(_operation(*each, description)) for each in groups[tag]]
    return "\n".join(parts).rstrip() + "\n"


def _contents(groups: Mapping[str, list[tuple[str, str, Schema]]], order: list[str]) -> str:
    rows = ["| operation | request | scope |", "|---|---|---|"]
    for tag in order:
        for method, path, operation in groups.get(tag, ()):
            name = operation["operationId"]
            rows.append(f"| [{name}](#{name}) | `{method} {path}` | {_scope(operation)} |")
    return "\n".join(rows) + "\n"


def _scope(operation: Schema) -> str:
    scope = operation["x-scope"]
    if scope is None:
        return "none"
    return f"`{scope}`" + (" or a public project" if {} in operation["security"] else "")


def _operation(method: str, path: str, operation: Schema, description: Schema) -> Iterator[str]:
    yield f"### {operation['operationId']}\n"
    yield f"`{method} {path}`\n"
    yield f"{operation['description'].strip()}\n"
    repeatable = " · safe to repeat" if operation["x-repeatable"] else ""
    yield f"Scope: {_scope(operation)}{repeatable}\n"
    parameters = list(understood(operation))  # of files and tags the beginning of the page tells
    body = _body_members(operation, description)
    if parameters or body:
        yield "| | in | type | |\n|---|---|---|---|"
        for parameter in parameters:
            yield _row(
                parameter["name"],
                parameter["in"],
                parameter["schema"],
                parameter.get("required", False),
                parameter.get("description", ""),
            )
        for name, schema, required in body:
            yield _row(name, "body", schema, required, schema.get("description", ""))
        yield ""
    yield from _example(method, path, operation)
    if "204" in operation["responses"]:
        reason = operation["responses"]["204"]["description"]
        yield f"Or 204 and no body: {reason[:1].lower()}{reason[1:]}.\n"
    errors = [
        f"{status} {answer['description'][:1].lower()}{answer['description'][1:]}"
        for status, answer in sorted(operation["responses"].items())
        if status.isdigit() and status[0] in "45" and status not in {"401", "403", "429", "503"}
    ]
    if errors:
        yield f"Errors: {'; '.join(errors)}.\n"


def _body_members(operation: Schema, description: Schema) -> list[tuple[str, Schema, bool]]:
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    found = description["components"]["schemas"].get(schema.get("$ref", "").removeprefix(PREFIX), {})
    required = set(found.get("required", ()))
    return [(name, member, name in required) for name, member in found.get("properties", {}).items()]


def _row(name: str, place: str, schema: Schema, required: bool, note: str) -> str:  # noqa: FBT001 - one row of a table
    needed = "needed" if required else ""
    parts = [part for part in (needed, " ".join(note.split()).removesuffix("."), _bounds(schema)) if part]
    kind = type_of(schema).replace(" | None", "").replace("|", "or")
    return f"| `{name}` | {place} | {kind} | {'; '.join(parts)} |"


def _bounds(schema: Schema) -> str:
    """Limits of a value, in words."""
    options = [schema, *(each for each in schema.get("anyOf", ()))]
    words = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
        "maxLength": "at most {} characters",
        "maxItems": "at most {} items",
        "minItems": "at least {} items",
    }
    found = [text.format(option[key]) for option in options for key, text in words.items() if key in option]
    if schema.get("default") not in {None, ""} if not isinstance(schema.get("default"), (list, dict)) else False:
        found.append(f"default: `{json.dumps(schema['default'])}`")
    return ", ".join(dict.fromkeys(found))


def _example(method: str, path: str, operation: Schema) -> Iterator[str]:
    answer = next(
        (
            (status, media_type, media["example"])
            for status, answer in operation["responses"].items()
            for media_type, media in answer.get("content", {}).items()
            if "example" in media
        ),
        None,
    )
    query, headers = [], []
    for parameter in operation.get("parameters", ()):
        value = parameter.get("example")
        if value is None:
            continue
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(str(value)))
        elif parameter["in"] == "query":
            query.append((parameter["name"], value))
        else:
            headers.append(f"{parameter['name']}: {value}")
    yield "```sh"
    yield " \\\n  ".join(_curl(method, path, query, headers, operation))
    yield "```\n"
    if answer is None:
        return
    status, media_type, content = answer
    shown = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    lines = shown.splitlines()
    if len(lines) > SHOWN_LINES:
        lines = [*lines[:SHOWN_LINES], "…"]
    yield f"{status}, `{media_type}`:\n"
    yield "```json" if media_type == "application/json" and len(lines) <= SHOWN_LINES else "```"
    yield from lines
    yield "```\n"


def _curl(method: str, path: str, query: list[tuple[str, Any]], headers: list[str], operation: Schema) -> Iterator[str]:
    yield 'curl --fail-with-body -H "Authorization: Bearer $TOKEN"'
    if method not in {"GET", "POST"} or (method == "POST" and "requestBody" not in operation):
        yield f"-X {method}"
    for header in headers:
        yield f"-H {shlex.quote(header)}"
    for media_type, media in operation.get("requestBody", {}).get("content", {}).items():
        if "example" in media:
            content = media["example"]
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            if media_type == "application/json" and len(text) < 600:
                yield f"--json {shlex.quote(text)}"
            else:
                yield "--data-binary @FILE"
    where = f"$URL{path}" + (f"?{urlencode(query)}" if query else "")
    yield f'"{where}"'
