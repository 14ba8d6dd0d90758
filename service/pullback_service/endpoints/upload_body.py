"""Reading the body of an upload."""

from difflib import get_close_matches
from io import BytesIO
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request

from pullback_service.current_settings import KnownSettings
from pullback_service.errors import TooLargeError, UnreadableBodyError, refuse
from pullback_service.importers.unpacking import SEND_THE_FILE, is_longer
from pullback_service.reports.parsing import LONG_BODY_BYTES
from pullback_service.reports.upload_query import UploadParameters
from pullback_service.request_work import in_thread

READ_AT_ONCE_BYTES = 16 * 1024
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


async def refuse_unknown_parameters(request: Request) -> None:
    """Raise where the address says what nobody reads: a name that is misspelt would silently be left out.

    Its bytes must be text, for a replacement character would become part of a name.
    """
    for part in request.scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        try:
            unquote_to_bytes(name).decode()
            unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            excerpt = ascii(name.decode("latin-1"))[1:-1][:40]
            refuse(excerpt, f"query.{excerpt} is not UTF-8: send its characters as UTF-8, each byte as %XX.")
    for given in request.query_params:
        if given not in UploadParameters.model_fields:
            near = get_close_matches(given, UploadParameters.model_fields, n=1)
            remedy = (
                f"did you mean {near[0]}=?" if near else f"choose one of {', '.join(UploadParameters.model_fields)}."
            )
            excerpt = ascii(given)[1:-1][:40]
            refuse(excerpt, f"query.{excerpt} is not a known parameter: {remedy}")


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
            f"The Content-Encoding {ascii(encoding)[:40]} is not supported: send gzip, zstd or no compression."
        )
    return await read_limited(request, settings.max_report_bytes, "report", "PULLBACK_MAX_REPORT_BYTES")


ReportBody = Annotated[bytes, Depends(read_report_body)]


def is_read_at_once(body: bytes) -> bool:
    """True if reading a body takes less than handing it to a thread: about a millisecond, and what is compressed may be long."""
    return len(body) <= READ_AT_ONCE_BYTES and body.startswith(b"{")


async def is_long(body: bytes) -> bool:
    """True if reading a body takes one of the few turns of long ones: by its bytes when it is decompressed."""
    if is_read_at_once(body):
        return False
    return len(body) >= LONG_BODY_BYTES or await in_thread(is_longer, body, LONG_BODY_BYTES)


async def read_limited(request: Request, limit: int, what: str, variable: str) -> bytes:
    """A body of at most `limit` bytes."""
    refusal = TooLargeError(f"The {what} is over the limit of {limit} bytes: send less at once, or raise {variable}.")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise refusal
    buffer = BytesIO()  # gives what it holds away without a copy, which joining its pieces would be
    async for piece in request.stream():
        if buffer.tell() + len(piece) > limit:
            raise refusal
        buffer.write(piece)
    return buffer.getvalue()
