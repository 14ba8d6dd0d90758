"""Taking the body of an upload off the wire, and holding it against what the address says."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from pullback_service.errors import FieldError, InvalidInputError, TooLargeError, UnreadableBodyError, refuse
from pullback_service.fields import Name, PlaceName, Sha, Time
from pullback_service.importers.unpacking import SEND_THE_FILE
from pullback_service.reports.reading import ReadReport
from pullback_service.reports.schemas import ReportHead
from pullback_service.runtime import KnownSettings

LONGEST_MACHINE = 180  # its fingerprint is a little longer than its name
ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "zstd"})

OPENAPI_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/ReportDocument"}},
            "application/octet-stream": {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "Another tool's own file, also compressed (gzip, zstd), or its folder as .tar.gz.",
                }
            },
        },
    }
}


def _grammar(value: str) -> Callable[[dict[str, Any]], None]:
    """Describes one value, or one for each metric, to whoever reads the schema; errors have more to say than a pattern."""
    pattern = rf"^({value}|[^,:\s]+:{value})(,[^,:\s]+:{value})*$"

    def describe(schema: dict[str, Any]) -> None:
        for option in schema["anyOf"]:
            if option.get("type") == "string":
                option["pattern"] = pattern

    return describe


class Stated(BaseModel):
    """What the query says of the report. Our own reports it only confirms; of other tools' files it says the rest."""

    model_config = ConfigDict(extra="ignore")

    project: PlaceName | None = None
    commit: Sha | None = None
    branch: Name | None = None
    machine: Name | None = Field(None, max_length=LONGEST_MACHINE)
    format: Name | None = Field(None, description="The format of the file, where its content does not tell.")
    variant: Name | None = Field(None, description="How it was executed; `external` unless the file says it.")
    unit: Name | None = Field(
        None,
        json_schema_extra=_grammar(r"[^,:\s]{1,32}"),
        description="Unit of values whose file has none: `ns`, or `latency:ns,throughput:ops/s`.",
    )
    direction: Name | None = Field(
        None,
        json_schema_extra=_grammar(r"(smaller|bigger)"),
        description="Which way is better, where the file does not say: `smaller`, `bigger`, or one per metric.",
    )
    authored_at: Time | None = Field(
        None, description="When the commit was authored: its place in history, where nothing else tells."
    )
    dirty: bool = Field(default=False, description="It was measured with uncommitted changes; files may say so too.")
    allow_dirty: bool = Field(default=False, description="Keep what was measured with uncommitted changes, marked so.")
    dry_run: bool = Field(default=False, description="Store nothing; answer what would have been stored.")


def refuse_unknown_parameters(request: Request) -> None:
    """Raise where the address says what nobody reads: a name that is misspelt would silently be left out.

    Its bytes must be text, for a replacement character would become part of a name.
    """
    for part in request.scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        try:
            unquote_to_bytes(name).decode()
            unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            shown = ascii(name.decode("latin-1"))[1:-1][:40]
            refuse(shown, f"query.{shown} is not UTF-8: send its characters as UTF-8, each byte as %XX.")
    for given in request.query_params:
        if given not in Stated.model_fields:
            near = get_close_matches(given, Stated.model_fields, n=1)
            remedy = f"did you mean {near[0]}=?" if near else f"known are {', '.join(Stated.model_fields)}."
            shown = ascii(given)[1:-1][:40]
            refuse(shown, f"query.{shown} is not known here: {remedy}")


async def read_report_body(request: Request, settings: KnownSettings) -> bytes:
    """The body of an upload as it comes, refused as soon as it is known to be over the limit.

    Compression is told by its first bytes, so a `Content-Encoding` needs only to be one of those that are read.
    """
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        raise UnreadableBodyError(
            f"The file came inside a form (multipart/form-data, as `curl -F` sends it): {SEND_THE_FILE}."
        )
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise UnreadableBodyError(
            f"The Content-Encoding {ascii(encoding)[:40]} is not read here: send gzip, zstd or no compression."
        )
    return await read_limited(request, settings.max_report_bytes, "report", "PULLBACK_MAX_REPORT_BYTES")


ReportBody = Annotated[bytes, Depends(read_report_body)]


async def read_limited(request: Request, limit: int, what: str, variable: str) -> bytes:
    """A body of at most `limit` bytes."""
    refusal = TooLargeError(f"The {what} is over the limit of {limit} bytes: send less at once, or raise {variable}.")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise refusal
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise refusal
        pieces.append(piece)
    return b"".join(pieces)


def refuse_contradictions(stated: Stated, head: ReportHead, *, of: str = "query") -> None:
    """Raise where the query, or whatever else states it, and the report disagree."""
    machine = {head.machine.name, head.machine.fingerprint}
    told: tuple[tuple[str, str | None, set[str]], ...] = (
        ("project", stated.project, {head.project}),
        ("commit", stated.commit, {head.commit.sha}),
        ("branch", stated.branch, {head.commit.branch} if head.commit.branch else set()),
        ("machine", stated.machine, machine),
    )
    remedy = ": leave it out, or send the report it is for" if of == "query" else ""
    errors = [
        FieldError(path=f"{of}.{name}", message=f"is {value}, but the report says {' or '.join(sorted(said))}{remedy}")
        for name, value, said in told
        if value is not None and said and value not in said
    ]
    if errors:
        raise InvalidInputError(f"{errors[0]['path']} {errors[0]['message']}.", errors=errors)


def refuse_dirty(read: ReadReport) -> None:
    """Raise where the measured tree had changes that are in no commit: the numbers are not those of the commit."""
    if read.head.commit.dirty:
        path = f"{read.root}.commit.dirty"
        message = "the tree had uncommitted changes: commit them and measure again, or send it with allow_dirty=true"
        raise InvalidInputError(
            f"{path}: {message}, which keeps it off the history.", errors=[FieldError(path=path, message=message)]
        )
